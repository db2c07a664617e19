"""The arguments of sampling and structured output: what they become, and what is said about mistakes."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak import cli
from forespeak.engines.engine import GenerationRequest, Loaded, ModelSummary
from forespeak.errors import UserFacingError
from forespeak.sampling_arguments import JSON_OBJECT, add_sampling_arguments, with_sampling, with_token_biases
from forespeak.speculation.settings import SamplingSettings
from models.gguf_writer import ModelFile


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_sampling_arguments(parser)
    parser.set_defaults(fail=parser.error)
    return parser.parse_args(arguments)


def request(*arguments: str) -> GenerationRequest:
    return with_sampling(GenerationRequest(()), parsed(*arguments))


def loaded(path: Path, size: int) -> Loaded:
    return Loaded(ModelSummary(path, "Model", "", 1, 1, size, 256, 256))


def test_nothing_given_changes_nothing() -> None:
    assert request() == GenerationRequest(())


def test_each_argument_is_its_setting() -> None:
    given = request(
        *("--temperature", "0.5", "--top-k", "7", "--top-p", "0.9", "--min-p", "0.1", "--repeat-penalty", "1.1"),
        *("--frequency-penalty", "0.2", "--presence-penalty", "-0.3", "--penalty-window", "99", "--seed", "12"),
        *("--dry-multiplier", "0.8", "--dry-base", "1.5", "--dry-allowed-length", "3", "--dry-window", "500"),
        *("--logit-bias", "28=-2.5", "--logit-bias", "7=ban", "--logit-bias", "9=-inf", "--max-tokens", "5"),
        *("--stop", "x", "--stop", "y="),
    )
    assert given == GenerationRequest(
        (),
        sampling=SamplingSettings(
            temperature=0.5,
            top_k=7,
            top_p=0.9,
            min_p=0.1,
            repeat_penalty=1.1,
            frequency_penalty=0.2,
            presence_penalty=-0.3,
            penalty_window=99,
            seed=12,
            dry_multiplier=0.8,
            dry_base=1.5,
            dry_allowed_length=3,
            dry_penalty_last_n=500,
            logit_bias=((28, -2.5), (7, -math.inf), (9, -math.inf)),
        ),
        max_tokens=5,
        stop=("x", "y="),
    )


def test_a_token_may_be_given_by_its_text(tmp_path: Path) -> None:
    path = ModelFile(["a", "Ġtea", "=", "<|end|>"]).write(tmp_path / "model.gguf")
    options = parsed("--logit-bias", " tea=1", "--logit-bias", "==ban", "--logit-bias", "0=-1")
    assert with_sampling(GenerationRequest(()), options).sampling.logit_bias == ((0, -1.0),)
    told = with_token_biases(GenerationRequest(()), options, loaded(path, 4))
    assert told.sampling.logit_bias == ((1, 1.0), (2, -math.inf), (0, -1.0))
    with pytest.raises(UserFacingError, match="no single token"):
        with_token_biases(GenerationRequest(()), parsed("--logit-bias", "tea=1"), loaded(path, 4))
    with pytest.raises(UserFacingError, match="numbers 0 to 3"):
        with_token_biases(GenerationRequest(()), parsed("--logit-bias", "4=1"), loaded(path, 4))


def test_a_schema_from_a_file_or_in_place(tmp_path: Path) -> None:
    schema = json.dumps({"type": "object", "properties": {"ä": {"type": "string"}}}, ensure_ascii=False)
    path = tmp_path / "schema.json"
    path.write_text(schema, encoding="utf-8")
    plain = GenerationRequest(())
    assert request("--json-schema", str(path)) == replace(plain, json_schema=schema)
    assert request("--json-schema", f" {schema}") == replace(plain, json_schema=f" {schema}")
    assert request("--json-object") == replace(plain, json_schema=JSON_OBJECT)


@pytest.mark.parametrize("grammar", ['root ::= "yes" | "no"\n', 'start: "yes" | "no"\n'])
def test_a_grammar_from_a_file(tmp_path: Path, grammar: str) -> None:
    path = tmp_path / "answer"
    path.write_text(grammar, encoding="utf-8")
    assert request("--grammar", str(path)) == replace(GenerationRequest(()), grammar=grammar)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dry-multiplier", "-1"], "--dry-multiplier must lie between"),
        (["--dry-base", "0.5"], "--dry-base must lie between"),
        (["--dry-allowed-length", "0"], "--dry-allowed-length must lie between"),
        (["--dry-window", "-2"], "--dry-window must lie between"),
        (["--penalty-window", "-1"], "--penalty-window must lie between"),
        (["--penalty-window", "x"], "invalid int value"),
        (["--logit-bias", "5"], "is not TOKEN=BIAS"),
        (["--logit-bias", "=3"], "is not TOKEN=BIAS"),
        (["--logit-bias", "5=inf"], "is not TOKEN=BIAS"),
        (["--logit-bias", "5=nan"], "is not TOKEN=BIAS"),
        (["--json-schema", "{}", "--grammar", "x"], "not allowed with"),
        (["--json-object", "--json-schema", "{}"], "not allowed with"),
        (["--json-schema", '{"type":'], "not valid JSON"),
        (["--json-schema", '{"type": "foo"}'], "Invalid type: foo"),
        (["--json-schema", "nowhere.json"], "nowhere.json: No such file or directory."),
        (["--grammar", "nowhere.gbnf"], "The grammar cannot be read."),
        (["--grammar", "{tmp}/bad.gbnf"], "line 1"),
        (["--grammar", "{tmp}/latin.gbnf"], "not UTF-8 text"),
        (["--grammar", "{tmp}"], "directory"),
        (["--json-schema", "a\0b"], "null"),
    ],
)
def test_what_makes_no_sense_is_told(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli, "_engine", lambda: pytest.fail("no engine is needed to see that"))
    (tmp_path / "bad.gbnf").write_text('root ::= "a', encoding="utf-8")
    (tmp_path / "latin.gbnf").write_bytes('root ::= "ä"'.encode("latin-1"))
    assert cli.run(["chat", "-p", "x", *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments)]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""
