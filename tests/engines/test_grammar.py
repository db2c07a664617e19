"""Schemas and grammars over a small byte vocabulary: what is allowed, what comes out, what is told about mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.engines.grammar import GrammarCompiler
from forespeak.engines.thinking import Thoughts
from forespeak.errors import UserFacingError
from forespeak.speculation.constraint import GrammarConstraint
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import FinishReason
from scripted import ScriptedModel, ScriptedVocabulary, blended, random_scores, reply_of

WORDS = ['{"', '"}', '": ', '", "', "name", "na", "me", "true", "tr", "ue", "[", "é", "</think>", "\n", "12", '"a"']
PIECES = [bytes([byte]) for byte in range(256)] + [word.encode() for word in WORDS] + [b"", b"<end>", b""]
EMPTY, END, STOP = len(PIECES) - 3, len(PIECES) - 2, len(PIECES) - 1
VOCABULARY = ScriptedVocabulary(PIECES, ends={END, STOP})
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"enum": ["a", "é", "name"]},
            "true": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
            "n": {"type": "integer", "minimum": 0, "maximum": 99},
        },
        "required": ["name", "true"],
        "additionalProperties": False,
    }
)


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(VOCABULARY)


def text_of(tokens: Sequence[int]) -> str:
    return b"".join(b"" if VOCABULARY.ends_generation(t) else VOCABULARY.piece(t) for t in tokens).decode()


def ids(constraint: GrammarConstraint, drafted: Sequence[int] = ()) -> list[int]:
    mask = constraint.allowed(drafted)
    assert mask is not None
    return [int(token) for token in np.flatnonzero(mask)]


def likely(allowed: list[int]) -> st.SearchStrategy[int]:
    """White space and ends only where there is nothing else, so that texts come to something."""
    return st.sampled_from([t for t in allowed if t < EMPTY and VOCABULARY.piece(t).strip()] or allowed)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_is_allowed_writes_json_of_the_schema_whatever_was_asked_between(data: st.DataObject) -> None:
    compiler = COMPILERS[0]
    held, text = compiler.json_schema(SCHEMA), list[int]()
    while True:
        drafted: list[int] = []
        for _ in range(data.draw(st.integers(1, 4))):
            drafted.append(data.draw(likely(ids(held, drafted))))
            if VOCABULARY.ends_generation(drafted[-1]):
                break
        assert held.permitted(drafted) == len(drafted)
        kept = data.draw(st.integers(1, len(drafted)))
        held.accept(drafted[:kept])
        text += drafted[:kept]
        fresh = compiler.json_schema(SCHEMA)
        fresh.accept(text)
        now = ids(held)
        assert now == ids(fresh)
        if not VOCABULARY.ends_generation(text[-1]):
            assert [token for token in range(VOCABULARY.size) if held.permitted([token])] == now
        else:
            break
    said = json.loads(text_of(text))
    assert said["name"] in {"a", "é", "name"}
    assert all(isinstance(item, bool) for item in said["true"])
    assert len(said["true"]) <= 3
    assert set(said) <= {"name", "true", "n"}
    assert 0 <= said.get("n", 0) <= 99


COMPILERS = [GrammarCompiler(VOCABULARY)]
"""For hypothesis, which does without fixtures."""


def tokens(text: str) -> list[int]:
    return list(text.encode())


def test_any_way_of_spelling_a_forced_text_is_allowed(compiler: GrammarCompiler) -> None:
    held = compiler.json_schema(SCHEMA)
    assert {PIECES[token] for token in ids(held)} == {b"{", b'{"'}
    held.accept(tokens('{"'))
    assert {PIECES[token] for token in ids(held)} == {b"n", b"na", b"name"}
    held = compiler.grammar('start: "name" | "nam"')
    assert {PIECES[token] for token in ids(held)} == {b"n", b"na", b"name"}


def test_a_complete_text_may_only_end_and_with_every_end(compiler: GrammarCompiler) -> None:
    held = compiler.json_schema(SCHEMA)
    held.accept(tokens('{"name": "a", "true": []'))
    assert END not in ids(held)
    assert held.permitted([END]) == 0
    held.accept(tokens("}"))
    assert ids(held) == [END, STOP]


def test_white_space_has_an_end(compiler: GrammarCompiler) -> None:
    held = compiler.json_schema(SCHEMA)
    assert held.permitted(tokens('{ "name"')) == len('{ "name"')
    assert held.permitted(tokens("{\n" + 20 * " " + '"')) == 23
    assert held.permitted(tokens("{" + 9 * "\n")) == 3
    assert held.permitted(tokens("{" + 9 * " ")) == 2
    own = json.dumps({"x-guidance": {"whitespace_flexible": False, "whitespace_pattern": None}, **json.loads(SCHEMA)})
    assert compiler.json_schema(own).permitted(tokens('{ "name"')) == 1


def test_a_character_split_over_tokens(compiler: GrammarCompiler) -> None:
    held = compiler.grammar('start: "é" | "è"')
    first, second = "é".encode()
    assert {first, 256 + WORDS.index("é")} == set(ids(held))
    held.accept([first])
    assert set(ids(held)) == {second, "è".encode()[1]}


def test_gbnf_and_lark_say_the_same(compiler: GrammarCompiler) -> None:
    for grammar in ('root ::= [0-9]+ ("," [0-9]+)*', 'start: /[0-9]+/ ("," /[0-9]+/)*'):
        held = compiler.grammar(grammar)
        assert held.permitted(tokens("12,3x")) == 4
        held.accept(tokens("12"))
        assert {END, STOP, ord(","), ord("7")} <= set(ids(held))


def test_a_schema_that_begins_behind_the_thoughts(compiler: GrammarCompiler) -> None:
    held = compiler.json_schema(SCHEMA, Thoughts("</think>"))
    assert held.permitted(tokens('{"nonsense</think>\n\n{"name": "a"x')) == len('{"nonsense</think>\n\n{"name": "a"')
    held = compiler.json_schema(SCHEMA, Thoughts("</think>"))
    thoughts = [*tokens("Let me <think"), 256 + WORDS.index("</think>")]
    assert held.allowed(thoughts[:-1]) is None
    assert {PIECES[token] for token in ids(held, thoughts)} == {b"{", b'{"', b"\n", b" "}
    held.accept([*thoughts, *tokens("\n\n")])
    assert held.permitted(tokens('\n\n\n{"name"')) == 2
    assert compiler.json_schema(SCHEMA).permitted(tokens("\n")) == 0


def test_a_schema_of_a_reply_that_may_think_by_itself() -> None:
    opening = [*tokens("<thi"), *tokens("nk>")]
    for text, good in (
        ('{"name": "a"x', 12),
        ('\n\n{"name": "a"x', 14),
        ("<think>What? {</think>\n\n{x", 25),
        ("\n<think></think>{x", 17),
        ("<thin{", 5),
        ("Well, ", 0),
        ("\n\n\n\n\n<think>", 4),
    ):
        held = COMPILERS[0].json_schema(SCHEMA, Thoughts("</think>", "<think>"))
        assert held.permitted(tokens(text)) == good, text
    held = COMPILERS[0].grammar('root ::= "<" [0-9] | "x"', Thoughts("</think>", "<think>"))
    assert {PIECES[token] for token in ids(held)} == {b"<", b"x", b"\n", b"\t", b"\r", b"\v", b"\f", b" "}
    assert held.permitted(tokens("<7")) == 2
    assert held.permitted([*opening, *tokens("x7</think>"), *tokens("<7")]) == 19


def test_control_tokens_open_and_close_by_their_names() -> None:
    compiler = GrammarCompiler(VOCABULARY, {EMPTY: b"</think>"})
    held = compiler.grammar('root ::= "x"', Thoughts("</think>", "<think>"))
    assert held.permitted([*tokens("<think>xy"), EMPTY, *tokens("x")]) == 11
    held = compiler.grammar('root ::= "x"', Thoughts("</think>"))
    assert held.permitted([ord("y"), EMPTY, ord("y")]) == 2


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ('{"type":', r"not valid JSON: Expecting value \(line 1, column 9\)"),
        ("[1]", "object in braces"),
        ('{"type": "foo"}', "Invalid type: foo"),
        ('{"not": {}}', 'uses "not", which cannot be checked'),
        ('{"$ref": "#/nowhere"}', "'/nowhere' does not exist"),
        ('{"type": "string", "pattern": "(("}', "unclosed group"),
        ('{"type": "string", "minLength": 5, "maxLength": 2}', r"minLength \(5\) is greater"),
        ("false", "Unsatisfiable"),
    ],
)
def test_a_mistake_in_a_schema_is_told(compiler: GrammarCompiler, schema: str, why: str) -> None:
    with pytest.raises(UserFacingError) as told:
        compiler.json_schema(schema)
    assert told.value.what == "The JSON schema cannot be used."
    assert re.search(why, told.value.why), told.value.why
    assert "\n" not in told.value.why
    assert told.value.remedy


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        ('start: "a" b', 'line 1, column 8: unknown name: "b"'),
        ("start: /[a/", "unclosed character class"),
        ('root ::= "a"\n  "b" x', "line 2"),
        ('root ::= "a" x', "'x' not found"),
        ("", "No 'root' rule"),
        ("nonsense", "line 1"),
    ],
)
def test_a_mistake_in_a_grammar_is_told(compiler: GrammarCompiler, grammar: str, why: str) -> None:
    with pytest.raises(UserFacingError) as told:
        compiler.grammar(grammar)
    assert told.value.what == "The grammar cannot be used."
    assert why in told.value.why
    assert "\n" not in told.value.why


def test_a_vocabulary_without_an_end_is_refused() -> None:
    with pytest.raises(UserFacingError, match="no token that ends a reply"):
        GrammarCompiler(ScriptedVocabulary([b"a"]))


TARGET = random_scores(len(PIECES), 3, order=2, spread=3.0)
DRAFT = blended(TARGET, random_scores(len(PIECES), 4, order=2, spread=3.0), 0.8)
PROMPT = tokens('Say {"name": "a", "true": [true]}! ')


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("kind", ["draft model", "prompt lookup"])
def test_every_reply_is_json_of_the_schema_and_the_same_with_drafts(
    compiler: GrammarCompiler, rule: Rule, kind: str
) -> None:
    ended = accepted = 0
    for seed in range(12):
        chosen = SamplingSettings(temperature=0.8, seed=seed)
        model = ScriptedModel(DRAFT, VOCABULARY)
        source: DraftSource = (
            DraftModel(model, VOCABULARY.size, rule, lambda: False) if kind == "draft model" else PromptLookup()
        )
        target = ScriptedModel(TARGET, VOCABULARY)
        sampler = Sampler(chosen, compiler.json_schema(SCHEMA))
        drafted = reply_of(target, source, sampler, PROMPT, 5, rule=rule, max_tokens=300)
        accepted += drafted.stats.accepted_draft_tokens_count
        if rule is Rule.COUPLED:
            sampler = Sampler(chosen, compiler.json_schema(SCHEMA))
            plain = reply_of(ScriptedModel(TARGET, VOCABULARY), None, sampler, PROMPT, max_tokens=300)
            assert drafted.ids == plain.ids
        if drafted.finish is FinishReason.STOP:
            ended += 1
            assert set(json.loads(drafted.text)) <= {"name", "true", "n"}
    assert ended >= 8
    assert accepted > 30
