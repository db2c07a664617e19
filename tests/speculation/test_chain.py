"""Sources in a row: order, attribution, limits, breakages, and a draft model that is not bothered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from forespeak.speculation.chain import Chain
from forespeak.speculation.draft import Draft, DraftSourceError, Evaluation
from forespeak.speculation.draft_model import DraftModel
from forespeak.speculation.ngram import PromptLookup
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Origin, Source
from scripted import GREEDY, ScriptedModel, letters, reciting, reply_of

SAMPLER = Sampler(SamplingSettings())
A, B, C = Source.NGRAM_SIMPLE, Source.PROMPT_LOOKUP, Source.DRAFT_MODEL


class Member:
    """Proposes `guess` again and again; breaks in a verb, or is blocked, if told so."""

    def __init__(self, source: Source, guess: Sequence[int] = ()) -> None:
        self.source = source
        self.guess = tuple(guess)
        self.calls: list[tuple[str, object]] = []
        self.breaks: str | None = None
        self.blocked: str | None = None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._called("begin", tuple(tokens))

    def observe(self, evaluation: Evaluation) -> None:
        self._called("observe", evaluation.tokens)

    def propose(self, limit: int) -> Draft:
        self._called("propose", limit)
        return Draft(self.guess[:limit], self.source if self.guess[:limit] else None)

    def accept(self, tokens: Sequence[int]) -> None:
        self._called("accept", tuple(tokens))

    def _called(self, verb: str, argument: object) -> None:
        self.calls.append((verb, argument))
        if verb == self.breaks:
            raise DraftSourceError(f"{self.source.label} broke in {verb}.")

    def asked(self) -> list[object]:
        return [argument for verb, argument in self.calls if verb == "propose"]


def chained(*members: Member) -> Chain:
    chain = Chain({member.source: member for member in members})
    chain.begin([1, 2], SAMPLER)
    return chain


def test_the_first_that_proposes_wins() -> None:
    first, second, third = Member(A), Member(B, [3, 4]), Member(C, [5, 6])
    chain = chained(first, second, third)
    draft = chain.propose(4)
    assert draft.tokens == (3, 4)
    assert draft.source is B
    assert (first.asked(), second.asked(), third.asked()) == ([4], [4], [])
    second.guess = ()
    assert chain.propose(1).tokens == (5,)
    third.guess = ()
    empty = chain.propose(1)
    assert empty.tokens == ()
    assert empty.source is None
    assert chain.sources == (A, B, C)


def test_everybody_is_told_everything() -> None:
    members = Member(A, [3]), Member(B), Member(C)
    chain = chained(*members)
    chain.observe(Evaluation((7,), np.zeros((1, 8), dtype=np.float32)))
    chain.propose(1)
    chain.accept([3, 9])
    told = [("begin", (1, 2)), ("observe", (7,)), ("accept", (3, 9))]
    for member in members:
        assert [call for call in member.calls if call[0] != "propose"] == told


@pytest.mark.parametrize("verb", ["begin", "observe", "propose", "accept"])
def test_one_that_breaks_is_left_out_and_the_others_go_on(verb: str) -> None:
    broken, sound = Member(A, [1]), Member(B, [2])
    broken.breaks = verb
    chain = chained(broken, sound)
    chain.observe(Evaluation((2,), np.zeros((1, 8), dtype=np.float32)))
    chain.propose(1)
    chain.accept([1])
    assert chain.propose(1).tokens == (2,)
    assert chain.obstacles == {A: f"ngram simple broke in {verb}."}
    assert chain.blocked is None
    assert [name for name, _ in broken.calls].count(verb) == 1
    # The next reply is a new chance.
    broken.breaks = None
    chain.begin([1], SAMPLER)
    assert chain.propose(1).tokens == (1,)
    assert chain.obstacles == {}


def test_blocked_only_if_all_are() -> None:
    first, second = Member(A), Member(B)
    chain = chained(first, second)
    first.blocked = "The first cannot."
    assert chain.blocked is None
    assert chain.obstacles == {A: "The first cannot."}
    second.breaks = "propose"
    chain.propose(2)
    assert chain.blocked == "The first cannot. prompt lookup broke in propose."


def test_a_chain_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="source"):
        Chain({})


# With a real lookup and a real draft model, through the loop.

SIZE = 12
PROMPT = [0, 1, 2, 3, 4, 5, 0, 1]
REPLY = [2, 3, 4, 5, 9, 8, 7, 6, 10]


def draft_model(scores: ScriptedModel) -> DraftModel:
    return DraftModel(scores, SIZE, Rule.COUPLED, lambda: False)


def test_each_accepted_token_names_its_source() -> None:
    said = reciting(REPLY, len(PROMPT), SIZE)
    draft = ScriptedModel(said, letters(SIZE))
    chain = Chain({B: PromptLookup(), C: draft_model(draft)})
    reply = reply_of(ScriptedModel(said, letters(SIZE)), chain, GREEDY, PROMPT, max_tokens=9, length=2)
    assert reply.ids == REPLY
    named = [(token.id, token.source) for token in reply.tokens if token.origin is Origin.ACCEPTED]
    # 3, 4 and then 0, 1 are looked up, the latter in vain; 8, 7 and 10 only the model can know.
    assert named == [(3, B), (4, B), (8, C), (7, C)]
    assert [step.source for step in reply.steps] == [None, B, B, C, None]


def test_a_draft_model_is_not_bothered_while_others_propose() -> None:
    draft = ScriptedModel(reciting([9] * 99, 0, SIZE), letters(SIZE))
    lookup = Member(B, [3, 4])
    chain = Chain({B: lookup, C: draft_model(draft)})
    chain.begin(PROMPT, SAMPLER)
    read = draft.evaluated_count
    for _ in range(5):
        assert chain.propose(2).source is B
        chain.accept([3, 4, 5])
    assert draft.evaluated_count == read
    # Its turn comes: now it catches up.
    lookup.guess = ()
    assert chain.propose(1).tokens == (9,)
    assert draft.tokens == (*PROMPT, *[3, 4, 5] * 5)


def test_a_draft_model_whose_guess_was_not_asked_for_again_stays_right() -> None:
    """It drafts, then a lookup wins for a while, then it drafts again: its cache holds the text and nothing else."""
    draft = ScriptedModel(reciting([9] * 99, 0, SIZE), letters(SIZE))
    lookup = Member(B)
    chain = Chain({B: lookup, C: draft_model(draft)})
    chain.begin(PROMPT, SAMPLER)
    assert chain.propose(3).tokens == (9, 9, 9)
    chain.accept([9, 1])
    lookup.guess = (5, 5)
    chain.propose(3)
    chain.accept([5, 2])
    lookup.guess = ()
    chain.propose(1)
    assert draft.tokens == (*PROMPT, 9, 1, 5, 2)
