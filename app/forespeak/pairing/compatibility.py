"""Whether a draft model can draft for a target: one verdict for the window, the command line and the engine.

What the files are is looked at first (`members`), then whether their vocabularies fit (`vocabularies`). A verdict on
vocabularies depends on their content alone, and is remembered by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forespeak.errors import UserFacingError
from forespeak.models.formats import NO_MLX, ModelFormat, mlx_is_installed
from forespeak.models.gguf import GgufError, Problem
from forespeak.pairing.heads import mismatch
from forespeak.pairing.members import Hindrance, Member, member_at
from forespeak.pairing.verdict import Obstacle, Verdict, VerdictKind
from forespeak.pairing.verdict_cache import VerdictCache
from forespeak.pairing.vocabularies import compare

__all__ = [
    "Judge",
    "Obstacle",
    "Verdict",
    "VerdictKind",
    "cannot_draft",
    "compare",
    "compatibility",
    "judge",
    "refusal",
    "see_that_it_can_draft",
]

_NO_ROLLBACK = (
    "“{}” keeps what it has read in a state from which nothing can be taken back, so drafts cannot be tested."
)
_NO_REDRAFT = (
    "“{}” keeps what it has read in a state from which nothing can be taken back, so what it drafts in vain could not "
    "be forgotten."
)


def compatibility(target: Path, draft: Path, cache: VerdictCache | None = None) -> Verdict:
    """The verdict on two models on disk. Never raises for what a file holds or lacks: that is a verdict too."""
    return judge(member_at(target), member_at(draft), cache)


def refusal(target: Path, draft: Path) -> str | None:
    """Why the draft cannot serve the target, in words, or None if it can (an `engines.engine.PairCheck`)."""
    verdict = compatibility(target, draft)
    return None if verdict.usable else verdict.reason


def cannot_draft(target: Path, draft: Path, reason: str) -> UserFacingError:
    """What is told of a draft that was asked for and refused."""
    return UserFacingError(
        f"{draft.name} cannot draft for {target.name}.", reason, "Choose another draft for this target."
    )


def see_that_it_can_draft(target: Path, draft: Path) -> None:
    """Before anything is loaded. Raises UserFacingError."""
    reason = refusal(target, draft)
    if reason is not None:
        raise cannot_draft(target, draft, reason)


@dataclass(frozen=True, slots=True)
class Judge:
    """`compatibility` and `refusal` that remember verdicts in a folder. Can be sent to another process."""

    folder: Path

    def verdict(self, target: Path, draft: Path) -> Verdict:
        return self.verdict_on(target, member_at(draft))

    def verdict_on(self, target: Path, draft: Member) -> Verdict:
        """On a draft that was looked at already, wherever it lies."""
        return judge(member_at(target), draft, VerdictCache(self.folder))

    def refusal(self, target: Path, draft: Path) -> str | None:
        verdict = self.verdict(target, draft)
        return None if verdict.usable else verdict.reason


def judge(target: Member, draft: Member, cache: VerdictCache | None = None) -> Verdict:
    """The verdict on two models, however they were looked at."""
    for side, member in (("target", target), ("draft", draft)):
        if member.hindrance is not None:
            return _cannot(member.hindrance, side, member)
    if target.is_head:
        words = f"“{target.name}” is a draft head made for one target, and no model of its own."
        return _cannot(Hindrance(Obstacle.DRAFT_HEAD, words), "target", target)
    if target.format is not draft.format:
        words = f"The target is in the {target.format.value} format and the draft in {draft.format.value}: "
        words += "one engine has to run both."
        return _cannot(Hindrance(Obstacle.OTHER_FORMAT, words), "draft", draft)
    if draft.is_head:
        return _on_head(target, draft, cache)
    verdict = _on_vocabularies(target, draft, cache)
    if verdict.kind is VerdictKind.CANNOT:
        return verdict
    names = {"target_file": target.name, "draft_file": draft.name}
    verdict = replace(verdict, evidence={**names, **verdict.evidence})
    bare = [side for side, member in (("target", target), ("draft", draft)) if member.is_vocabulary_only]
    if bare:
        who = "Both files hold" if len(bare) == 2 else f"The {bare[0]}'s file holds"
        who = "The file holds" if target.header is draft.header else who
        words = f"{who} a vocabulary but no weights."
        return _in_spite_of(verdict, Obstacle.VOCABULARY_ONLY, words, {"without_weights": bare})
    if target.format is ModelFormat.MLX and not mlx_is_installed():
        return _in_spite_of(verdict, Obstacle.NO_ENGINE, NO_MLX, {})
    if not target.can_roll_back:
        evidence = {"architecture": target.architecture, "vocabularies_fit": verdict.usable}
        return _cannot(Hindrance(Obstacle.NO_ROLLBACK, _NO_ROLLBACK.format(target.name)), "target", target, evidence)
    if draft.format is ModelFormat.MLX and not draft.can_roll_back:
        # As its engine does: mlx-lm gives a draft nothing to begin again from.
        evidence = {"architecture": draft.architecture, "vocabularies_fit": verdict.usable}
        return _cannot(Hindrance(Obstacle.NO_ROLLBACK, _NO_REDRAFT.format(draft.name)), "draft", draft, evidence)
    return verdict


def _on_vocabularies(target: Member, draft: Member, cache: VerdictCache | None) -> Verdict:
    known = target.fingerprint is not None and draft.fingerprint is not None
    if cache is not None and known:
        found = cache.find(str(target.fingerprint), str(draft.fingerprint))
        if found is not None:
            return found
    vocabularies = []
    for side, member in (("target", target), ("draft", draft)):
        try:
            vocabularies.append(member.read())
        except GgufError as error:
            obstacle = Obstacle.NO_VOCABULARY if error.problem is Problem.NO_VOCABULARY else Obstacle.UNREADABLE
            return _cannot(Hindrance(obstacle, f"{error.what} {error.why}".strip(), error.problem), side, member)
    verdict = compare(vocabularies[0], vocabularies[1])
    if cache is not None and known:
        cache.keep(str(target.fingerprint), str(draft.fingerprint), verdict)
    return verdict


def _on_head(target: Member, head: Member, cache: VerdictCache | None) -> Verdict:
    """Whether a head was made for this target; no head can be used yet."""
    assert target.header is not None
    assert head.header is not None
    other = mismatch(head.header, target.header)
    if other is None and head.fingerprint is not None and target.fingerprint is not None:
        verdict = _on_vocabularies(target, head, cache)
        if not verdict.usable:
            other = f"It was made for a target with another vocabulary. {verdict.reason}"
    words = f"“{head.name}” is a draft head. "
    if other is not None:
        hindrance = Hindrance(Obstacle.FOREIGN_HEAD, words + other)
    else:
        words += "Nothing in it speaks against this target, but draft heads cannot be used here yet."
        hindrance = Hindrance(Obstacle.DRAFT_HEAD, words)
    return _cannot(hindrance, "draft", head, {"head": head.architecture, "fits_target": other is None})


def _in_spite_of(verdict: Verdict, obstacle: Obstacle, words: str, evidence: dict[str, Any]) -> Verdict:
    """A verdict on vocabularies of files that cannot be used, which are told first."""
    return Verdict(
        verdict.kind,
        False,
        f"{words} {verdict.reason}",
        {**verdict.evidence, **evidence, "vocabularies_fit": verdict.usable},
        obstacle,
    )


def _cannot(hindrance: Hindrance, side: str, member: Member, more: dict[str, Any] | None = None) -> Verdict:
    evidence = {"side": side, "file": member.name, "obstacle": hindrance.obstacle.value, **(more or {})}
    if hindrance.problem is not None:
        evidence["problem"] = hindrance.problem.value
    return Verdict(VerdictKind.CANNOT, False, hindrance.reason, evidence, hindrance.obstacle)
