"""What --draft and --source-setting say, right and wrong."""

from __future__ import annotations

import argparse
from typing import NoReturn

import pytest

from forespeak import cli
from forespeak.draft_arguments import Drafts, add_draft_argument, add_source_argument, drafts_of, with_text_sources
from forespeak.engines.engine import GenerationRequest, TextSourceSettings
from forespeak.speculation.trace import Source


class _RefusedError(Exception):
    pass


def _refuse(words: str) -> NoReturn:
    raise _RefusedError(words)


def parsed(*arguments: str, target: str = "starter") -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_draft_argument(parser.add_argument)
    add_source_argument(parser.add_argument)
    options = parser.parse_args(arguments)
    options.target, options.fail = target, _refuse
    return options


def drafts(*names: str, target: str = "starter") -> Drafts:
    return drafts_of(parsed(*(part for name in names for part in ("--draft", name)), target=target))


def text_sources(*settings: str) -> TextSourceSettings:
    options = parsed(*(part for setting in settings for part in ("--source-setting", setting)))
    return with_text_sources(GenerationRequest(()), options).text_sources


def test_one_source_or_none() -> None:
    assert drafts("none") == Drafts(())
    assert drafts("ngram") == drafts("prompt-lookup") == Drafts((Source.PROMPT_LOOKUP,))
    assert drafts("model.gguf") == Drafts((Source.DRAFT_MODEL,), "model.gguf")
    for source in Source:
        if not source.uses_model:
            assert drafts(source.value) == Drafts((source,))


def test_what_stands_in_for_nothing() -> None:
    assert drafts() == Drafts((Source.DRAFT_MODEL,), "starter")
    assert drafts(target="other.gguf") == Drafts((Source.PROMPT_LOOKUP,))


def test_a_chain_is_put_in_order() -> None:
    chain = drafts("starter", "ngram-mod", "ngram", "ngram-mod")
    assert chain == Drafts((Source.PROMPT_LOOKUP, Source.NGRAM_MOD, Source.DRAFT_MODEL), "starter")
    assert drafts("ngram-mod", "ngram-cache").sources == (Source.NGRAM_MOD, Source.NGRAM_CACHE)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("none", "ngram"), "none stands alone"),
        (("a.gguf", "b.gguf"), "one model at most can draft, and a.gguf and b.gguf are 2"),
        (("starter", "ngram", "b.gguf"), "starter and b.gguf are 2"),
        (("ngram-magic",), "there is no source 'ngram-magic'; there are ngram, prompt-lookup"),
    ],
)
def test_drafts_that_make_no_sense(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(_RefusedError, match=words):
        drafts(*names)


def test_settings_are_those_of_their_source_alone() -> None:
    settings = text_sources("ngram-simple.size_n=8", "ngram-mod.n-max=20", "ngram-mod.n_min=5", "shared=on")
    assert (settings.ngram_simple.size_n, settings.ngram_mod.n_max, settings.ngram_mod.n_min) == (8, 20, 5)
    assert settings.shared
    assert settings.ngram_map_k == TextSourceSettings().ngram_map_k
    assert text_sources() == TextSourceSettings()


def test_settings_that_are_only_right_together() -> None:
    pairs = ("context_min_samples=3,2", "context_min_percent=60,50", "dynamic_min_samples=4,3")
    settings = text_sources(*(f"ngram-cache.{pair}" for pair in pairs), "ngram-cache.dynamic_min_percent=70,60")
    assert settings.ngram_cache.context_min_samples == (3, 2)
    assert settings.ngram_cache.dynamic_min_percent == (70, 60)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("ngram-magic.size_n=8", "no source 'ngram-magic'; there are prompt-lookup"),
        ("draft-model.size_n=8", "no source 'draft-model'"),
        ("ngram-simple.sise_n=8", "ngram-simple has no setting 'sise_n'; it has size_n, size_m"),
        ("ngram-simple=8", "no setting ''"),
        ("ngram-simple.size_n", "a whole number, not ''"),
        ("ngram-simple.size_n=8.5", "a whole number, not '8.5'"),
        ("ngram-simple.size_n=0", "ngram-simple: size_n must lie between 1 and"),
        ("ngram-cache.context_min_samples=1,x", "whole numbers with commas between them, not '1,x'"),
        ("ngram-cache.context_min_samples=1", "thresholds"),
        ("shared=perhaps", "shared is on or off"),
        ("", "no source ''"),
    ],
)
def test_settings_that_make_no_sense(setting: str, words: str) -> None:
    with pytest.raises(_RefusedError, match="argument --source-setting: ") as refused:
        text_sources(setting)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--draft", "none", "--draft", "ngram"],
        ["--draft", "a.gguf", "--draft", "b.gguf"],
        ["--draft", "ngram", "--source-setting", "ngram-simple.size_n=0"],
    ],
)
def test_the_command_ends_with_a_word_and_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_engine", lambda: pytest.fail("no engine is needed to see that"))
    assert cli.run(["chat", "-p", "x", *arguments]) == 2
    printed = capsys.readouterr()
    assert "argument --" in printed.err
    assert printed.out == ""


def test_the_help_names_every_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["chat", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    for source in Source:
        assert source.uses_model or source is Source.PROMPT_LOOKUP or source.value in words
    assert "--source-setting" in words
