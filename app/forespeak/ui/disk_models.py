"""What the window asks of model files, answered from their headers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from forespeak.engines.engine import ConversionRequest
from forespeak.errors import UserFacingError
from forespeak.models.formats import NO_MLX, NO_MLX_REMEDY, model_stem
from forespeak.models.gguf import GgufHeader
from forespeak.models.sizes import size_words
from forespeak.models.starter import STARTER_NAME, StarterStatus, check_starter, starter_draft_path
from forespeak.models.vocabulary import cached_header
from forespeak.pairing.compatibility import Obstacle, Verdict, VerdictKind, compatibility
from forespeak.ui.pair_controller import Fit, Starter

STARTER_MODEL = "SmolLM2 135M Instruct"


class DiskModels:
    """`models_folder` is where the starter's target is unpacked to. Reads the disk: not for the UI thread."""

    def __init__(self, models_folder: Path, judge: Callable[[Path, Path], Verdict] = compatibility) -> None:
        self._folder = models_folder
        self._judge = judge

    def set_folder(self, models_folder: Path) -> None:
        """The models are in another folder now, the starter's target among them."""
        self._folder = models_folder

    def starter(self) -> Starter | None:
        if starter_draft_path() is None:
            return None
        state = check_starter(self._folder)
        conversion = None
        if state.status is StarterStatus.MUST_BE_UNPACKED:
            conversion = ConversionRequest(state.draft, state.target)
        header = cached_header(state.draft)
        return Starter(
            STARTER_NAME,
            state.target,
            state.draft,
            # The header's own name is that of a training run.
            target_name=f"{STARTER_MODEL} · F32",
            draft_name=" · ".join(part for part in (STARTER_MODEL, header.quantisation) if part),
            conversion=conversion,
            size=size_words(state.bytes_needed),
        )

    def name(self, path: Path) -> str:
        header = None if path.is_dir() else cached_header(path)
        # A model is always the same as itself, so what the verdict refuses here is the file.
        verdict = self._judge(path, path)
        # Nothing can draft for a model whose cache cannot be rolled back, but it can be chatted with.
        if not verdict.usable and verdict.obstacle is not Obstacle.NO_ROLLBACK:
            name = path.name if header is not None else model_stem(path)
            why, remedy = verdict.reason, "Choose another model."
            if verdict.obstacle is Obstacle.NO_ENGINE:
                why, remedy = NO_MLX, NO_MLX_REMEDY
            raise UserFacingError(f"“{name}” cannot be used as a model.", why, remedy)
        # The name of an MLX folder is that of its repo, which has the number format.
        return model_stem(path) if header is None else _name_of(header)

    def fit(self, target: Path, draft: Path) -> Fit:
        verdict = self._judge(target, draft)
        return Fit(verdict.usable, short_words(verdict), verdict.reason)


def _name_of(header: GgufHeader) -> str:
    return " · ".join(part for part in (header.name, header.quantisation) if part)


def short_words(verdict: Verdict) -> str:
    """A verdict in two or three words."""
    match verdict.kind:
        case VerdictKind.SAME:
            return "same vocabulary"
        case VerdictKind.SAME_PADDED:
            return "same vocabulary, padded"
        case VerdictKind.DIFFERS if verdict.usable:
            return "nearly the same vocabulary"
        case VerdictKind.DIFFERS:
            return "vocabulary differs"
        case VerdictKind.OTHER_TOKENIZER:
            return "other tokenizer"
        case _:
            return "cannot be used"
