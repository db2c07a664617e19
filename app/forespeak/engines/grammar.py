"""JSON schemas and grammars as constraints, through llguidance: for any engine whose vocabulary has bytes."""

from __future__ import annotations

import json
import re

import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper
from llguidance.gbnf_to_lark import any_to_lark

from forespeak.errors import UserFacingError
from forespeak.speculation.constraint import GrammarConstraint, Mask
from forespeak.speculation.language_model import Vocabulary

_WHITE_SPACE = r" ?|\n{1,2}[ \t]{0,20}"
"""Between the parts of a JSON text. Bounded: small models like to go on with white space for ever."""

_NO_FORCING = '\n%llguidance {"no_forcing": true}\n'
"""Where only one text can follow, any tokens that spell it are allowed, not just one way of cutting it: a mask then
depends on the bytes so far alone, and no tokenizer is needed."""


class GrammarCompiler:
    """Makes constraints for one vocabulary. It takes a second or so for large ones: keep it with the model.

    Raises UserFacingError for a vocabulary in which no token ends a reply.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        ends = [token for token in range(vocabulary.size) if vocabulary.ends_generation(token)]
        if not ends:
            raise UserFacingError(
                "This model cannot be held to a grammar.",
                "Its vocabulary has no token that ends a reply.",
                "Choose another model, or write without a grammar.",
            )
        pieces = [b"" if token in ends else vocabulary.piece(token) for token in range(vocabulary.size)]
        self._tokenizer = LLTokenizer(TokenizerWrapper(_Pieces(pieces, ends)), n_vocab=len(pieces), eos_token=ends)

    def json_schema(self, schema: str, after: str = "") -> GrammarConstraint:
        """A reply that is JSON under `schema`, itself a JSON text; free up to and with `after`, if that is given.

        Raises UserFacingError if the schema is no JSON, is no valid schema, or asks for what cannot be checked.
        """
        what, remedy = "The JSON schema cannot be used.", "Correct the schema, then send the message again."
        try:
            parsed = json.loads(schema)
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise UserFacingError(what, f"It is not valid JSON: {error.msg} ({where}).", remedy) from error
        if not isinstance(parsed, dict | bool):
            raise UserFacingError(what, "A schema is an object in braces, or true or false.", remedy)
        problem = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(schema))
        if problem and not problem.startswith("WARNING"):
            raise UserFacingError(what, f"In the schema: {_sentence(problem)}", remedy)
        if isinstance(parsed, dict):
            options = parsed.get("x-guidance")
            parsed["x-guidance"] = {
                "whitespace_pattern": _WHITE_SPACE,
                **(options if isinstance(options, dict) else {}),
            }
        # Thoughts are followed by an empty line before the reply, as models have learned it.
        gap = r"(/[ \n]{1,4}/)? " if after else ""
        return self._constraint(f"start: {gap}%json {json.dumps(parsed)}", after, what, remedy)

    def grammar(self, text: str, after: str = "") -> GrammarConstraint:
        """A reply in the language of `text`, in llama.cpp's GBNF or in Lark; free up to and with `after`, if given.

        Raises UserFacingError if the grammar has a mistake.
        """
        what, remedy = "The grammar cannot be used.", "Correct the grammar, then send the message again."
        try:
            lark = any_to_lark(text)
        except Exception as error:
            # The converter raises nothing narrower.
            raise UserFacingError(what, f"In the grammar: {_sentence(str(error))}", remedy) from error
        return self._constraint(lark, after, what, remedy)

    def _constraint(self, lark: str, after: str, what: str, remedy: str) -> GrammarConstraint:
        matcher = LLMatcher(self._tokenizer, LLMatcher.grammar_from_lark(lark + _NO_FORCING), log_level=0)
        if matcher.is_error():
            raise UserFacingError(what, f"In the grammar: {_sentence(matcher.get_error())}", remedy)
        return GrammarConstraint(LlguidanceMatcher(matcher, self._vocabulary.size), self._vocabulary, after.encode())


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
