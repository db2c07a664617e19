"""The suite of prompts that comes with the program."""

from __future__ import annotations

from collections import Counter

from forespeak.compare.prompts import CATEGORIES, MORE_CATEGORIES, suite
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
    assert files == {*CATEGORIES, *MORE_CATEGORIES}


def test_texts_run_on_like_those_that_people_paste() -> None:
    for prompt in suite():
        assert prompt.text == prompt.text.strip()
        assert "\\" not in prompt.text
        assert "  " not in prompt.text.replace("    ", "")


def test_what_is_to_be_rewritten_is_long_enough_to_be_looked_up() -> None:
    for prompt in suite():
        if prompt.category == "rewrite":
            assert 150 <= len(prompt.text.split()) <= 270
