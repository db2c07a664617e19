"""From what is set up to a plan, what lanes there are, and how long it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.compare.lanes import Lane
from forespeak.compare.plan import Prompt
from forespeak.engines.engine import ChatMessage, LoadSettings, Role
from forespeak.errors import UserFacingError
from forespeak.pairing.named_pair import ModelMark, NamedPair, PairSettings
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import Source
from forespeak.ui.compare_conditions import conditions_of
from forespeak.ui.compare_planning import forecast_of, history_until, lane_options, plan_of
from forespeak.ui.compare_prompt_files import read_prompts
from forespeak.ui.compare_values import PromptChoice, PromptKind, Setup
from forespeak.ui.preferences import Preferences

TARGET, DRAFT, OTHER = Path("/m/target.gguf"), Path("/m/small.gguf"), Path("/m/other.gguf")
LANES = (Lane("Off"), Lane("Lookup", (Source.PROMPT_LOOKUP,)))
TODAY = conditions_of(Preferences())
SUITE = (Prompt("coding", "a", "A"), Prompt("coding", "b", "B"), Prompt("math", "c", "C"))


def setup(choice: PromptChoice, **changes: object) -> Setup:
    return replace(Setup(LANES, choice), **changes)  # type: ignore[arg-type]


def test_a_plan_takes_over_how_the_chat_computes() -> None:
    settings = LoadSettings(4096, reproducible=True, threads=3)
    preferences = replace(Preferences(), rule=Rule.REJECTION, load_settings=settings)
    wanted = setup(PromptChoice(PromptKind.SUITES, suites=(("coding", 1), ("math", 1))), minutes=2, temperature=0.7)
    plan = plan_of(wanted, TARGET, conditions_of(preferences), SUITE, read_prompts)
    assert [prompt.name for prompt in plan.prompts] == ["a", "c"]
    assert (plan.rule, plan.load_settings) == (Rule.REJECTION, settings)
    assert plan.budget_seconds == 120.0
    assert plan.sampling.temperature == 0.7
    assert not any(prompt.private for prompt in plan.prompts)


@pytest.mark.parametrize("kind", [PromptKind.CHAT, PromptKind.TYPED])
def test_ones_own_words_are_private(kind: PromptKind) -> None:
    messages = (ChatMessage(Role.USER, "Hello"),) if kind is PromptKind.CHAT else ()
    plan = plan_of(setup(PromptChoice(kind, "Hello", messages)), TARGET, TODAY, SUITE, read_prompts)
    (prompt,) = plan.prompts
    assert prompt.private
    assert prompt.conversation == (ChatMessage(Role.USER, "Hello"),)


def test_nothing_to_answer_is_told() -> None:
    with pytest.raises(UserFacingError, match="nothing to answer"):
        plan_of(setup(PromptChoice(PromptKind.SUITES)), TARGET, TODAY, SUITE, read_prompts)


def test_prompts_from_a_text_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("\ufeffWhy is snow quiet?\n", encoding="utf-8")
    choice = PromptChoice(PromptKind.FILE, file=file)
    (prompt,) = plan_of(setup(choice), TARGET, TODAY, SUITE, read_prompts).prompts
    assert (prompt.category, prompt.name, prompt.text, prompt.private) == ("own", "mine", "Why is snow quiet?", True)


def test_prompts_from_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('"One"\n\n{"category": "poems", "text": "Two"}\n', encoding="utf-8")
    assert [(prompt.category, prompt.name, prompt.text) for prompt in read_prompts(file)] == [
        ("own", "line 1", "One"),
        ("poems", "line 3", "Two"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"  \n", "no prompt"),
        ("a.txt", b"\xff\xfe\xfa", "cannot be read"),
        ("a.jsonl", b"{", "not JSON"),
        ("a.jsonl", b'{"words": "x"}', "no text"),
        ("a.txt", b"x" * 2_000_001, "too large"),
    ],
)
def test_files_that_hold_no_prompts_say_why(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(UserFacingError, match=words):
        read_prompts(file)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(UserFacingError, match="cannot be read"):
        read_prompts(tmp_path / "gone.txt")


def test_an_estimate_claims_nothing_without_a_speed() -> None:
    choice = PromptChoice(PromptKind.SUITES, suites=(("coding", 2),))
    plan = plan_of(setup(choice, repeats=3, tokens=100), TARGET, TODAY, SUITE, read_prompts)
    unknown = forecast_of(plan, None, "")
    assert (unknown.runs, unknown.least, unknown.most) == (12, None, None)
    known = forecast_of(plan, 10.0, "By 10 tokens/s.")
    assert known.least is not None
    assert known.most is not None
    # Twelve replies of a hundred tokens, at ten a second.
    assert 100 < known.most < 150
    assert known.least < known.most


def pair(name: str, draft: Path | None, settings: PairSettings) -> NamedPair:
    mark = ModelMark(TARGET, 1, 1)
    return NamedPair(
        name, name, mark, None if draft is None else ModelMark(draft, 1, 1), settings, "2026-01-01T00:00:00+00:00"
    )


def test_lanes_can_be_what_drafts_now_kept_pairs_models_and_sources() -> None:
    preferences = replace(Preferences(), draft=DRAFT, sources=(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL))
    pairs = [pair("Quick", OTHER, PairSettings(draft_length=3)), pair("No model", None, PairSettings())]
    options = lane_options(preferences, True, pairs, [(DRAFT, "Small · Q4"), (OTHER, "Other · Q8")])
    shown = [(option.group, option.label, option.draft, option.draft_length) for option in options]
    assert shown[:5] == [
        ("chat", "Lookup + Small · Q4", DRAFT, None),
        ("pairs", "Quick", OTHER, 3),
        ("pairs", "No model", None, None),
        ("drafts", "Small · Q4", DRAFT, None),
        ("drafts", "Other · Q8", OTHER, None),
    ]
    assert [option.label for option in options[5:]] == [
        "Prompt lookup",
        "n-gram simple",
        "n-gram map-k",
        "n-gram map-k4v",
        "n-gram mod",
        "n-gram cache",
    ]
    for option in options:
        # None that a plan would refuse.
        Lane(option.label, option.sources, option.draft, option.draft_length)


def test_without_a_draft_the_text_is_looked_up() -> None:
    options = lane_options(replace(Preferences(), sources=(Source.DRAFT_MODEL,)), False, [], [])
    assert options[0].sources == (Source.PROMPT_LOOKUP,)
    assert options[0].draft is None
    assert len({(option.sources, option.draft) for option in options}) == len(options)


def test_a_chat_up_to_what_its_user_wrote_last() -> None:
    said = [(Role.USER, "One"), (Role.ASSISTANT, "Two"), (Role.USER, "Three"), (Role.ASSISTANT, "Four")]
    history = history_until("Be brief.", said)
    assert [message.role for message in history] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]
    assert history[-1].content == "Three"
    assert history_until("Be brief.", []) == ()
    assert history_until("", [(Role.ASSISTANT, "Hello")]) == ()
