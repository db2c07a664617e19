"""Candidates, tests and kept pairs in the words of the pairing wizard."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from PySide6.QtCore import QCoreApplication, QDate, QLocale

from forespeak.models.memory import Fit, MemoryPlan
from forespeak.models.sizes import size_words
from forespeak.pairing.candidates import Candidate, CandidateKind
from forespeak.pairing.making import is_made_from
from forespeak.pairing.named_pair import NamedPair
from forespeak.pairing.offers import Offer, Place
from forespeak.pairing.ranking import Measurement
from forespeak.pairing.verdict import Verdict, VerdictKind
from forespeak.ui.badge import BadgeTone
from forespeak.ui.wizard_fetcher import Wanted
from forespeak.ui.wizard_finder import Found

LONGEST_TOKEN = 24
WORTH_IT, SLOWER = 1.05, 0.95


def key_of(candidate: Candidate) -> str:
    """What tells a candidate from all others, also after a restart and once it is downloaded."""
    offer = candidate.offer
    if offer is None:
        return candidate.kind.name.lower()
    if offer.path is not None:
        return str(offer.path)
    return Wanted(offer.group, offer.good).key or offer.name


@dataclass(frozen=True, slots=True)
class CandidateLine:
    """A row of the list of drafts. `problem`: why it cannot draft, in full; `details`: all that is known, in full."""

    key: str
    name: str
    place: str
    badge: str
    tone: BadgeTone
    reason: str
    memory: str
    memory_note: str
    gain: str
    gain_note: str
    is_here: bool
    problem: str = ""
    details: str = ""
    makes: bool = False
    """It has to be made from the target first."""


def line_of(candidate: Candidate, found: Found) -> CandidateLine:
    badge, tone, reason = _verdict(candidate)
    memory, memory_note = _memory(candidate, found)
    gain, gain_note = _gain(candidate)
    offer = candidate.offer
    name = candidate.name
    if candidate.kind is CandidateKind.LOOKUP:
        name = _tr("No model: n-grams of the chat")
    elif offer is not None and offer.group is not None:
        name = offer.group.name
    elif offer is not None and offer.good is not None:
        name = offer.good.name
    # Repos of MLX models write 4bit and fp16, where the label says 4-bit and F16.
    if offer is not None and offer.label and _plain(offer.label) not in _plain(name):
        name = f"{name} · {offer.label}"
    return CandidateLine(
        key_of(candidate),
        name,
        _place(offer, candidate.kind, found.target),
        badge,
        tone,
        reason,
        memory,
        memory_note,
        gain,
        gain_note,
        offer is None or offer.place is Place.HERE,
        "" if candidate.excluded is None else _full_problem(candidate),
        _details(candidate),
        offer is not None and offer.making is not None,
    )


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("fp", "f")


def _place(offer: Offer | None, kind: CandidateKind, target: Offer) -> str:
    if offer is None:
        return _tr("nothing to load") if kind is CandidateKind.LOOKUP else ""
    size = size_words(offer.size_bytes) if offer.size_bytes else ""
    if offer.making is not None:
        return _tr("to be made, about {size}").format(size=size) if size else _tr("to be made")
    if target.path is not None and offer.path is not None and is_made_from(target.path, offer.path):
        return " · ".join((_tr("made from the target"), size))
    where = _tr("on disk") if offer.place is Place.HERE else _tr("on the Hub")
    repo = offer.group.repo if offer.group is not None else "" if offer.good is None else offer.good.repo
    return " · ".join(part for part in (where, size, repo) if part)


def _verdict(candidate: Candidate) -> tuple[str, BadgeTone, str]:
    verdict = candidate.verdict
    if candidate.kind is CandidateKind.LOOKUP:
        if candidate.excluded is None:
            return _tr("always possible"), BadgeTone.GOOD, ""
        return _tr("cannot"), BadgeTone.BAD, _first_sentence(candidate.excluded)
    if candidate.excluded is not None and (verdict is None or verdict.usable):
        # The words of the one that excluded it say which of these it is.
        memory = candidate.memory
        if memory is not None and memory.fit is Fit.TOO_LARGE:
            return _tr("too large"), BadgeTone.BAD, _first_sentence(candidate.excluded)
        if candidate.prediction is not None:
            return _tr("too slow"), BadgeTone.BAD, _first_sentence(candidate.excluded)
        made = candidate.kind is CandidateKind.REQUANTISED
        words = _tr("cannot be made") if made else _tr("not possible yet")
        return words, BadgeTone.QUIET, _first_sentence(candidate.excluded)
    if verdict is None:
        return _tr("not compared yet"), BadgeTone.QUIET, _tr("its vocabulary is not known here")
    return _on_vocabularies(verdict)


def _on_vocabularies(verdict: Verdict) -> tuple[str, BadgeTone, str]:
    count = _count(verdict, "target")
    match verdict.kind:
        case VerdictKind.SAME:
            words = "" if count is None else _tr("{count} tokens, all equal").format(count=f"{count:,}")
            return _tr("same vocabulary"), BadgeTone.GOOD, words
        case VerdictKind.SAME_PADDED:
            padding = verdict.evidence.get("padding")
            words = _tr("equal but for {count} unused tokens").format(count=f"{padding:,}") if padding else ""
            return _tr("same but padded"), BadgeTone.GOOD, words
        case VerdictKind.DIFFERS if verdict.usable:
            number = verdict.evidence.get("differences", 0)
            words = _tr("{count} tokens differ, none matters").format(count=f"{number:,}")
            return _tr("nearly the same"), BadgeTone.GOOD, words
        case VerdictKind.DIFFERS:
            return _tr("differs"), BadgeTone.BAD, _first_difference(verdict) or _first_sentence(verdict.reason)
        case VerdictKind.OTHER_TOKENIZER:
            return _tr("other tokenizer"), BadgeTone.CAUTION, _first_difference(verdict)
    return _tr("cannot"), BadgeTone.BAD, _first_sentence(verdict.reason)


def _count(verdict: Verdict, side: str) -> int | None:
    facts = verdict.evidence.get(side)
    count = facts.get("tokens") if isinstance(facts, dict) else None
    return count if isinstance(count, int) else None


def _first_difference(verdict: Verdict) -> str:
    first = verdict.evidence.get("first")
    if not isinstance(first, dict):
        return ""
    words = _tr("token {id}: {target} in the target, {draft} in the draft")
    return words.format(id=first.get("id"), target=_quoted(first.get("target")), draft=_quoted(first.get("draft")))


def _quoted(text: object) -> str:
    if not isinstance(text, str):
        return _tr("none")
    text = text.replace("\n", "⏎").replace("\t", "⇥")
    return f"“{text[:LONGEST_TOKEN]}…”" if len(text) > LONGEST_TOKEN else f"“{text}”"


def _full_problem(candidate: Candidate) -> str:
    """The reason, and what it rests on."""
    lines = [candidate.excluded or ""]
    verdict = candidate.verdict
    first = None if verdict is None or verdict.usable else verdict.evidence.get("first")
    if verdict is not None and isinstance(first, dict):
        if f"Token {first.get('id')} " not in lines[0]:
            lines.append(_tr("First difference: {words}.").format(words=_first_difference(verdict)))
        ours, theirs = _count(verdict, "target"), _count(verdict, "draft")
        if ours is not None and theirs is not None:
            counts = _tr("The target has {ours} tokens, the draft {theirs}.")
            lines.append(counts.format(ours=f"{ours:,}", theirs=f"{theirs:,}"))
    return "\n".join(lines)


def _memory(candidate: Candidate, found: Found) -> tuple[str, str]:
    plan = candidate.memory
    alone = candidate.offer is None
    if isinstance(plan, MemoryPlan):
        free = sum(device.free_bytes for device in plan.devices)
        who = _tr("target") if alone else _tr("both")
        context = plan.context_length
        length = f"{context // 1024}k" if context >= 1024 and context % 1024 == 0 else f"{context:,}"
        note = _tr("{who}, {length} context").format(who=who, length=length)
        return _of(plan.needed_bytes, free), note
    if plan is not None and candidate.offer is not None:
        needed = found.target.size_bytes + candidate.offer.size_bytes
        return _tr("about {share}").format(share=_of(needed, found.free_bytes)), _tr("both files")
    return "", ""


def _of(needed: int, free: int) -> str:
    return _tr("{needed:.1f} of {free:.1f} GB").format(needed=needed / 1e9, free=free / 1e9)


def _gain(candidate: Candidate) -> tuple[str, str]:
    if candidate.measurement is not None:
        when = day_words(candidate.measurement.measured_at)
        return times(candidate.measurement.speed_up.value), _tr("measured {day}").format(day=when)
    if candidate.prediction is not None:
        gain = candidate.prediction.speed_up
        low, high = f"{gain.low:.1f}", f"{gain.high:.1f}"
        note = _tr("by task") if candidate.kind is CandidateKind.LOOKUP else _tr("predicted")
        return (f"{low}×" if low == high else f"{low} – {high}×"), note
    return "—", ""


def _details(candidate: Candidate) -> str:
    lines = []
    if candidate.verdict is not None and candidate.excluded is None:
        lines.append(candidate.verdict.reason)
    if candidate.kind is CandidateKind.LOOKUP and candidate.excluded is None:
        lines.append(_tr("The text itself is looked up for what came next: nothing more to load."))
    if candidate.memory is not None and candidate.excluded is None:
        lines.append(candidate.memory.sentence)
    measured, predicted = candidate.measurement, candidate.prediction
    if measured is not None:
        lines.append(measured_words(measured))
    elif predicted is not None:
        words = _tr("Predicted: {low:.0f} to {high:.0f} tokens/s with drafts, {plain:.0f} without.")
        if predicted.plain.value < 10:
            words = _tr("Predicted: {low:.1f} to {high:.1f} tokens/s with drafts, {plain:.1f} without.")
        fast = predicted.speculative
        lines.append(words.format(low=fast.low, high=fast.high, plain=predicted.plain.value))
    if candidate.offer is not None and candidate.offer.making is not None and candidate.excluded is None:
        lines.append(_tr("The target's own weights in a coarser format: they are written anew in a minute or two."))
    lines += [advice.words for advice in candidate.advice]
    return " ".join(line for line in lines if line)


# Measurements


class Outcome(Enum):
    WORTH_IT = "worth it"
    NO_DIFFERENCE = "no difference"
    SLOWER = "slower"


def outcome_of(measured: Measurement) -> Outcome:
    """What a test says, if its range does not say the opposite as well."""
    gain = measured.speed_up
    if gain.value >= WORTH_IT and gain.low > 1.0:
        return Outcome.WORTH_IT
    if gain.value <= SLOWER and gain.high < 1.0:
        return Outcome.SLOWER
    return Outcome.NO_DIFFERENCE


def outcome_words(measured: Measurement, pauses: tuple[str, ...] = (), *, looks_up: bool = False) -> tuple[str, str]:
    """(the answer in a few words, why). `pauses`: why prompts were answered without any draft, where they were."""
    gain, accepted = measured.speed_up, measured.acceptance
    share = share_words(accepted)
    match outcome_of(measured):
        case Outcome.WORTH_IT:
            head = _tr("Worth it: {gain} as fast").format(gain=times(gain.value))
            why = _tr("{share} of the drafted tokens that were tested were right, and each of those saves a step.")
        case Outcome.SLOWER:
            head = _tr("Slower: {gain} as fast").format(gain=times(gain.value))
            why = _tr("Only {share} of the drafted tokens were right: testing the others took more than they saved.")
            if accepted is not None and accepted >= 0.6:
                why = _tr("{share} of the drafted tokens were right, but drafting them took longer than they saved.")
        case _:
            head = _tr("No clear difference: {gain} as fast").format(gain=times(gain.value))
            why = _tr("{share} of the drafted tokens were right: about what drafting and testing them cost.")
            if gain.high / gain.low > 1.25:
                why += " " + _tr("The prompts differed much; your own texts may gain or lose.")
    if accepted is None:
        why = pauses[0] if pauses else _tr("Nothing was drafted.")
        if looks_up:
            why = _tr("Nothing in these texts repeated: there was nothing to look up.")
    return head, why.format(share=share) if accepted is not None else why


def measured_words(measured: Measurement) -> str:
    words = _tr("Measured on {day}: {fast:.1f} tokens/s with drafts, {plain:.1f} without.")
    day = day_words(measured.measured_at)
    return words.format(day=day, fast=measured.speculative, plain=measured.plain)


def share_words(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}".replace("%", " %")


def times(value: float) -> str:
    return f"{value:.2f}×" if value < 10 else f"{value:.0f}×"


def day_words(when: str) -> str:
    """A day, as the system writes days; the year only if it was another one. `when` is an ISO time."""
    moment = datetime.fromisoformat(when).astimezone()
    day = QDate(moment.year, moment.month, moment.day)
    return QLocale().toString(day, "d MMM" if day.year() == QDate.currentDate().year() else "d MMM yyyy")


# Kept pairs


def parity_words(pair: NamedPair) -> str:
    """What a parity check of the pair found, in a few words."""
    result = pair.parity
    if result is None:
        return _tr("not checked")
    if result.faults:
        return _tr("{count} replies differ").format(count=result.faults)
    if result.tested == 0:
        return _tr("checked without drafts")
    if result.ties:
        return _tr("same words but for {count} ties").format(count=result.ties)
    return _tr("same words")


def usual_name(target: str, draft: str | None) -> str:
    """What a pair is called unless somebody gives it another name."""
    return f"{target} + {draft}" if draft is not None else _tr("{target} + n-grams").format(target=target)


def work_words(kind: str) -> str:
    """A kind of work (`quick_prompts.KINDS_OF_WORK`) as an entry of a list."""
    return {
        "code": _tr("Code"),
        "prose": _tr("Prose"),
        "documents": _tr("Documents: quoting and rewriting"),
        "chat": _tr("Chat: a little of everything"),
        "json": _tr("Structured data (JSON)"),
        "translation": _tr("Translation"),
    }.get(kind, kind.capitalize())


def _first_sentence(words: str) -> str:
    head, dot, rest = words.partition(". ")
    return f"{head}." if dot and rest else words


def _tr(words: str) -> str:
    return QCoreApplication.translate("Wizard", words)
