"""What replies are held to: what goes into a request, and what comes back from a file."""

from __future__ import annotations

import json

import pytest

from forespeak.ui.structured_output import ANY_OBJECT, OutputKind, StructuredOutput, mistake_in

GRAMMAR = OutputKind.GRAMMAR


@pytest.mark.parametrize(
    ("output", "schema", "grammar"),
    [
        (StructuredOutput(), None, None),
        (StructuredOutput(False, schema="{}"), None, None),
        (StructuredOutput(True), ANY_OBJECT, None),
        (StructuredOutput(True, schema="{}", grammar="x"), "{}", None),
        (StructuredOutput(True, GRAMMAR, schema="{}", grammar="x"), None, "x"),
        (StructuredOutput(True, GRAMMAR, schema="{}", grammar=" \n"), None, None),
    ],
)
def test_at_most_one_of_the_two_goes_into_a_request(
    output: StructuredOutput, schema: str | None, grammar: str | None
) -> None:
    assert (output.json_schema, output.bound_grammar) == (schema, grammar)
    assert output.holds is (schema is not None or grammar is not None)


def test_it_comes_back_from_a_file() -> None:
    for output in (StructuredOutput(), StructuredOutput(True, GRAMMAR, '{"ä": 1}', 'root ::= "x"\n')):
        assert StructuredOutput.parse(json.loads(json.dumps(output.plain()))) == output


@pytest.mark.parametrize("damaged", [None, [], {"on": 1}, {"schema": 3}, {"grammar": None}, {"kind": "poem"}])
def test_damage_is_refused(damaged: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        StructuredOutput.parse(damaged)


def test_mistakes_are_told_in_words() -> None:
    assert mistake_in(OutputKind.JSON_SCHEMA, ANY_OBJECT) == ""
    assert mistake_in(OutputKind.JSON_SCHEMA, '{"type":') == (
        "It is not valid JSON: Expecting value (line 1, column 9)."
    )
    assert mistake_in(GRAMMAR, 'root ::= "a" | "b"') == ""
    assert "'x' not found" in mistake_in(GRAMMAR, 'root ::= "a" x')
