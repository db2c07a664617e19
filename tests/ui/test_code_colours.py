from __future__ import annotations

from forespeak.ui.code_colours import colour_code, load_lexers
from forespeak.ui.theme import LIGHT


def coloured(code: str, language: str) -> dict[str, str | None]:
    return {code[run.start : run.start + run.length]: run.colour for run in colour_code(code, language)}


def test_the_parts_of_code_have_colours_of_the_theme() -> None:
    found = coloured("def f(x):\n    return 'a' + str(1)  # why\n", "python")
    assert found["def"] == "code_keyword"
    assert found["f"] == "code_name"
    assert found["1"] == "code_number"
    assert found["# why"] == "code_comment"
    assert any(colour == "code_string" for colour in found.values())
    assert all(hasattr(LIGHT, str(colour)) for colour in found.values())


def test_offsets_hold_behind_characters_beyond_the_basic_plane() -> None:
    code = "x = '🍁🍁'\nreturn 1"
    assert coloured(code, "python")["return"] == "code_keyword"


def test_unknown_or_very_long_code_stays_plain() -> None:
    assert coloured("a = 1", "no-such-language") == {}
    assert coloured("a = 1", "") == {}
    assert coloured("a = 1\n" * 10_000, "python") == {}


def test_lexers_can_be_loaded_ahead() -> None:
    load_lexers()
