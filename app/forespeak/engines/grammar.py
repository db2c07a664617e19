"""JSON schemas and grammars as constraints, through llguidance: for any engine whose vocabulary has bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from llguidance.gbnf_to_lark import any_to_lark

from forespeak.engines.thinking import Thoughts
from forespeak.errors import UserFacingError
from forespeak.speculation.constraint import GrammarConstraint, Mask
from forespeak.speculation.language_model import Vocabulary

_WHITE_SPACE = r" ?|\n{1,2}[ \t]{0,20}"
"""Between the parts of a JSON text. Bounded: small models like to go on with white space for ever."""

_NO_FORCING = '\n%llguidance {"no_forcing": true}\n'
"""Where only one text can follow, any tokens that spell it are allowed, not just one way of cutting it: a mask then
depends on the bytes so far alone, and no tokenizer is needed."""


_SCHEMA, _MEND_SCHEMA = "The JSON schema cannot be used.", "Correct the schema, then send the message again."
_GRAMMAR, _MEND_GRAMMAR = "The grammar cannot be used.", "Correct the grammar, then send the message again."
_NONE = Thoughts()


def parse_schema(schema: str) -> dict[str, Any] | bool:
    """A JSON schema from its text, with our white space where it does not ask for its own.

    Raises UserFacingError if it is no JSON, is no valid schema, or asks for what cannot be checked.
    """
    try:
        parsed = json.loads(schema)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UserFacingError(_SCHEMA, f"It is not valid JSON: {error.msg} ({where}).", _MEND_SCHEMA) from error
    if not isinstance(parsed, dict | bool):
        raise UserFacingError(_SCHEMA, "A schema is an object in braces, or true or false.", _MEND_SCHEMA)
    problem = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(schema))
    if problem and not problem.startswith("WARNING"):
        raise UserFacingError(_SCHEMA, f"In the schema: {_sentence(problem)}", _MEND_SCHEMA)
    if isinstance(parsed, dict):
        options = parsed.get("x-guidance")
        parsed["x-guidance"] = {
            "whitespace_pattern": _WHITE_SPACE,
            **(options if isinstance(options, dict) else {}),
        }
    return parsed


def parse_grammar(text: str) -> str:
    """A grammar in Lark from one in llama.cpp's GBNF or in Lark. Raises UserFacingError if it has a mistake."""
    try:
        lark: str = any_to_lark(text)
    except Exception as error:
        # The converter raises nothing narrower.
        raise UserFacingError(_GRAMMAR, f"In the grammar: {_sentence(str(error))}", _MEND_GRAMMAR) from error
    problem = LLMatcher.validate_grammar(LLMatcher.grammar_from_lark(lark))
    if problem and not problem.startswith("WARNING"):
        raise UserFacingError(_GRAMMAR, f"In the grammar: {_sentence(problem)}", _MEND_GRAMMAR)
    return lark


class GrammarCompiler:
    """Makes constraints for one vocabulary. It takes a second or so for large ones: keep it with the model.

    `names` are the bytes of control tokens, which have none in a text, for those in which thoughts open or close.
    Raises UserFacingError for a vocabulary in which no token ends a reply.
    """

    def __init__(self, vocabulary: Vocabulary, names: Mapping[int, bytes] = MappingProxyType({})) -> None:
        self._vocabulary = vocabulary
        self._names = names
        ends = [token for token in range(vocabulary.size) if vocabulary.ends_generation(token)]
        if not ends:
            raise UserFacingError(
                "This model cannot be held to a grammar.",
                "Its vocabulary has no token that ends a reply.",
                "Choose another model, or write without a grammar.",
            )
        pieces = [b"" if token in ends else vocabulary.piece(token) for token in range(vocabulary.size)]
        self._tokenizer = LLTokenizer(TokenizerWrapper(_Pieces(pieces, ends)), n_vocab=len(pieces), eos_token=ends)

    def json_schema(self, schema: str, thoughts: Thoughts = _NONE) -> GrammarConstraint:
        """A reply that is JSON under `schema`, itself a JSON text, behind the `thoughts`.

        Raises UserFacingError if the schema is no JSON, is no valid schema, or asks for what cannot be checked.
        """
        parsed = parse_schema(schema)
        # Thoughts are followed by an empty line before the reply, as models have learned it.
        gap = r"(/[ \n]{1,4}/)? " if thoughts.after else ""
        return self._constraint(f"start: {gap}%json {json.dumps(parsed)}", thoughts, _SCHEMA, _MEND_SCHEMA)

    def grammar(self, text: str, thoughts: Thoughts = _NONE) -> GrammarConstraint:
        """A reply in the language of `text`, in llama.cpp's GBNF or in Lark, behind the `thoughts`.

        Raises UserFacingError if the grammar has a mistake.
        """
        return self._constraint(parse_grammar(text), thoughts, _GRAMMAR, _MEND_GRAMMAR)

    def _constraint(self, lark: str, thoughts: Thoughts, what: str, remedy: str) -> GrammarConstraint:
        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(lark + _NO_FORCING), log_level=0)
        if matcher.is_error():
            raise UserFacingError(what, f"In the grammar: {_sentence(matcher.get_error())}", remedy)
        size = self._vocabulary.size
        return GrammarConstraint(
            LlguidanceMatcher(matcher, size),
            self._vocabulary,
            thoughts.after.encode(),
            thoughts.opener.encode(),
            LlguidanceMatcher(matcher.deep_copy(), size) if thoughts.opener else None,
            self._names,
        )


class LlguidanceMatcher:
    """A Matcher of the heart over an LLMatcher. Tokens that end a reply are never fed to it."""

    def __init__(self, matcher: LLMatcher, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def mask(self) -> Mask:
        packed = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())
        return np.unpackbits(packed, count=self._size, bitorder="little").view(np.bool_)

    def permits(self, token: int) -> bool:
        return self._matcher.validate_tokens([token]) == 1

    def is_complete(self) -> bool:
        return self._matcher.is_accepting()

    def consume(self, token: int) -> None:
        if self._matcher.try_consume_tokens([token]) != 1:
            raise ValueError(f"token {token} is not permitted here")

    def rollback(self, count: int) -> None:
        if not self._matcher.rollback(count):
            raise ValueError(self._matcher.get_error())


class _Pieces:
    """What llguidance asks of a tokenizer."""

    def __init__(self, tokens: list[bytes], ends: list[int]) -> None:
        self.tokens = tokens
        self.eos_token_id = ends[0]
        self.bos_token_id = None
        self.special_token_ids = ends

    def __call__(self, text: str | bytes) -> list[int]:
        """Asked for forced text only, and forcing is off."""
        return []


def _sentence(problem: str) -> str:
    """What llguidance says, on one line and without the picture of the place that it draws below."""
    lines = [line.strip() for line in problem.splitlines()]
    shown = [line for line in lines if line and set(line) - set("^ ")]
    first = " ".join(line for line in shown if not line.split("|")[0].strip().isdigit())
    first = re.sub(r"^(?:at )?(\d+)\((\d+)\)", r"line \1, column \2", first)
    first = re.sub(r"^Unimplemented keys: \[(.*)\]$", r"it uses \1, which cannot be checked while writing", first)
    return first.rstrip(".") + "."
