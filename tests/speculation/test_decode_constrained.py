"""The whole loop under a grammar: the same words with every draft, the right distribution, nothing forbidden."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from automaton import Automaton
from chi_square import chi_square_p
from exact_continuations import exact_continuations
from forespeak.speculation.constraint import GrammarConstraint, Mask, NoTokenLeftError
from forespeak.speculation.draft import Draft, DraftSource
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Distribution, Sampler, distribution
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import FinishReason, Origin
from scripted import (
    Reply,
    ScriptedModel,
    ScriptedSource,
    ScriptedVocabulary,
    blended,
    letters,
    random_scores,
    reciting,
    reply_of,
)

UNLIKELY = 1e-4
"""Fixed seeds: a test that passes once passes always, and this is how lucky it needed to be."""
SIZE, END = 5, 4
VOCABULARY = letters(SIZE, ends={END})
STEPS = {0: {0: 1, 1: 2}, 1: {1: 2, 2: 0, 3: 1}, 2: {0: 1, 2: 2, 3: 0}}
PROMPT = [0, 1, 2, 0, 3, 1, 2, 2, 0, 1]
TARGET = random_scores(SIZE, 15, order=2, spread=1.2)
DRAFT = blended(TARGET, random_scores(SIZE, 16, order=2, spread=1.5), 0.5)
PLAIN = SamplingSettings(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
SETTINGS = {
    "plain": PLAIN,
    "filters": replace(PLAIN, temperature=1.3, top_k=3, min_p=0.05),
    "bias and DRY": replace(
        PLAIN,
        logit_bias=((3, 1.0), (2, -0.5)),
        dry_multiplier=0.8,
        dry_base=1.3,
        dry_allowed_length=1,
        repeat_penalty=1.2,
    ),
}


def automaton() -> Automaton:
    return Automaton(STEPS, {0, 2}, SIZE)


def grammar(after: bytes = b"", opener: bytes = b"") -> GrammarConstraint:
    return GrammarConstraint(automaton(), VOCABULARY, after, opener, automaton() if opener else None)


def spelt(tokens: Sequence[int]) -> bytes:
    return bytes(ord("a") + token for token in tokens)


def allowed(text: Sequence[int], after: Sequence[int] = (), opener: Sequence[int] = ()) -> list[bool]:
    """Which tokens may follow, worked out from the text alone."""
    begun = tuple(text[: len(opener)])
    if opener and begun != tuple(opener)[: len(text)]:
        after = ()
    elif len(text) < len(opener):
        # A token that belongs to the opener alone leads no further in the grammar.
        at_once = allowed(text) if all(allowed(text[:place])[token] for place, token in enumerate(text)) else []
        return [bool(at_once and at_once[token]) or token == opener[len(text)] for token in range(SIZE)]
    if after:
        starts = [at for at in range(len(text) - len(after) + 1) if tuple(text[at : at + len(after)]) == tuple(after)]
        if not starts:
            return [True] * SIZE
        text = text[starts[0] + len(after) :]
    state = 0
    for token in text:
        state = STEPS[state][token]
    return [token in STEPS[state] or (token == END and state in {0, 2}) for token in range(SIZE)]


class Watched:
    """Any draft source; what it proposed is kept, with the text it was to follow."""

    def __init__(self, inner: DraftSource) -> None:
        self._inner = inner
        self.begin, self.observe, self.accept = inner.begin, inner.observe, inner.accept
        self.drafts: list[Draft] = []

    @property
    def blocked(self) -> str | None:
        return self._inner.blocked

    def propose(self, limit: int) -> Draft:
        self.drafts.append(self._inner.propose(limit))
        return self.drafts[-1]


def source(kind: str, rule: Rule, guess: Sequence[int] = ()) -> DraftSource | None:
    if kind == "draft model":
        return DraftModel(ScriptedModel(DRAFT, letters(SIZE, ends={END})), SIZE, rule, lambda: False)
    if kind == "prompt lookup":
        return PromptLookup()
    return ScriptedSource(guess) if kind == "guess" else None


def reply(
    kind: str,
    rule: Rule,
    chosen: SamplingSettings,
    after: bytes = b"",
    length: int = 4,
    opener: bytes = b"",
    **more: Any,
) -> Reply:
    target = ScriptedModel(TARGET, VOCABULARY)
    drafts = source(kind, rule, [*PROMPT, *([0, 3, 1, 0, 2, 1, 3] * 5)])
    return reply_of(target, drafts, Sampler(chosen, grammar(after, opener)), PROMPT, length, rule=rule, **more)


THOUGHTS = {
    "from the start": ((), ()),
    "after a trigger": ((2, 0), ()),
    "if it opens": ((2, 0), (2, 2)),
    "if it opens as the grammar may": ((2, 0), (1, 1)),
    "if it opens as the closer begins": ((2, 0), (2,)),
}
"""What closes thoughts before the grammar, and what opens them, if the reply has to do that itself."""


@pytest.mark.parametrize("kind", ["draft model", "prompt lookup", "guess"])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("thoughts", THOUGHTS)
def test_same_seed_same_words(kind: str, name: str, thoughts: str) -> None:
    after, opener = THOUGHTS[thoughts]
    trigger, opens = spelt(after), spelt(opener)
    accepted = opened = 0
    for seed in range(25):
        for temperature in (SETTINGS[name].temperature, 0.0):
            chosen = replace(SETTINGS[name], seed=seed, temperature=temperature)
            plain = reply("none", Rule.COUPLED, chosen, trigger, opener=opens, max_tokens=25)
            opened += bool(opener) and tuple(plain.ids[: len(opener)]) == opener
            for length in (1, 2, 7):
                drafted = reply(kind, Rule.COUPLED, chosen, trigger, length, opens, max_tokens=25)
                assert drafted.ids == plain.ids
                assert drafted.finish == plain.finish
                accepted += drafted.stats.accepted_draft_tokens_count
            for place, token in enumerate(plain.ids):
                assert allowed(plain.ids[:place], after, opener)[token]
    assert accepted > 30
    if opener:
        assert 0 < opened < 50, "both kinds of replies must be among them"


@pytest.mark.parametrize("kind", ["draft model", "prompt lookup", "guess"])
@pytest.mark.parametrize("opener", [(), (2, 2), (1, 1)])
def test_what_is_emitted_is_allowed_under_the_rejection_rule(kind: str, opener: tuple[int, ...]) -> None:
    ended = 0
    for seed in range(60):
        said = reply(kind, Rule.REJECTION, replace(PLAIN, seed=seed), b"ca", opener=spelt(opener), max_tokens=25)
        for place, token in enumerate(said.ids):
            assert allowed(said.ids[:place], (2, 0), opener)[token]
        ended += said.finish is FinishReason.STOP
    assert ended > 10


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("kind", ["draft model", "prompt lookup"])
@pytest.mark.parametrize("thoughts", ["from the start", "if it opens", "if it opens as the grammar may"])
def test_nothing_forbidden_is_proposed_or_verified(rule: Rule, kind: str, thoughts: str) -> None:
    after, opener = THOUGHTS[thoughts]
    cut = 0
    for seed in range(30):
        inner = source(kind, rule)
        assert inner is not None
        watched = Watched(inner)
        sampler = Sampler(replace(PLAIN, seed=seed), grammar(spelt(after), spelt(opener)))
        target = ScriptedModel(TARGET, VOCABULARY)
        said = reply_of(target, watched, sampler, PROMPT, rule=rule, max_tokens=20)
        text: list[int] = []
        # The prompt's own scores give the first token, and the last one wanted needs no draft.
        drafts = [Draft(), *watched.drafts, Draft()][: len(said.steps)]
        for step, draft in zip(said.steps, drafts, strict=True):
            tested = [*(token.id for token in step.emitted[: step.accepted_count]), *(t.id for t in step.rejected)]
            tested += [token.id for token in step.ignored]
            assert tuple(tested) == draft.tokens[: len(tested)]
            cut += len(tested) < len(draft.tokens)
            for place, token in enumerate(tested):
                assert allowed([*text, *tested[:place]], after, opener)[token]
            if kind == "draft model":
                assert len(tested) == len(draft.tokens)
            text += [token.id for token in step.emitted]
    assert (cut > 0) == (kind == "prompt lookup"), "guesses are cut, a draft model has none to cut"


@pytest.mark.parametrize("rule", Rule)
def test_a_trigger_in_the_middle_of_an_accepted_draft(rule: Rule) -> None:
    """The target wants "ddca" and then "dd" again; behind "ca" the grammar has it say "bc" first."""
    wish = [3, 3, 2, 0, 3, 3, 3, 3]
    guess = [*PROMPT, 3, 3, 2, 0, 0, 2, 0]
    target = ScriptedModel(lambda prefix: reciting(wish, len(PROMPT), SIZE)(prefix) + TARGET(prefix), VOCABULARY)
    sampler = Sampler(replace(PLAIN, temperature=0.5), grammar(b"ca"))
    said = reply_of(target, ScriptedSource(guess), sampler, PROMPT, 6, rule=rule, max_tokens=9)
    plain = reply_of(target, None, Sampler(sampler.settings, grammar(b"ca")), PROMPT, rule=rule, max_tokens=9)
    assert said.ids[:4] == [3, 3, 2, 0]
    over = next(step for step in said.steps if step.source is not None)
    assert [token.origin for token in over.emitted[:3]] == [Origin.ACCEPTED] * 3, "one step goes through the trigger"
    for place, token in enumerate(said.ids):
        assert allowed(said.ids[:place], (2, 0))[token]
    # Behind the trigger the target's wish, d, is forbidden, and its probability told is that of what was left.
    assert said.tokens[4].id in {0, 1, END}
    assert said.tokens[4].probability == pytest.approx(
        distribution(TARGET((*PROMPT, *said.ids[:4])), sampler.settings, [], np.array(allowed([]))).probability(
            said.tokens[4].id
        ),
        abs=1e-3,
    )
    if rule is Rule.COUPLED:
        assert said.ids == plain.ids


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("opener", [(3, 3), (0, 2)], ids=["the opener's alone", "the grammar's too"])
def test_one_draft_through_opener_and_closer(rule: Rule, opener: tuple[int, ...]) -> None:
    """The prompt's scores give the first token; the first draft holds the rest of it all, and its tail is wrong."""
    wish = [*opener, 3, 2, 0, 3, 3, 3]
    guess = [*PROMPT, *wish[:-3], 0, 2, 0]

    def target() -> ScriptedModel:
        return ScriptedModel(lambda prefix: reciting(wish, len(PROMPT), SIZE)(prefix) + TARGET(prefix), VOCABULARY)

    ways = set()
    for seed in range(40):
        chosen = replace(PLAIN, temperature=2.0, seed=seed)
        sampler = Sampler(chosen, grammar(b"ca", spelt(opener)))
        said = reply_of(target(), ScriptedSource(guess), sampler, PROMPT, 8, rule=rule, max_tokens=9)
        assert said.ids[:5] == wish[:5]
        over = next(step for step in said.steps if step.source is not None)
        assert [token.origin for token in over.emitted[:4]] == [Origin.ACCEPTED] * 4, "one step goes through both"
        for place, token in enumerate(said.ids):
            assert allowed(said.ids[:place], (2, 0), opener)[token]
        # Behind the closer the target's wish, d, is forbidden, and the draft's a is tested against what was left.
        ways.add(over.accepted_count)
        if rule is Rule.COUPLED:
            plain = reply_of(
                target(), None, Sampler(chosen, grammar(b"ca", spelt(opener))), PROMPT, rule=rule, max_tokens=9
            )
            assert said.ids == plain.ids
    assert len(ways) > 1, "some drafts are rejected behind the closer, others go on"


def exact(
    chosen: SamplingSettings, after: tuple[int, ...], opener: tuple[int, ...] = (), length: int = 3
) -> dict[tuple[int, ...], float]:
    def choices_behind(text: tuple[int, ...]) -> Distribution:
        history = (*PROMPT, *text)
        return distribution(TARGET(history), chosen, history, np.array(allowed(text, after, opener)))

    return exact_continuations(choices_behind, length, lambda token: token == END)


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize(
    ("kind", "name", "after", "opener"),
    [
        ("draft model", "plain", (), ()),
        ("draft model", "bias and DRY", (), ()),
        ("draft model", "filters", (2,), ()),
        ("draft model", "plain", (2,), (3,)),
        ("draft model", "bias and DRY", (2,), (0, 2)),
        ("prompt lookup", "bias and DRY", (), ()),
        ("prompt lookup", "plain", (2,), ()),
        ("prompt lookup", "plain", (0,), (2,)),
    ],
)
def test_the_words_follow_the_targets_distribution_under_the_grammar(
    rule: Rule, kind: str, name: str, after: tuple[int, ...], opener: tuple[int, ...]
) -> None:
    runs = 1200
    counts: Counter[tuple[int, ...]] = Counter()
    trigger, opens = spelt(after), spelt(opener)
    accepted = rejected = 0
    for seed in range(runs):
        said = reply(kind, rule, replace(SETTINGS[name], seed=seed), trigger, 3, opens, max_tokens=4)
        counts[tuple(said.ids[:3])] += 1
        accepted += said.stats.accepted_draft_tokens_count
        rejected += said.stats.rejected_draft_tokens_count
    assert min(accepted, rejected) > runs // 30, "both ways through the rule must be taken often"
    assert chi_square_p(counts, exact(SETTINGS[name], after, opener)) > UNLIKELY


class Unmasked(GrammarConstraint):
    """Forgets the drafted tokens: every place of a step is judged by the grammar's state at its beginning."""

    def allowed(self, drafted: Sequence[int]) -> Mask | None:
        return super().allowed([])


def test_a_mask_that_ignores_the_draft_fails() -> None:
    """The negative control: otherwise the tests above prove nothing."""
    wrong = 0
    for seed in range(20):
        constraint = Unmasked(Automaton(STEPS, {0, 2}, SIZE), VOCABULARY)
        drafts = source("draft model", Rule.COUPLED)
        try:
            said = reply_of(
                ScriptedModel(TARGET, VOCABULARY),
                drafts,
                Sampler(replace(PLAIN, seed=seed), constraint),
                PROMPT,
                max_tokens=12,
            )
        except ValueError:
            wrong += 1
        else:
            plain = reply("none", Rule.COUPLED, replace(PLAIN, seed=seed), max_tokens=12)
            wrong += said.ids != plain.ids
    assert wrong > 10


def test_a_stop_string_in_an_accepted_draft_leaves_the_grammar_where_the_text_ends() -> None:
    for seed in range(20):
        chosen = replace(PLAIN, seed=seed)
        plain = reply("none", Rule.COUPLED, chosen, max_tokens=25, stop=("cc", "dd"))
        drafted = reply("draft model", Rule.COUPLED, chosen, max_tokens=25, stop=("cc", "dd"))
        assert (drafted.text, drafted.ids) == (plain.text, plain.ids)


def test_a_grammar_with_nothing_left_ends_the_generation_with_its_own_error() -> None:
    sampler = Sampler(replace(PLAIN, logit_bias=((0, -math.inf), (1, -math.inf), (END, -math.inf))), grammar())
    with pytest.raises(NoTokenLeftError):
        reply_of(ScriptedModel(TARGET, VOCABULARY), None, sampler, PROMPT)


def test_a_draft_model_that_lacks_the_allowed_tokens_proposes_nothing() -> None:
    """Its vocabulary ends before the only token that the grammar allows."""
    only_d = GrammarConstraint(Automaton({0: {3: 0}}, set(), SIZE), VOCABULARY)
    small = ScriptedModel(random_scores(3, 1), ScriptedVocabulary([b"a", b"b", b"c"]))
    drafts = DraftModel(small, SIZE, Rule.COUPLED, lambda: False)
    said = reply_of(ScriptedModel(TARGET, VOCABULARY), drafts, Sampler(PLAIN, only_d), [0, 1], max_tokens=1)
    assert said.ids == [3]
    drafts = DraftModel(ScriptedModel(random_scores(3, 1), small.vocabulary), SIZE, Rule.COUPLED, lambda: False)
    two = GrammarConstraint(Automaton({0: {0: 1}, 1: {3: 0, 0: 0}, 2: {}}, set(), SIZE), VOCABULARY)
    drafts.begin([0, 1], Sampler(replace(PLAIN, logit_bias=((0, 0.0),)), two))
    two.accept([0])
    banned = Sampler(replace(PLAIN, logit_bias=((0, -math.inf),)), two)
    drafts.begin([0, 1, 0], banned)
    assert drafts.propose(3) == Draft()
