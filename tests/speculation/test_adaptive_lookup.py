"""The judge of a source without a model: what it learns, for nothing, and what it finds worth a test."""

from __future__ import annotations

import json

import pytest

from forespeak.speculation.adaptive_lookup import AdaptiveLookup, trimmed
from forespeak.speculation.costs import Costs, RunningCosts
from forespeak.speculation.draft import EMPTY_DRAFT, Draft
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token

CHEAP = Costs(((1, 0.020), (2, 0.021), (17, 0.024)))
DEAR = Costs(((1, 0.010), (2, 0.018), (17, 0.150)))


def found(*support: int) -> Draft:
    return Draft(tuple(range(len(support))), Source.PROMPT_LOOKUP, support=support)


def plain_step(*tokens: int) -> Step:
    return Step(1, tuple(Token(token, "x", Origin.TARGET) for token in tokens))


def taught(judge: AdaptiveLookup, support: int, *, right: bool, times: int) -> None:
    for _ in range(times):
        judge.consider(found(support))
        judge.learn(plain_step(0 if right else 9))


def test_it_learns_from_what_was_not_tested() -> None:
    judge = AdaptiveLookup(RunningCosts(DEAR))
    before = judge.chance(2)
    taught(judge, 2, right=True, times=20)
    assert judge.chance(2) > 0.9 > before
    taught(judge, 2, right=False, times=200)
    assert judge.chance(2) < 0.1


def test_tokens_behind_a_wrong_one_teach_nothing() -> None:
    judge = AdaptiveLookup(RunningCosts(DEAR))
    before = judge.learned()["going"]
    judge.consider(found(2, 12, 12))
    judge.learn(plain_step(9, 1, 2))
    assert judge.learned()["going"] == before
    judge.consider(found(2, 12, 12))
    judge.learn(plain_step(0))
    assert judge.learned()["going"] == before, "the reply was not followed so far"
    judge.consider(found(2, 12, 12))
    judge.learn(plain_step(0, 1))
    assert judge.learned()["going"] != before


def test_more_agreement_promises_no_less() -> None:
    judge = AdaptiveLookup(RunningCosts(DEAR))
    chances = [judge.chance(support) for support in (1, 2, 4, 8, 16, 32, 100)]
    assert chances == sorted(chances)
    before = judge.chance(3)
    taught(judge, 2, right=True, times=40)
    assert judge.chance(3) > before + 0.1


def test_the_length_follows_chance_and_cost() -> None:
    cheap, dear = AdaptiveLookup(RunningCosts(CHEAP)), AdaptiveLookup(RunningCosts(DEAR))
    likely, unlikely = found(*range(24, 40)), found(*range(2, 18))
    assert cheap.worth_testing(likely, 50.0)[0] == 16
    assert cheap.worth_testing(unlikely, 50.0)[0] > 0
    assert dear.worth_testing(unlikely, 100.0) == (0, 0.0)
    length, worth = dear.worth_testing(found(*([100] * 16)), 100.0)
    assert (length, worth) == (0, 0.0) or worth > 0
    assert cheap.worth_testing(likely, 50.0)[1] > cheap.worth_testing(likely, 100.0)[1]
    assert cheap.worth_testing(likely, 50.0)[1] > cheap.worth_testing(likely, 50.0, catch_up=0.004)[1]
    assert cheap.worth_testing(EMPTY_DRAFT, 50.0) == (0, 0.0)


def test_it_says_why_it_rests() -> None:
    judge = AdaptiveLookup(RunningCosts(DEAR))
    assert judge.state.active
    for _ in range(40):
        judge.learn(plain_step(1))
    assert judge.state.reason == "Paused: the text does not repeat anything yet."
    taught(judge, 2, right=False, times=64)
    state = judge.state
    assert not state.active
    assert state.draft_length == 0
    assert "its tokens are right in" in state.reason
    assert state.costs is not None
    assert state.costs.plain_seconds == 0.010
    judge.consider(found(32, 32))
    tested = (DraftedToken(0, "x"), DraftedToken(1, "x"))
    judge.learn(Step(1, (Token(5, "x", Origin.CORRECTED),), tested, source=Source.PROMPT_LOOKUP))
    assert judge.state.active
    assert judge.state.draft_length == 2
    assert judge.state.reason.startswith("A check of 3 tokens costs")


def test_trimmed_keeps_support_beside_its_tokens() -> None:
    draft = trimmed(found(2, 3, 4), 2)
    assert (draft.tokens, draft.support, draft.dropped) == ((0, 1), (2, 3), ())
    assert trimmed(draft, 2) is draft
    assert trimmed(draft, 0) == EMPTY_DRAFT


def test_what_was_learned_is_kept() -> None:
    judge, other = AdaptiveLookup(RunningCosts(DEAR)), AdaptiveLookup(RunningCosts(DEAR))
    taught(judge, 2, right=True, times=9)
    other.recall(json.loads(json.dumps(judge.learned())))
    judge.begin()
    assert other.chance(2) == judge.chance(2)
    wrongs: list[dict[str, object]] = [
        {},
        {"begun": [[1.0], [1.0]], "going": []},
        {"begun": [[5.0] * 10, [1.0] * 10], "going": 3},
    ]
    for wrong in wrongs:
        with pytest.raises((ValueError, KeyError, TypeError)):
            other.recall(wrong)
    assert other.chance(2) == judge.chance(2)


def test_at_the_beginning_of_a_reply_little_is_believed() -> None:
    judge = AdaptiveLookup(RunningCosts(CHEAP))
    taught(judge, 8, right=True, times=40)
    sure = judge.chance(8)
    judge.begin()
    assert judge.chance(8) < 0.5 * sure
    taught(judge, 8, right=True, times=12)
    assert judge.chance(8) > 0.85 * sure, "a reply that copies is soon believed"


def test_a_reply_that_stops_copying_is_noticed() -> None:
    judge = AdaptiveLookup(RunningCosts(CHEAP))
    for support in (2, 4, 8, 16):
        taught(judge, support, right=True, times=40)
    before = judge.chance(16)
    taught(judge, 4, right=False, times=8)
    assert judge.chance(16) < 0.7 * before, "at once by a third, also where much agrees"
    taught(judge, 4, right=False, times=8)
    assert judge.chance(16) < 0.45 * before


def test_a_reply_that_never_goes_on_as_before_is_not_followed_far() -> None:
    judge = AdaptiveLookup(RunningCosts(CHEAP))
    taught(judge, 2, right=True, times=40)
    followed = found(*range(2, 18))
    length, _ = judge.worth_testing(followed, 50.0)
    for _ in range(8):
        judge.consider(followed)
        judge.learn(plain_step(0, 9))
    assert judge.worth_testing(followed, 50.0)[0] < 0.5 * length
