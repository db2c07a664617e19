"""The suite of prompts that comes with the program."""

from __future__ import annotations

from collections import Counter

import pytest

from forespeak.compare.prompts import (
    CATEGORIES,
    CHINESE,
    ENGLISH,
    LONG,
    MORE_CATEGORIES,
    SHORT,
    SUITES,
    suite,
    suite_prompts,
)
from forespeak.resource_files import resource_path


def test_every_category_has_prompts_of_its_own() -> None:
    prompts = suite()
    counts = Counter(prompt.category for prompt in prompts)
    assert tuple(counts) == (*CATEGORIES, *MORE_CATEGORIES)
    assert min(counts.values()) >= 2
    assert len({(prompt.category, prompt.name) for prompt in prompts}) == len(prompts)
    assert len({prompt.text for prompt in prompts}) == len(prompts)


def test_every_file_is_used() -> None:
    files = {path.stem for path in resource_path("prompts").iterdir()}
    # The last one is the pair test's.
    assert files == {*CATEGORIES, *MORE_CATEGORIES, *SUITES, "quick"}


def test_every_suite_has_prompts_of_its_own() -> None:
    counts = Counter(prompt.category for prompt in suite_prompts())
    assert tuple(counts) == SUITES
    assert all(2 <= count <= 4 for count in counts.values())
    assert len({prompt.text for prompt in suite_prompts()}) == sum(counts.values())
    assert not any(prompt.private for prompt in suite_prompts())


def test_suites_hold_short_and_long_answers_in_two_languages() -> None:
    prompts = suite_prompts()
    assert {prompt.language for prompt in prompts} == {ENGLISH, CHINESE}
    assert {prompt.answer for prompt in prompts} == {SHORT, LONG}
    chinese = suite_prompts(languages=[CHINESE])
    assert len({prompt.category for prompt in chinese}) == len(SUITES) - 2
    for prompt in prompts:
        written = sum("\u4e00" <= letter <= "\u9fff" for letter in prompt.text)
        assert (written > 20) == (prompt.language == CHINESE)


def test_some_of_a_suite() -> None:
    assert [prompt.name for prompt in suite_prompts(["qa"], each=1)] == ["tides"]
    short = suite_prompts(["qa", "qa", "stem"], languages=[ENGLISH], answers=[SHORT])
    assert [(prompt.category, prompt.name) for prompt in short] == [
        ("qa", "tides"),
        ("qa", "leap-seconds"),
        ("stem", "half-life"),
    ]
    with pytest.raises(ValueError, match="no suite 'poems'"):
        suite_prompts(["poems"])


def test_texts_run_on_like_those_that_people_paste() -> None:
    for prompt in (*suite(), *suite_prompts()):
        assert prompt.text == prompt.text.strip()
        assert "\\" not in prompt.text
        assert "  " not in prompt.text.replace("    ", "")


def test_what_is_to_be_rewritten_is_long_enough_to_be_looked_up() -> None:
    for prompt in suite():
        if prompt.category == "rewrite":
            assert 150 <= len(prompt.text.split()) <= 270
