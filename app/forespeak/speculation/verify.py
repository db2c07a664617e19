"""The two rules by which a target judges a draft, as pure functions.

`coupled`: the target's own sample is emitted at every place, and a drafted token counts as accepted exactly when it
equals that sample. The draft model guesses it by using the same noise (Daliri, Musco, Suresh: "Coupling without
Communication and Drafter-Invariant Speculative Decoding", arXiv 2408.07978). The text depends on seed and target alone.

`rejection`: the draft is sampled with noise of its own and accepted with probability min(1, p/q); at the first
rejection one token is drawn from norm(max(p - q, 0)) (Leviathan, Kalman, Matias, arXiv 2211.17192, algorithm 1; Chen
et al., arXiv 2302.01318). The text follows the target's distribution but varies with the draft.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forespeak.speculation.draft import Draft
from forespeak.speculation.sampling import Distribution, Sampler, Stream
from forespeak.speculation.settings import Rule


@dataclass(frozen=True, slots=True)
class Verification:
    """`accepted` leading draft tokens stand; `token` is the target's own that follows them.

    `distributions` are the target's, one for each emitted token: accepted ones first, then the one of `token`, which
    is also the one that judged the first rejected draft token.
    """

    accepted: int
    token: int
    distributions: tuple[Distribution, ...]


TargetAt = Callable[[int], Distribution]
"""The target's distribution at a place of the draft, 0 for its first token. Asked in order, once each, and only as
far as the draft is accepted: a place behind a rejected token has no meaning."""


def verify(rule: Rule, draft: Draft, target_at: TargetAt, sampler: Sampler, position: int) -> Verification:
    """Judge `draft`, whose first token would stand at `position` (counted from the start of the prompt)."""
    # At temperature 0 both rules are plain matching.
    if rule is Rule.REJECTION and sampler.settings.temperature > 0.0:
        return verify_by_rejection(draft, target_at, sampler, position)
    return verify_coupled(draft, target_at, sampler, position)


def verify_coupled(draft: Draft, target_at: TargetAt, sampler: Sampler, position: int) -> Verification:
    seen: list[Distribution] = []
    for place, drafted in enumerate(draft.tokens):
        seen.append(target_at(place))
        chosen = sampler.choose(seen[-1], position + place)
        if chosen != drafted:
            return Verification(place, chosen, tuple(seen))
    seen.append(target_at(len(draft.tokens)))
    bonus = sampler.choose(seen[-1], position + len(draft.tokens))
    return Verification(len(draft.tokens), bonus, tuple(seen))


def verify_by_rejection(draft: Draft, target_at: TargetAt, sampler: Sampler, position: int) -> Verification:
    seen: list[Distribution] = []
    for place, drafted in enumerate(draft.tokens):
        target = target_at(place)
        seen.append(target)
        # A source without probabilities is certain of its guess: q is 1 there and 0 elsewhere.
        q_of_drafted = draft.probability(place)
        q_of_drafted = 1.0 if q_of_drafted is None else q_of_drafted
        if sampler.uniform(position + place, Stream.ACCEPTANCE) * q_of_drafted < target.probability(drafted):
            continue
        proposal = draft.distributions[place] if draft.distributions else _certain(drafted)
        recovered = sampler.choose(residual(target, proposal), position + place, Stream.RECOVERY)
        return Verification(place, recovered, tuple(seen))
    seen.append(target_at(len(draft.tokens)))
    bonus = sampler.choose(seen[-1], position + len(draft.tokens), Stream.TARGET)
    return Verification(len(draft.tokens), bonus, tuple(seen))


def _certain(token: int) -> Distribution:
    return Distribution(np.array([token], dtype=np.int64), np.zeros(1))


def residual(target: Distribution, proposal: Distribution) -> Distribution:
    """norm(max(p - q, 0)): what a rejected place is drawn from, so that the emitted token follows p exactly."""
    order = np.argsort(proposal.ids)
    where = np.searchsorted(proposal.ids, target.ids, sorter=order)
    found = order[np.minimum(where, proposal.ids.size - 1)]
    q = np.where(proposal.ids[found] == target.ids, np.exp(proposal.log_probabilities[found]), 0.0)
    rest = np.maximum(np.exp(target.log_probabilities) - q, 0.0)
    total = rest.sum()
    if total <= 0.0:
        # p and q equal up to rounding: a rejection has probability zero, and p itself is the limit.
        return target
    keep = rest > 0.0
    return Distribution(target.ids[keep], np.log(rest[keep] / total))
