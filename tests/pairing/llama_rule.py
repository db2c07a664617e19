"""llama.cpp's own rule for a draft, the vocabularies to hold ours against it, and why the two part where they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forespeak.models.vocabulary import TokenType, Vocabulary
from forespeak.pairing.tokens import is_padding, is_same_symbol, shares_role
from forespeak.pairing.verdict import Verdict
from models.gguf_writer import CONTROL, USER_DEFINED, ModelFile

_TYPES = {"gemma4": "gpt2", "hybriddna": "gpt2", "whitespace": "gpt2"}
"""Kinds of tokenizer that are one type to llama.cpp (src/llama-vocab.cpp)."""
MOST_APART, FIRST_COMPARED = 128, 5


def llama_rule(target: Vocabulary, draft: Vocabulary) -> str | None:
    """Why llama.cpp refuses the draft (common/speculative.cpp, `common_speculative_are_compatible`), or None."""
    kinds = [_TYPES.get(v.model, v.model) for v in (target, draft)]
    if kinds[0] != kinds[1]:
        return "type"
    if target.add_bos != draft.add_bos or (target.add_bos and target.bos != draft.bos):
        return "BOS"
    if target.add_eos != draft.add_eos or (target.add_eos and target.eos != draft.eos):
        return "EOS"
    if abs(target.size - draft.size) > MOST_APART:
        return "size"
    shared = min(target.size, draft.size)
    if target.tokens[FIRST_COMPARED:shared] != draft.tokens[FIRST_COMPARED:shared]:
        return "text"
    return None


def justification(target: Vocabulary, draft: Vocabulary, ours: Verdict) -> str | None:
    """Why our verdict is another than llama.cpp's, found anew from the vocabularies; None if nothing justifies it."""
    theirs = llama_rule(target, draft)
    shared = min(target.size, draft.size)
    texts = [token for token in range(shared) if target.tokens[token] != draft.tokens[token]]
    if not ours.usable and theirs is None:
        beyond = [token for token in range(shared, target.size) if not is_padding(target, token)]
        if beyond:
            return f"the target can write token {beyond[0]}, which the draft cannot read: llama.cpp then stops"
        if texts and not is_padding(target, texts[0]):
            return f"token {texts[0]} is other text, and llama.cpp does not look below {FIRST_COMPARED}"
        for token in range(shared):
            if target.types[token] != draft.types[token] and not is_same_symbol(target, draft, token):
                return f"token {token} is a command to one and text to the other, which llama.cpp does not look at"
        if target.model != draft.model:
            return "the kinds of tokenizer write the same bytes differently, which are one type to llama.cpp"
    if ours.usable and theirs == "size":
        longer = target if target.size > draft.size else draft
        written = [token for token in range(shared, longer.size) if not is_padding(longer, token)]
        if not written:
            return f"the {abs(target.size - draft.size):,} tokens more are padding, which no text holds"
        if longer is draft:
            return "the tokens more are the draft's, and what the target lacks is never proposed"
    if ours.usable and theirs == "text":
        if all(is_padding(target, token) for token in texts):
            return f"token {texts[0]} is written by no text of the target"
        if all(is_padding(target, token) or shares_role(target, draft, token) for token in texts):
            return f"token {texts[0]} has the same function in both, only its name differs"
    return None


def words(count: int = 400, **changes: Any) -> ModelFile:
    """A vocabulary of words that stand for nothing, with an end token."""
    tokens: list[str | bytes] = [*(f"w{index}" for index in range(count - 1)), "<|im_end|>"]
    kinds = [int(TokenType.NORMAL)] * (count - 1) + [CONTROL]
    made = ModelFile(tokens, kinds, settings={"bos_token_id": count - 1, "eos_token_id": count - 1})
    return replace(made, **changes)


def changed(file: ModelFile, token: int, text: str, kind: int | None = None) -> ModelFile:
    tokens, kinds = list(file.tokens), list(file.types or [])
    tokens[token] = text
    kinds[token] = kinds[token] if kind is None else kind
    return replace(file, tokens=tokens, types=kinds)


def longer(file: ModelFile, *texts: str, kind: int = USER_DEFINED) -> ModelFile:
    return replace(file, tokens=[*file.tokens, *texts], types=[*(file.types or []), *([kind] * len(texts))])


def padded(file: ModelFile, size: int) -> ModelFile:
    return longer(file, *(f"[PAD{token}]" for token in range(len(file.tokens), size)))


def told(file: ModelFile, **settings: Any) -> ModelFile:
    return replace(file, settings={**file.settings, **settings})


def synthetic() -> dict[str, tuple[ModelFile, ModelFile]]:
    """(target, draft) by what is the matter with them."""
    some, wide = words(), words(151_643)
    swapped = replace(some, tokens=[*some.tokens[:1], *some.tokens[1:399][::-1], *some.tokens[399:]])
    large = words(262_144)
    return {
        "the same": (some, some),
        "padding: 152,064 against 151,936": (padded(wide, 152_064), padded(wide, 151_936)),
        "padding: 152,064 against none": (padded(wide, 152_064), wide),
        "token 3 differs": (some, changed(some, 3, "x")),
        "token 139 differs": (some, changed(some, 139, "x")),
        "the last token differs": (words(399), changed(words(399), 397, "x")),
        "begins texts with BOS": (told(some, add_bos_token=True), some),
        "another BOS, added by neither": (some, told(some, bos_token_id=0)),
        "another BOS, added by both": (
            told(some, add_bos_token=True),
            told(some, add_bos_token=True, bos_token_id=0),
        ),
        "the same tokens in another order": (some, swapped),
        "merges differ": (some, replace(some, merges=["a b"])),
        "a tool token added to the target": (longer(some, "<tool_call>"), some),
        "a tool token added to the draft": (some, longer(some, "<tool_call>")),
        "200 tokens added to the draft": (some, longer(some, *(f"more{index}" for index in range(200)))),
        "a command in one, text in the other": (some, changed(some, 139, "w139", CONTROL)),
        "the end under another name": (some, changed(some, 399, "</s>")),
        "unused tokens under other names": (longer(some, "<unused0>"), longer(some, "<|reserved_5|>")),
        "262,144 tokens": (large, large),
        "262,144 tokens, the last but one differs": (large, changed(large, 262_142, "x")),
    }
