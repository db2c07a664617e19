"""What replies are held to, as the user chose it: a JSON schema or a grammar."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from forespeak.errors import UserFacingError

ANY_OBJECT = '{"type": "object"}'


class OutputKind(Enum):
    JSON_SCHEMA = "json-schema"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class StructuredOutput:
    """`on` is the switch; what was written stays while it is off. An empty schema stands for any JSON object."""

    on: bool = False
    kind: OutputKind = OutputKind.JSON_SCHEMA
    schema: str = ""
    grammar: str = ""

    @property
    def holds(self) -> bool:
        """Whether replies are held to anything now."""
        return self.on and (self.kind is OutputKind.JSON_SCHEMA or bool(self.grammar.strip()))

    @property
    def json_schema(self) -> str | None:
        """For a request: a JSON text, or None."""
        if not self.holds or self.kind is not OutputKind.JSON_SCHEMA:
            return None
        return self.schema if self.schema.strip() else ANY_OBJECT

    @property
    def bound_grammar(self) -> str | None:
        """For a request: GBNF or Lark, or None."""
        return self.grammar if self.holds and self.kind is OutputKind.GRAMMAR else None

    def plain(self) -> dict[str, object]:
        """For a file."""
        return {"on": self.on, "kind": self.kind.value, "schema": self.schema, "grammar": self.grammar}

    @classmethod
    def parse(cls, value: object) -> StructuredOutput:
        """From a file. Raises ValueError or TypeError for anything else."""
        if not isinstance(value, dict):
            raise TypeError
        on, schema, grammar = value.get("on", False), value.get("schema", ""), value.get("grammar", "")
        if not isinstance(on, bool) or not isinstance(schema, str) or not isinstance(grammar, str):
            raise TypeError
        return cls(on, OutputKind(value.get("kind", OutputKind.JSON_SCHEMA.value)), schema, grammar)


def mistake_in(kind: OutputKind, text: str) -> str:
    """What is wrong with a schema or grammar, in a sentence or two; empty if nothing is. Not for the UI thread."""
    # A large library that the window does without until somebody writes one of these.
    from forespeak.engines.grammar import parse_grammar, parse_schema

    try:
        if kind is OutputKind.JSON_SCHEMA:
            parse_schema(text)
        else:
            parse_grammar(text)
    except UserFacingError as error:
        return error.why
    return ""
