"""The loop: the same words whatever drafts them, text shown only when it is certain, and honest counts."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forespeak.speculation import decode
from forespeak.speculation.controller import FixedDraftLength
from forespeak.speculation.decode import DecodeSettings, Finished, PromptProgress, generate
from forespeak.speculation.draft import DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Sampler, SamplingSettings
from forespeak.speculation.trace import (
    FinishReason,
    GenerationStats,
    Origin,
    Source,
    SpeculationState,
    Step,
    Token,
    text_of,
)
from forespeak.speculation.verify import Rule
from scripted import (
    Row,
    Scores,
    ScriptedModel,
    ScriptedSource,
    ScriptedVocabulary,
    agreeing,
    blended,
    letters,
    random_scores,
    reciting,
)

SIZE = 12
END = 11
PROMPT = [0, 1, 2, 3, 0, 1, 2]
GREEDY = Sampler(SamplingSettings(temperature=0.0))


@dataclass(frozen=True, slots=True)
class Reply:
    steps: tuple[Step, ...]
    states: tuple[SpeculationState, ...]
    progress: tuple[PromptProgress, ...]
    finish: FinishReason
    stats: GenerationStats

    @property
    def tokens(self) -> list[Token]:
        return [token for step in self.steps for token in step.emitted]

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)


def reply_of(
    target: ScriptedModel,
    source: DraftSource | None,
    sampler: Sampler = GREEDY,
    prompt: Sequence[int] = PROMPT,
    length: int = 4,
    cancelled: Callable[[], bool] = lambda: False,
    **chosen: object,
) -> Reply:
    events = list(
        generate(
            target,
            source,
            prompt,
            sampler,
            FixedDraftLength(length),
            DecodeSettings(**chosen),  # type: ignore[arg-type]
            cancelled,
        )
    )
    last = events[-1]
    assert isinstance(last, Finished)
    assert not any(isinstance(event, Finished) for event in events[:-1])
    return Reply(
        tuple(event for event in events if isinstance(event, Step)),
        tuple(event for event in events if isinstance(event, SpeculationState)),
        tuple(event for event in events if isinstance(event, PromptProgress)),
        last.reason,
        last.stats,
    )


def one_by_one(
    scores: Scores, sampler: Sampler, prompt: Sequence[int], count: int, ends: Sequence[int] = ()
) -> list[int]:
    """What a model says without any loop of ours: score, choose, append."""
    text = list(prompt)
    while len(text) < len(prompt) + count:
        choices = sampler.distribution(scores(tuple(text)), text)
        text.append(sampler.choose(choices, len(text)))
        if text[-1] in ends:
            break
    return text[len(prompt) :]


# The same seed, the same words.

samplers = st.builds(
    lambda **chosen: Sampler(SamplingSettings(**chosen)),
    temperature=st.sampled_from([0.0, 0.8, 1.5]),
    top_k=st.sampled_from([0, 3]),
    top_p=st.sampled_from([1.0, 0.8]),
    min_p=st.sampled_from([0.0, 0.1]),
    repeat_penalty=st.sampled_from([1.0, 1.4]),
    frequency_penalty=st.sampled_from([0.0, 0.3]),
    presence_penalty=st.sampled_from([0.0, 0.3]),
    penalty_window=st.sampled_from([3, 64]),
    seed=st.integers(0, 2**64 - 1),
)
SOURCES = ["none", "itself", "good", "related", "junk", "lookup", "smaller vocabulary", "padded vocabulary"]


def make_source(name: str, scores: Scores, seed: int, rule: Rule = Rule.COUPLED) -> DraftSource | None:
    if name == "none":
        return None
    if name == "lookup":
        return PromptLookup(2, 1)
    size = {"smaller vocabulary": SIZE - 2, "padded vocabulary": SIZE + 3}.get(name, SIZE)
    drafts: dict[str, Scores] = {
        "itself": scores,
        "good": agreeing(scores, 0.8, seed + 1),
        "related": blended(scores, random_scores(SIZE, seed + 1), 0.7),
        "junk": random_scores(SIZE, seed + 1),
        "smaller vocabulary": lambda text: scores(text)[:size],
        "padded vocabulary": lambda text: np.concatenate([scores(text), np.full(3, 30.0, dtype=np.float32)]),
    }
    return DraftModel(ScriptedModel(drafts[name], letters(size, [END])), SIZE, rule, lambda: False)


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 10_000), samplers, st.sampled_from(SOURCES), st.sampled_from([1, 4, 8, 16]), st.booleans())
def test_same_seed_same_words(model_seed: int, sampler: Sampler, name: str, length: int, can_end: bool) -> None:
    scores = random_scores(SIZE, model_seed)
    ends = [END] if can_end else []
    expected = one_by_one(scores, sampler, PROMPT, 24, ends)
    target = ScriptedModel(scores, letters(SIZE, ends))
    reply = reply_of(target, make_source(name, scores, model_seed), sampler, length=length, max_tokens=24)
    assert reply.ids == expected
    ended = expected[-1] in ends
    assert reply.text == "".join(chr(ord("a") + token) for token in (expected[:-1] if ended else expected))
    assert reply.finish is (FinishReason.STOP if ended else FinishReason.LENGTH)
    check_counts(reply)


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("length", [1, 4, 8, 16])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("penalty", [1.0, 1.4])
def test_a_model_that_drafts_for_itself_is_always_accepted(
    rule: Rule, length: int, temperature: float, penalty: float
) -> None:
    scores = random_scores(SIZE, 4)
    sampler = Sampler(SamplingSettings(temperature, repeat_penalty=penalty, frequency_penalty=penalty - 1.0, seed=8))
    target = ScriptedModel(scores, letters(SIZE))
    source = DraftModel(ScriptedModel(scores, letters(SIZE)), SIZE, rule, lambda: False)
    reply = reply_of(target, source, sampler, length=length, max_tokens=1 + 2 * (length + 1), rule=rule)
    assert reply.stats.acceptance_rate == 1.0
    assert reply.stats.mean_acceptance_length == length + 1
    assert reply.stats.acceptance_rate_per_position == (1.0,) * length
    assert [len(step.emitted) for step in reply.steps] == [1, length + 1, length + 1]
    assert {step.emitted[-1].origin for step in reply.steps[1:]} == {Origin.BONUS}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), samplers, st.sampled_from(SOURCES))
def test_the_rejection_rule_counts_as_honestly(model_seed: int, sampler: Sampler, name: str) -> None:
    scores = random_scores(SIZE, model_seed)
    source = make_source(name, scores, model_seed, Rule.REJECTION)
    target = ScriptedModel(scores, letters(SIZE, [END]))
    reply = reply_of(target, source, sampler, max_tokens=20, rule=Rule.REJECTION)
    check_counts(reply)
    if name == "none":
        assert reply.ids == one_by_one(scores, sampler, PROMPT, 20, [END])


def check_counts(reply: Reply) -> None:
    """Everything that holds of any reply."""
    stats = reply.stats
    accepted = [token for token in reply.tokens if token.origin is Origin.ACCEPTED]
    assert stats.generated_tokens == len(reply.ids)
    assert stats.verify_steps == len(reply.steps)
    assert stats.accepted_draft_tokens_count == len(accepted)
    assert stats.rejected_draft_tokens_count == sum(len(step.rejected) for step in reply.steps)
    assert stats.ignored_draft_tokens_count == sum(len(step.ignored) for step in reply.steps)
    tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
    assert stats.total_draft_tokens_count == tested + stats.ignored_draft_tokens_count
    assert stats.acceptance_rate == (len(accepted) / tested if tested else None)
    assert [step.index for step in reply.steps] == list(range(len(reply.steps)))
    for step in reply.steps:
        assert [token.origin is Origin.ACCEPTED for token in step.emitted] == sorted(
            (token.origin is Origin.ACCEPTED for token in step.emitted), reverse=True
        )
        drafted = step.accepted_count + len(step.rejected) + len(step.ignored)
        assert (step.source is not None) == (drafted > 0)
        assert not (step.rejected and step.ignored)
        if step.rejected:
            assert step.emitted[-1].origin is Origin.CORRECTED
            assert step.rejected[0].id != step.emitted[-1].id
            assert step.rejected[0].probability is not None
            assert all(token.probability is None for token in step.rejected[1:])
        elif step.emitted[-1].origin is not Origin.ACCEPTED:
            assert step.emitted[-1].origin is (Origin.BONUS if drafted else Origin.TARGET)
        for token in step.emitted:
            assert token.probability is not None
            assert 0.0 < token.probability <= 1.0 + 1e-9
            assert token.source is (step.source if token.origin is Origin.ACCEPTED else None)
            by_model = token.source is Source.DRAFT_MODEL
            assert (token.draft_probability is not None) == by_model


def test_origins_and_probabilities_by_hand() -> None:
    reply = [4, 5, 6, 7, 8, 9, 4, 5]
    guess = [*PROMPT, 4, 5, 6, 0, 1, 9, 4, 5]
    target = ScriptedModel(reciting(reply, len(PROMPT), SIZE), letters(SIZE))
    got = reply_of(target, ScriptedSource(guess), max_tokens=8, length=3, alternatives=2)
    origins = [[token.origin for token in step.emitted] for step in got.steps]
    accepted, corrected = Origin.ACCEPTED, Origin.CORRECTED
    # 4 comes from the prompt; 5, 6 pass and 0 fails at 7; 1 fails at once at 8; 9 and 4 pass, and 5 is the bonus.
    assert origins == [
        [Origin.TARGET],
        [accepted, accepted, corrected],
        [corrected],
        [accepted, accepted, Origin.BONUS],
    ]
    assert [token.id for token in got.steps[1].rejected] == [0]
    assert [token.id for token in got.steps[2].rejected] == [1, 9, 4]
    assert got.stats.acceptance_rate_per_position == pytest.approx((2 / 3, 2 / 3, 0.0))
    assert got.stats.mean_acceptance_length == pytest.approx(7 / 3)
    assert got.steps[1].rejected[0].probability == pytest.approx(0.0, abs=1e-12)
    first = got.tokens[0]
    assert first.probability == pytest.approx(1.0)
    assert [(other.id, other.text) for other in first.alternatives[:1]] == [(4, "e")]
    assert [step.cache_length for step in got.steps] == [7, 10, 11, 14]


def test_the_prompt_is_reported_as_it_goes_in() -> None:
    target = ScriptedModel(random_scores(SIZE, 1), letters(SIZE), batch_limit=3)
    reply = reply_of(target, None, max_tokens=2)
    assert [(at.done, at.total, at.reused) for at in reply.progress] == [(3, 7, 0), (6, 7, 0), (7, 7, 0)]
    assert [call.outputs for call in target.evaluated[:3]] == [0, 0, 1]


# Ends, stop strings and characters.


def test_nothing_behind_the_end_of_a_reply_is_shown() -> None:
    text = [*PROMPT, 4, 5, END, 6, 7]
    target = ScriptedModel(reciting(text[7:], len(PROMPT), SIZE, then=3), letters(SIZE, [END]))
    source = ScriptedSource(text)
    reply = reply_of(target, source, length=8)
    assert reply.ids == [4, 5, END]
    assert reply.text == "ef"
    assert reply.finish is FinishReason.STOP
    last = reply.steps[-1]
    assert [token.origin for token in last.emitted] == [Origin.ACCEPTED, Origin.ACCEPTED]
    assert last.rejected == ()
    assert [token.id for token in last.ignored] == [6, 7]
    assert reply.stats.ignored_draft_tokens_count == 2
    assert reply.stats.acceptance_rate == 1.0
    assert list(target.tokens) == text[:10]
    assert source.text == text[:10]


def test_an_end_that_the_target_puts_against_the_draft() -> None:
    target = ScriptedModel(reciting([4, END], len(PROMPT), SIZE), letters(SIZE, [END]))
    reply = reply_of(target, ScriptedSource([*PROMPT, 4, 5, 6]))
    assert reply.ids == [4, END]
    assert [token.id for token in reply.steps[-1].rejected] == [5, 6]
    assert list(target.tokens) == [*PROMPT, 4]


PIECES = [
    b"a",
    b"b",
    b"ab",
    b"ba",
    b" stop",
    "漢".encode(),
    b"\xf0\x9f",
    b"\xa6\x8a",
    b"a\xe6\xbc",
    b"\xa2b",
    b"\xff",
    b"",
]
BYTES = ScriptedVocabulary([*PIECES, b"<end>"], ends=[len(PIECES)])
END_OF_BYTES = len(PIECES)
replies = st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=20)
stop_strings = st.lists(
    st.sampled_from(["a", "ab", "aba", "bb", "abab", "漢", "b漢", "🦊", " s", "top", "\ufffd"]), max_size=3
)


def text_before_stop(ids: Sequence[int], stops: Sequence[str]) -> tuple[str, int, bool]:
    """By plain means: the text, how many tokens it took, and whether a stop string ended it.

    Of several the one that is complete first counts, and of those complete with the same token the first to begin.
    """
    data = b""
    for count, token in enumerate(ids, 1):
        data += PIECES[token]
        # Not final: an unfinished character at the end may still become one and is no text yet.
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(data)
        begins = [text.find(stop) for stop in stops if stop in text]
        if begins:
            return text[: min(begins)], count, True
    return data.decode("utf-8", errors="replace"), len(ids), False


@settings(max_examples=300, deadline=None)
@given(replies, stop_strings, st.sets(st.integers(0, 19), max_size=6), st.sampled_from([0, 1, 4, 16]))
def test_text_stops_where_plain_search_says_and_is_never_shown_early(
    ids: list[int], stops: list[str], wrong: set[int], length: int
) -> None:
    prompt = [0]
    guess = [0, *(1 - token % 2 if place in wrong else token for place, token in enumerate(ids)), END_OF_BYTES, 0, 1]
    target = ScriptedModel(reciting([*ids, END_OF_BYTES], 1, BYTES.size), BYTES)
    expected, count, stopped = text_before_stop(ids, stops)
    shown = ""
    tokens: list[Token] = []
    for event in generate(
        target, ScriptedSource(guess), prompt, GREEDY, FixedDraftLength(length), DecodeSettings(stop=tuple(stops))
    ):
        if isinstance(event, Step):
            tokens += event.emitted
            shown += "".join(token.text for token in event.emitted)
            assert expected.startswith(shown)
    assert shown == expected
    emitted = ids[:count] if stopped else [*ids, END_OF_BYTES]
    assert [token.id for token in tokens] == emitted
    assert list(target.tokens) in ([*prompt, *emitted], [*prompt, *emitted[:-1]])


@pytest.mark.parametrize("length", [0, 3])
def test_one_stop_string_is_a_split(length: int) -> None:
    ids = [0, 0, 1, 3, 0, 2, 1, 1, 0]
    whole = b"".join(PIECES[token] for token in ids).decode()
    for stop in ("ba", "bba", "abb", "aab", "b", "bbb"):
        target = ScriptedModel(reciting(ids, 1, BYTES.size, then=END_OF_BYTES), BYTES)
        reply = reply_of(target, ScriptedSource([0, *ids]), prompt=[0], length=length, stop=(stop,))
        assert reply.text == whole.split(stop)[0]
        assert reply.finish is FinishReason.STOP


def test_a_stop_string_in_the_middle_of_an_accepted_batch() -> None:
    ids = [5, 0, 1, 4, 0, 0]
    target = ScriptedModel(reciting(ids, 1, BYTES.size), BYTES)
    reply = reply_of(target, ScriptedSource([0, *ids]), prompt=[0], length=8, stop=("b st",))
    assert reply.text == "漢a"
    assert reply.ids == [5, 0, 1, 4]
    assert len(reply.steps[-1].ignored) == 2
    assert list(target.tokens) == [0, 5, 0, 1, 4]


def test_half_a_character_behind_a_stop_string_is_not_shown() -> None:
    target = ScriptedModel(reciting([1, 8], 1, BYTES.size), BYTES)
    reply = reply_of(target, None, prompt=[0], stop=("a",))
    assert reply.text == "b"


def test_what_looks_like_a_stop_string_is_shown_once_it_is_none() -> None:
    ids = [0, 1, 0, 0, 1, 0, 1]
    target = ScriptedModel(reciting(ids, 1, BYTES.size), BYTES)
    events = generate(target, None, [0], GREEDY, FixedDraftLength(0), DecodeSettings(max_tokens=7, stop=("abb",)))
    texts = [(len(target.tokens) - 1, text_of([event])) for event in events if isinstance(event, Step)]
    # (tokens in the cache, text): a and b wait for the third token, the next a for the fourth, and so on.
    assert texts == [(2, "a"), (2, "b"), (3, "a"), (5, "a"), (5, "b"), (6, "a"), (6, "b")]


def test_a_character_comes_with_the_token_that_completes_it() -> None:
    ids = [6, 7, 8, 9, 10]
    target = ScriptedModel(reciting(ids, 1, BYTES.size, then=END_OF_BYTES), BYTES)
    reply = reply_of(target, ScriptedSource([0, *ids]), prompt=[0])
    assert [token.text for token in reply.tokens] == ["", "🦊", "a", "漢b", "\ufffd", ""]


def test_half_a_character_at_the_limit_is_a_replacement_character() -> None:
    target = ScriptedModel(reciting([0, 6], 1, BYTES.size), BYTES)
    reply = reply_of(target, None, prompt=[0], max_tokens=2)
    assert reply.text == "a\ufffd"


@pytest.mark.parametrize("chosen", [{"max_tokens": 0}, {"max_tokens": -3}, {"alternatives": -1}])
def test_settings_that_mean_nothing_are_refused(chosen: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(chosen))):
        DecodeSettings(**chosen)  # type: ignore[arg-type]


# A draft source that breaks.


@pytest.mark.parametrize("verb", ["begin", "observe", "propose", "accept"])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_source_that_breaks_is_left_behind_with_its_reason(verb: str, after: int) -> None:
    text = [*PROMPT, *one_by_one(random_scores(SIZE, 2), GREEDY, PROMPT, 30)]
    source = ScriptedSource(text, breaks=verb, after=after)
    target = ScriptedModel(random_scores(SIZE, 2), letters(SIZE))
    reply = reply_of(target, source, max_tokens=30)
    assert reply.ids == text[7:]
    check_counts(reply)
    if verb == "begin" and after:
        return
    assert source.calls.count(verb) == after + 1
    assert reply.stats.speculation == SpeculationState(False, f"It broke in {verb}.")
    assert reply.states[-1] == reply.stats.speculation, "the reader is told, not only the record"
    assert (reply.stats.accepted_draft_tokens_count > 0) == (after > 0)


def test_states_are_told_when_they_change() -> None:
    draft = ScriptedModel(random_scores(SIZE, 2), letters(SIZE), context_length=15)
    source = DraftModel(draft, SIZE, Rule.COUPLED, lambda: False)
    reply = reply_of(ScriptedModel(random_scores(SIZE, 2), letters(SIZE)), source, max_tokens=20)
    assert [state.active for state in reply.states] == [True, False]
    assert "15 tokens" in reply.states[-1].reason
    assert reply_of(ScriptedModel(random_scores(SIZE, 2), letters(SIZE)), None, max_tokens=5).states == (
        SpeculationState(False, "No draft source is in use."),
    )


def test_the_verbs_come_in_their_order() -> None:
    source = ScriptedSource([*PROMPT, 4, 4, 4])
    target = ScriptedModel(reciting([4, 4, 5], len(PROMPT), SIZE), letters(SIZE), batch_limit=4)
    reply_of(target, source, max_tokens=3)
    assert source.calls == ["observe", "observe", "begin", "accept", "propose", "observe", "accept"]


# Times, by a clock that only evaluations move.


def test_tokens_held_back_count_in_the_time_they_took(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0

    def scores(text: tuple[int, ...]) -> Row:
        nonlocal seconds
        seconds += 2.0
        return reciting([0, 1, 0, 1, 0, 2], 1, SIZE)(text)

    monkeypatch.setattr(decode, "time", SimpleNamespace(perf_counter=lambda: seconds))
    # Everything looks like the stop string until the last token: the whole reply is shown at once.
    reply = reply_of(ScriptedModel(scores, letters(SIZE)), None, prompt=[5], max_tokens=6, stop=("ababab",))
    assert reply.text == "ababac"
    assert reply.stats.time_to_first_token_seconds == 2.0
    assert reply.stats.decode_seconds == 10.0
    assert reply.stats.tokens_per_second == 0.5
    assert [step.target_seconds for step in reply.steps] == [2.0] * 6


def test_a_cancel_before_the_first_token_claims_no_speed() -> None:
    reply = reply_of(ScriptedModel(random_scores(SIZE, 1), letters(SIZE)), None, cancelled=lambda: True)
    assert reply.finish is FinishReason.CANCELLED
    assert reply.steps == ()
    assert reply.stats.generated_tokens == 0
    assert reply.stats.time_to_first_token_seconds == 0.0
    assert reply.stats.prompt_tokens_per_second == 0.0
