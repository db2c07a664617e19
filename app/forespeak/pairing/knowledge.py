"""What is known on this computer of a target and its possible drafts: verdicts, memory, measurements, what was learned.

Reads headers and small files; nothing is loaded and no network is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from forespeak.models.formats import NO_MLX
from forespeak.models.gguf import GgufError
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.machine_memory import Machine
from forespeak.models.memory import MemorySettings, fitting_layers, plan, plan_of_files
from forespeak.models.model_layout import layout_of
from forespeak.models.on_disk import size_and_time
from forespeak.models.shards import shard_paths
from forespeak.models.vocabulary import cached_header
from forespeak.pairing.candidates import Knowledge, MemoryFit, rough_memory
from forespeak.pairing.compatibility import Judge, Obstacle, Verdict
from forespeak.pairing.making import made_header
from forespeak.pairing.members import Member
from forespeak.pairing.offers import Offer
from forespeak.pairing.pair_memory import PairFiles
from forespeak.pairing.pairs import NamedPairs
from forespeak.pairing.ranking import Measurement

RemoteMember = Callable[[HubFileGroup], Member | None]
"""What is known of a model on the Hub, if that was read already."""


def local_knowledge(
    target: Path,
    judge: Judge,
    named: NamedPairs,
    learned: PairFiles,
    memory: MemorySettings,
    machine: Machine,
    remote: RemoteMember = lambda _: None,
) -> Knowledge:
    """For a target on disk. Answers are found when they are asked for."""
    judged = judge.verdict(target, target)
    counts = _accepted(learned, target)

    def verdict(offer: Offer) -> Verdict | None:
        if offer.path is not None:
            return judge.verdict(target, offer.path)
        if offer.making is not None:
            # A copy has the same vocabulary.
            return judged
        member = None if offer.group is None else remote(offer.group)
        return None if member is None else judge.verdict_on(target, member)

    def fits(offer: Offer | None) -> MemoryFit | None:
        try:
            if offer is None or offer.path is not None:
                return plan_of_files(target, None if offer is None else offer.path, memory, machine)
            if offer.making is not None and not target.is_dir():
                headers = [cached_header(part) for part in shard_paths(target)]
                copy = layout_of([made_header(headers, offer.making.number_format)])
                original = layout_of(headers)
                return plan(original, copy, fitting_layers(original, copy, memory, machine), machine)
            return rough_memory(_size(target), offer.size_bytes, machine)
        except (GgufError, OSError):
            return None

    def measurement(offer: Offer | None) -> Measurement | None:
        if offer is not None and offer.path is None:
            return None
        return named.measurement(target, None if offer is None else offer.path)

    return Knowledge(
        _why_not(judged),
        verdict,
        fits,
        measurement,
        lambda offer: None if offer.path is None else counts.get(offer.path.absolute()),
    )


def _why_not(itself: Verdict) -> str | None:
    """What stands against any draft. That a model has its own vocabulary need not be told."""
    if itself.usable:
        return None
    return NO_MLX if itself.obstacle is Obstacle.NO_ENGINE else itself.reason


def _size(target: Path) -> int:
    """Of all that a model consists of. Raises OSError, GgufError."""
    return sum(size_and_time(part)[0] for part in ([target] if target.is_dir() else shard_paths(target)))


def _accepted(learned: PairFiles, target: Path) -> dict[Path, tuple[float, float]]:
    """Drafted tokens of the target's pairs by draft: (accepted, judged), of all rules and temperatures together."""
    found: dict[Path, tuple[float, float]] = {}
    for pair in learned.everything():
        if pair.draft is None or pair.target.absolute() != target.absolute():
            continue
        accepted, tested = found.get(pair.draft.absolute(), (0.0, 0.0))
        for more_accepted, more_tested in _counts(pair.values):
            accepted, tested = accepted + more_accepted, tested + more_tested
        if tested > 0.0:
            found[pair.draft.absolute()] = accepted, tested
    return found


def _counts(values: Mapping[str, Any]) -> list[tuple[float, float]]:
    drafting = values.get("drafting")
    models = drafting.get("models") if isinstance(drafting, dict) else None
    counts = []
    for judge in models.values() if isinstance(models, dict) else ():
        match judge:
            case {"acceptance": {"accepted": float() | int() as accepted, "tested": float() | int() as tested}}:
                if 0.0 <= accepted <= tested < 1e6:
                    counts.append((float(accepted), float(tested)))
    return counts
