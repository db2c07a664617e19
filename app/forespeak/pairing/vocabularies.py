"""Whether a draft that reads and writes one vocabulary can draft for a target with another one.

A draft model reads the target's token ids and answers with token ids, so what counts is that every id which a text of
the target can hold means the same to both. How a file would split text itself (merges, pre-tokenizer, scores), its
chat template, and unused ids do not count: the target alone turns text into tokens and tokens into text.

llama.cpp's rule (`common_speculative_are_compatible`) is followed but for these points. It does not look at the ids 0
to 4, which are ordinary text in many vocabularies: we do. It refuses sizes that are more than 128 apart: padding of any
length is fine here. It accepts a target with tokens beyond the draft's last one, which stop the process when the draft
is to read them: we refuse, unless they are padding. It looks at texts only: we also look at types, since an id that one
model takes for a command and the other for plain text is not the same token. It refuses another text of an id that the
target never writes, or whose function is the same in both: we do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, count
from operator import ne
from typing import Any

import numpy as np

from forespeak.models.vocabulary import Vocabulary
from forespeak.pairing.tokens import can_be_written, is_padding, is_same_symbol, named, shares_role
from forespeak.pairing.verdict import Verdict, VerdictKind

RULES = 1
"""Grows with every change of what is judged here, so that nothing judged by older rules is remembered."""

NEEDS_RETOKENISING = "Its drafts would have to be cut into the target's tokens anew, which this app cannot do yet."

_TOKENIZERS = {
    "gpt2": "byte-level BPE",
    "llama": "SentencePiece",
    "gemma4": "Gemma's BPE",
    "bert": "WordPiece",
    "t5": "Unigram",
    "rwkv": "RWKV's",
    "plamo2": "PLaMo's",
}


def compare(target: Vocabulary, draft: Vocabulary) -> Verdict:
    """The verdict on two vocabularies, as if both files held weights."""
    evidence: dict[str, Any] = {"target": _facts(target), "draft": _facts(draft)}
    if target.model != draft.model:
        first = next(iter(_different_ids(target, draft)), None)
        evidence["first"] = None if first is None else _both(target, draft, first)
        names = f"{_TOKENIZERS.get(target.model, target.model)} in the target and "
        names += _TOKENIZERS.get(draft.model, draft.model)
        reason = f"The tokenizer is {names} in the draft. {NEEDS_RETOKENISING}"
        return Verdict(VerdictKind.OTHER_TOKENIZER, False, reason, evidence)

    differences = _different_ids(target, draft)
    shared = min(target.size, draft.size)
    if 2 * len(differences) > shared:
        first = next((token for token in differences if not _is_harmless(target, draft, token)), None)
        if first is not None:
            evidence |= {"differences": len(differences), "first": _both(target, draft, first)}
            reason = f"Of {shared:,} tokens {len(differences):,} differ. {_difference(target, draft, first)}"
            return Verdict(VerdictKind.OTHER_TOKENIZER, False, f"{reason} {NEEDS_RETOKENISING}", evidence)

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
        sentences = []
        if refusing:
            sentences += [_difference(target, draft, refusing[0]), "The target can write it."]
        if len(refusing) > 1:
            sentences.append(f"In all {len(refusing):,} tokens differ.")
        sentences += [sentence for _, sentence in settings]
        return Verdict(VerdictKind.DIFFERS, False, " ".join(sentences), evidence)
    if differences:
        first = differences[0]
        sentences = [_difference(target, draft, first)]
        if can_be_written(target, first):
            sentences.append("It has the same function in both.")
        elif first < target.size:
            sentences.append("The target never writes it.")
        if len(differences) > 1:
            sentences.append(f"In all {len(differences):,} tokens differ.")
        sentences.append("None of them can mislead the draft." if len(differences) > 1 else "No draft is misled by it.")
        return Verdict(VerdictKind.DIFFERS, True, " ".join([*sentences, *notes]), evidence)
    if target.size != draft.size:
        who = "target" if longer is target else "draft"
        padding = f"the {who}'s list is padded with {longer.size - shared:,} unused ones"
        reason = f"Both have the same {shared:,} tokens; {padding}."
        return Verdict(VerdictKind.SAME_PADDED, True, " ".join([reason, *notes]), evidence)
    return Verdict(VerdictKind.SAME, True, " ".join([f"Both have the same {shared:,} tokens.", *notes]), evidence)


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
        "target_can_write": can_be_written(target, token),
        "draft_can_write": can_be_written(draft, token),
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
