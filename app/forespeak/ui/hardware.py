"""On what models are to compute, and with what, as the user chose it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from forespeak.engines.engine import CacheType, LoadRequest, Split


@dataclass(frozen=True, slots=True)
class Hardware:
    """Those fields of a LoadRequest that say so, by the same names and with the same meaning."""

    device: str | None = None
    gpu_layers: int = -1
    draft_device: str | None = None
    draft_gpu_layers: int | None = None
    split: Split = Split.LAYER
    cache_type: CacheType = CacheType.F16
    flash_attention: bool | None = None

    @property
    def contradicts(self) -> bool:
        """Whether the engine would refuse it: a cache in fewer bits is read by flash attention alone."""
        return self.cache_type.is_quantised and self.flash_attention is False

    @property
    def of_target(self) -> Hardware:
        """The same without what is said of the draft: what a target's own speed depends on."""
        return replace(self, draft_device=None, draft_gpu_layers=None)

    def with_cache(self, cache_type: CacheType) -> Hardware:
        """Flash attention becomes the engine's choice again where this cache could not do without it."""
        changed = replace(self, cache_type=cache_type)
        return replace(changed, flash_attention=None) if changed.contradicts else changed

    def applied(self, request: LoadRequest) -> LoadRequest:
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(request, settings=replace(request.settings, **own))

    def plain(self) -> dict[str, str | int | bool | None]:
        """For a file."""
        return {
            "device": self.device,
            "gpu_layers": self.gpu_layers,
            "draft_device": self.draft_device,
            "draft_gpu_layers": self.draft_gpu_layers,
            "split": self.split.value,
            "cache_type": self.cache_type.value,
            "flash_attention": self.flash_attention,
        }

    @classmethod
    def parse(cls, value: object) -> Hardware:
        """From a file; each value by itself: a damaged one costs itself only. Raises TypeError for no record."""
        if not isinstance(value, dict):
            raise TypeError
        known: dict[str, Any] = {}
        for name, parse in _PARSERS.items():
            if name in value:
                try:
                    known[name] = parse(value[name])
                except (ValueError, TypeError):
                    continue
        hardware = cls(**known)
        return hardware.with_cache(hardware.cache_type)


MOST_LAYERS = 999


def _device(value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= 200):
        raise ValueError
    return value


def _layers(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= MOST_LAYERS:
        raise ValueError
    return value


def _switch(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise TypeError
    return value


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "device": _device,
    "gpu_layers": _layers,
    "draft_device": _device,
    "draft_gpu_layers": lambda value: None if value is None else _layers(value),
    "split": Split,
    "cache_type": CacheType,
    "flash_attention": _switch,
}
