"""Whether a draft model can draft for a target: one verdict for the window, the command line and the engine.

A draft model reads the target's token ids and answers with token ids, so what counts is that every id which a text of
the target can hold means the same to both. How a file would split text itself (merges, pre-tokenizer, scores), its
chat template, and unused ids do not count: the target alone turns text into tokens and tokens into text.

llama.cpp's rule (`common_speculative_are_compatible`) is followed but for three points. It does not look at the ids 0
to 4, which are ordinary text in many vocabularies: we do. It refuses sizes that are more than 128 apart: padding of any
length is fine here. It accepts a target with tokens beyond the draft's last one, which stop the process when the draft
is to read them: we refuse, unless they are padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import compress, count
from operator import ne
from pathlib import Path
from typing import Any

import numpy as np

from forespeak.models.gguf import GgufError, GgufHeader, GgufKind, Problem
from forespeak.models.vocabulary import Vocabulary, cached_header, cached_vocabulary
from forespeak.pairing.tokens import is_padding, is_same_symbol, named, shares_role


class VerdictKind(Enum):
    """How two vocabularies relate."""

    SAME = "same vocabulary"
    SAME_PADDED = "same but padded"
    DIFFERS = "differs in some tokens"
    OTHER_TOKENIZER = "other tokenizer"
    CANNOT = "cannot be compared or used"


class Obstacle(Enum):
    """Why one of the two files cannot take part, whatever its vocabulary."""

    UNREADABLE = "unreadable"
    SHARD_MISSING = "a part is missing"
    LATER_SHARD = "not the first part"
    PROJECTOR = "projector"
    ADAPTER = "adapter"
    IMATRIX = "importance matrix"
    ENCODER = "writes no text"
    DRAFT_HEAD = "belongs inside one target"
    NO_VOCABULARY = "no vocabulary"
    VOCABULARY_ONLY = "no weights"
    NO_MODEL = "no model"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` is one or two sentences for people, `evidence` what they rest on (plain JSON values).

    `usable`: the draft may serve the target as its draft model now. `obstacle` is set where a file itself is the reason
    why not; with VOCABULARY_ONLY, `kind` still tells about the vocabularies.
    """

    kind: VerdictKind
    usable: bool
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)
    obstacle: Obstacle | None = None


def compatibility(target: Path, draft: Path) -> Verdict:
    """The verdict on two GGUF files. Never raises for what a file holds or lacks: that is a verdict too."""
    found: list[tuple[Path, Vocabulary]] = []
    without_weights = []
    for side, path in (("target", target), ("draft", draft)):
        try:
            header = cached_header(path)
            problem = _problem(header)
            if problem is not None:
                obstacle, reason = problem
                return _cannot(obstacle, reason, side, path)
            if header.is_vocabulary_only:
                without_weights.append(side)
            found.append((path, cached_vocabulary(path)))
        except GgufError as error:
            obstacle = Obstacle.NO_VOCABULARY if error.problem is Problem.NO_VOCABULARY else Obstacle.UNREADABLE
            return _cannot(obstacle, f"{error.what} {error.why}".strip(), side, path, problem=error.problem.value)
    (_, target_vocabulary), (_, draft_vocabulary) = found
    verdict = compare(target_vocabulary, draft_vocabulary)
    evidence = {"target_file": target.name, "draft_file": draft.name, **verdict.evidence}
    if not without_weights:
        return Verdict(verdict.kind, verdict.usable, verdict.reason, evidence)
    who = "Both files hold" if len(without_weights) == 2 else f"The {without_weights[0]}'s file holds"
    return Verdict(
        verdict.kind,
        False,
        f"{who} a vocabulary but no weights. {verdict.reason}",
        {**evidence, "without_weights": without_weights, "vocabularies_fit": verdict.usable},
        Obstacle.VOCABULARY_ONLY,
    )


def refusal(target: Path, draft: Path) -> str | None:
    """Why the draft cannot serve the target, in words, or None if it can (an `engines.engine.PairCheck`)."""
    verdict = compatibility(target, draft)
    return None if verdict.usable else verdict.reason


def compare(target: Vocabulary, draft: Vocabulary) -> Verdict:
    """The verdict on two vocabularies, as if both files held weights."""
    evidence: dict[str, Any] = {"target": _facts(target), "draft": _facts(draft)}
    if target.model != draft.model:
        first = next(iter(_different_ids(target, draft)), None)
        evidence["first"] = None if first is None else _both(target, draft, first)
        names = f"{_TOKENIZERS.get(target.model, target.model)} in the target and "
        names += _TOKENIZERS.get(draft.model, draft.model)
        return Verdict(VerdictKind.OTHER_TOKENIZER, False, f"The tokenizer is {names} in the draft.", evidence)

    differences = _different_ids(target, draft)
    shared = min(target.size, draft.size)
    if 2 * len(differences) > shared:
        first = next((token for token in differences if not _is_harmless(target, draft, token)), None)
        if first is not None:
            evidence |= {"differences": len(differences), "first": _both(target, draft, first)}
            reason = f"Of {shared:,} tokens {len(differences):,} differ. {_difference(target, draft, first)}"
            return Verdict(VerdictKind.OTHER_TOKENIZER, False, reason, evidence)

    differences = [token for token in differences if not (is_padding(target, token) and is_padding(draft, token))]
    longer = target if target.size > draft.size else draft
    surplus = [token for token in range(shared, longer.size) if not is_padding(longer, token)]
    differences += surplus
    refusing = [token for token in differences if not _is_harmless(target, draft, token)]
    settings = list(_unequal_settings(target, draft))
    notes = list(_notes(target, draft))
    evidence |= {
        "differences": len(differences),
        "refusing_differences": len(refusing),
        "first": _both(target, draft, (refusing or differences)[0]) if differences else None,
        "padding": longer.size - shared - len(surplus),
        "settings": [name for name, _ in settings],
        "notes": notes,
    }
    if refusing or settings:
        sentences = [_difference(target, draft, refusing[0])] if refusing else []
        if len(refusing) > 1:
            sentences.append(f"In all {len(refusing):,} tokens differ.")
        sentences += [sentence for _, sentence in settings]
        return Verdict(VerdictKind.DIFFERS, False, " ".join(sentences), evidence)
    if differences:
        sentences = [_difference(target, draft, differences[0])]
        if len(differences) > 1:
            sentences.append(f"In all {len(differences):,} tokens differ.")
        sentences.append("None of them can mislead the draft.")
        return Verdict(VerdictKind.DIFFERS, True, " ".join([*sentences, *notes]), evidence)
    if target.size != draft.size:
        who = "target" if longer is target else "draft"
        padding = f"the {who}'s list is padded with {longer.size - shared:,} unused ones"
        reason = f"Both have the same {shared:,} tokens; {padding}."
        return Verdict(VerdictKind.SAME_PADDED, True, " ".join([reason, *notes]), evidence)
    return Verdict(VerdictKind.SAME, True, " ".join([f"Both have the same {shared:,} tokens.", *notes]), evidence)


_TOKENIZERS = {
    "gpt2": "byte-level BPE",
    "llama": "SentencePiece",
    "gemma4": "Gemma's BPE",
    "bert": "WordPiece",
    "t5": "Unigram",
    "rwkv": "RWKV's",
    "plamo2": "PLaMo's",
}

_OBSTACLES = {
    GgufKind.PROJECTOR: (Obstacle.PROJECTOR, "is a projector for images or sound, not a language model"),
    GgufKind.ADAPTER: (Obstacle.ADAPTER, "is an adapter for another model, not a whole one"),
    GgufKind.IMATRIX: (Obstacle.IMATRIX, "holds figures for quantising a model, not a model"),
    GgufKind.ENCODER: (Obstacle.ENCODER, "does not write text: it is an encoder"),
    GgufKind.DRAFT_HEAD: (Obstacle.DRAFT_HEAD, "is a draft head made for one target, and no model of its own"),
    GgufKind.OTHER: (Obstacle.NO_MODEL, "does not say what model it is"),
}


def _problem(header: GgufHeader) -> tuple[Obstacle, str] | None:
    """Why this file cannot take part. Raises GgufError for a part of a split model that is missing or damaged."""
    name = header.path.name
    number, parts = header.shard
    if header.kind is GgufKind.LATER_SHARD:
        return Obstacle.LATER_SHARD, f"“{name}” is part {number} of {parts} of a model; the first part stands for all."
    if header.kind in _OBSTACLES:
        obstacle, words = _OBSTACLES[header.kind]
        return obstacle, f"“{name}” {words}."
    for part in range(2, parts + 1):
        sibling = header.path.with_name(name.replace(f"-00001-of-{parts:05d}.gguf", f"-{part:05d}-of-{parts:05d}.gguf"))
        if sibling == header.path or not sibling.is_file():
            return Obstacle.SHARD_MISSING, f"Part {part} of {parts} of “{name}” is missing."
        cached_header(sibling)
    return None


def _cannot(obstacle: Obstacle, reason: str, side: str, path: Path, **more: str) -> Verdict:
    evidence = {"side": side, "file": path.name, "obstacle": obstacle.value, **more}
    return Verdict(VerdictKind.CANNOT, False, reason, evidence, obstacle)


def _different_ids(target: Vocabulary, draft: Vocabulary) -> list[int]:
    """The ids within both vocabularies that do not mean the same, in order."""
    shared = min(target.size, draft.size)
    if target.tokens == draft.tokens:
        texts = []
    else:
        texts = list(compress(count(), map(ne, target.tokens, draft.tokens)))
    other_text = set(texts)
    other_types = [
        token
        for token in np.flatnonzero(target.types[:shared] != draft.types[:shared]).tolist()
        if token not in other_text and not is_same_symbol(target, draft, token)
    ]
    return sorted(texts + other_types)


def _is_harmless(target: Vocabulary, draft: Vocabulary, token: int) -> bool:
    """Whether a difference cannot matter: the target never writes the token, or it has the same function in both."""
    if token >= target.size:
        return True  # the draft never proposes what the target does not have
    return is_padding(target, token) or (token < draft.size and shares_role(target, draft, token))


def _unequal_settings(target: Vocabulary, draft: Vocabulary) -> Iterator[tuple[str, str]]:
    """What is put around every text, where it is not the same. The ids decide: names may differ."""
    for setting, verb, ours, theirs in (
        ("add_bos_token", "begins", target.bos if target.add_bos else None, draft.bos if draft.add_bos else None),
        ("add_eos_token", "ends", target.eos if target.add_eos else None, draft.eos if draft.add_eos else None),
    ):
        if ours != theirs:
            words = [
                f"{verb} every text with {named(vocabulary, token)}"
                if token is not None
                else f"{verb} texts without a special token"
                for vocabulary, token in ((target, ours), (draft, theirs))
            ]
            yield setting, f"The target {words[0]}, and the draft {words[1]}."


def _notes(target: Vocabulary, draft: Vocabulary) -> Iterator[str]:
    """Differences worth knowing that do not keep the draft from drafting."""
    if target.pre != draft.pre or target.merges_digest != draft.merges_digest:
        yield "They split text by different rules. Only the target's is used, so the draft may guess a little worse."
    if (target.eos, target.eot) != (draft.eos, draft.eot):
        yield "They end a reply with different tokens; only the target's count."


def _difference(target: Vocabulary, draft: Vocabulary, token: int) -> str:
    if token >= draft.size:
        name = named(target, token, capital=True)
        return f"{name} of the target is unknown to the draft, whose last token is {draft.size - 1}."
    if token >= target.size:
        return f"{named(draft, token, capital=True)} of the draft is unknown to the target, which never writes it."
    ours, theirs = named(target, token, bare=True), named(draft, token, bare=True)
    if ours != theirs:
        return f"Token {token} is {ours} in the target and {theirs} in the draft."
    kinds = [v.type_of(token).name.lower().replace("_", "-") for v in (target, draft)]
    return f"Token {token}, {ours}, is of the kind “{kinds[0]}” in the target and “{kinds[1]}” in the draft."


def _both(target: Vocabulary, draft: Vocabulary, token: int) -> dict[str, Any]:
    return {
        "id": token,
        "target": target.tokens[token].decode("utf-8", "replace") if token < target.size else None,
        "draft": draft.tokens[token].decode("utf-8", "replace") if token < draft.size else None,
    }


def _facts(vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "tokenizer": vocabulary.model,
        "pre_tokenizer": vocabulary.pre,
        "tokens": vocabulary.size,
        "bos": vocabulary.bos,
        "eos": vocabulary.eos,
        "eot": vocabulary.eot,
        "add_bos": vocabulary.add_bos,
        "add_eos": vocabulary.add_eos,
    }
