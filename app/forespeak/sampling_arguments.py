"""The command line's arguments for how tokens are chosen: sampling, logit bias, and what a reply is held to."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from forespeak.engines.engine import GenerationRequest, Loaded
from forespeak.errors import UserFacingError
from forespeak.speculation.settings import SamplingSettings

JSON_OBJECT = '{"type": "object"}'

_SETTINGS = {
    "temperature": (float, "T", "0 is greedy"),
    "top_k": (int, "N", "0 switches it off"),
    "top_p": (float, "P", "1 switches it off"),
    "min_p": (float, "P", "0 switches it off"),
    "repeat_penalty": (float, "X", "1 switches it off"),
    "frequency_penalty": (float, "X", None),
    "presence_penalty": (float, "X", None),
    "penalty_window": (int, "N", "the last tokens that these three penalties look at"),
    "dry_multiplier": (float, "X", "strength of DRY, which keeps a reply from repeating passages; 0 switches it off"),
    "dry_base": (float, "X", "how steeply its penalty grows with the length of the repetition"),
    "dry_allowed_length": (int, "N", "the shortest repetition that it penalises, in tokens"),
    "dry_penalty_last_n": (int, "N", "the last tokens that it looks at; -1: all of them"),
    "seed": (int, "N", "the same seed gives the same words"),
}
_NAMES = {"dry_penalty_last_n": "dry_window"}
"""Settings that have another name here."""


@dataclass(frozen=True, slots=True)
class _Bias:
    """What to add to the score of a token, given by its number or by its whole text."""

    token: int | str
    value: float


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = SamplingSettings()
    add = parser.add_argument_group("sampling").add_argument
    for setting, (kind, metavar, words) in _SETTINGS.items():
        add(_option(setting), dest=setting, type=kind, default=getattr(defaults, setting), metavar=metavar, help=words)
    add(
        "--logit-bias",
        type=_bias,
        action="append",
        default=[],
        metavar="TOKEN=BIAS",
        help="add this to a token's score, or ban it with TOKEN=ban; a token is its number or its whole text, "
        "such as 28=-2.5 or ' tea'=ban; repeatable",
    )
    add("--max-tokens", type=whole(1), metavar="N", help="the longest reply")
    add("--stop", action="append", default=[], metavar="TEXT", help="end the reply before this text; repeatable")
    held = parser.add_argument_group("structured output").add_mutually_exclusive_group().add_argument
    held("--json-schema", metavar="FILE_OR_JSON", help="the reply is JSON under this schema")
    held("--json-object", action="store_true", help="the reply is a JSON object, whatever is in it")
    held("--grammar", metavar="FILE", help="the reply follows this grammar, in llama.cpp's GBNF or in Lark")


def with_sampling(request: GenerationRequest, options: argparse.Namespace) -> GenerationRequest:
    """The request with all that the arguments say. Values out of range end the program as wrong arguments do.

    Raises UserFacingError for a schema or grammar that cannot be read or used.
    """
    fail: Callable[[str], NoReturn] = options.fail
    if "" in options.stop:
        fail("argument --stop: an empty text would stop every reply at once")
    try:
        sampling = SamplingSettings(**{setting: getattr(options, setting) for setting in _SETTINGS})
    except ValueError as error:
        setting, _, rest = str(error).partition(" ")
        fail(f"{_option(setting)} {rest}")
    numbered = tuple((bias.token, bias.value) for bias in options.logit_bias if isinstance(bias.token, int))
    schema, grammar = _held_to(options)
    return replace(
        request,
        sampling=replace(sampling, logit_bias=numbered),
        max_tokens=options.max_tokens,
        stop=tuple(options.stop),
        json_schema=schema,
        grammar=grammar,
    )


def with_token_biases(request: GenerationRequest, options: argparse.Namespace, loaded: Loaded) -> GenerationRequest:
    """The request with the biases of tokens given by their text, which only the loaded model can tell.

    Raises UserFacingError for tokens that the model does not have.
    """
    # Imported late: it brings numpy, which --help does without.
    from forespeak.models.token_lookup import tokens_written

    size = loaded.target.vocabulary_size
    biases: list[tuple[int, float]] = []
    for bias in options.logit_bias:
        if isinstance(bias.token, str):
            found = tokens_written(loaded.target.path, bias.token)
            if not found:
                raise UserFacingError(
                    f"The bias of “{bias.token}” cannot be set.",
                    "The model has no single token with just this text.",
                    "Mind the space that most words begin with, or give tokens by their numbers; --json shows them.",
                )
            biases += [(token, bias.value) for token in found]
        elif bias.token >= size:
            raise UserFacingError(
                f"The bias of token {bias.token} cannot be set.",
                f"The model's tokens have the numbers 0 to {size - 1}.",
                "Give one of these.",
            )
        else:
            biases.append((bias.token, bias.value))
    return replace(request, sampling=replace(request.sampling, logit_bias=tuple(biases)))


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """A parser of whole numbers from `least` to `most`, by default as many as engines take."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        if number > most:
            raise argparse.ArgumentTypeError(f"{text!r} is more than {most:,}")
        return number

    return parse


def _option(setting: str) -> str:
    return f"--{_NAMES.get(setting, setting)}".replace("_", "-")


def _bias(text: str) -> _Bias:
    token, _, amount = text.rpartition("=")
    try:
        value = -math.inf if amount == "ban" else float(amount)
    except ValueError:
        value = math.nan
    if not token or not value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOKEN=BIAS, where BIAS is a number or ban")
    return _Bias(int(token) if re.fullmatch("[0-9]+", token) else token, value)


def _held_to(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """The JSON schema and the grammar, checked; at most one is given."""
    if options.json_object:
        return JSON_OBJECT, None
    given: str | None = options.json_schema
    if given is not None:
        # Imported late, here and below: a large library that most calls do without.
        from forespeak.engines.grammar import parse_schema

        is_json = given.lstrip().startswith("{") or given.strip() in {"true", "false"}
        schema = given if is_json else _read(given, "The JSON schema cannot be read.")
        parse_schema(schema)
        return schema, None
    if options.grammar is not None:
        from forespeak.engines.grammar import parse_grammar

        grammar = _read(options.grammar, "The grammar cannot be read.")
        parse_grammar(grammar)
        return None, grammar
    return None, None


def _read(name: str, what: str) -> str:
    path = Path(name).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserFacingError(what, f"{path} is not UTF-8 text.", "Convert it first.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserFacingError(what, f"{path}: {reason}.", "Check the path.") from error
