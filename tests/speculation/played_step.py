"""A step as a simulated machine takes it: what was drafted for it is known, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from forespeak.speculation.costs import Costs
from forespeak.speculation.draft import Draft
from forespeak.speculation.trace import DraftedToken, Origin, Source, Step, Token


def played_step(
    index: int, drafted: Sequence[float], tested: int, accepted: int, read: int, costs: Costs, slower: float = 1.0
) -> Step:
    """`drafted` are the draft model's probabilities of its tokens, before which it read `read` that it had missed.

    The leading `tested` of them were tested, and `accepted` of those stand. `slower`: times what the costs say.
    """
    source = Source.DRAFT_MODEL if drafted else None
    own = Origin.TARGET if not tested else Origin.BONUS if accepted == tested else Origin.CORRECTED
    return Step(
        index,
        (*(Token(1, "x", Origin.ACCEPTED, source, 0.9, q) for q in drafted[:accepted]), Token(1, "x", own)),
        tuple(DraftedToken(2, "y", draft_probability=q) for q in drafted[accepted:tested]),
        tuple(DraftedToken(2, "y", draft_probability=q) for q in drafted[tested:]),
        source,
        (len(drafted) * costs.draft_token + read * costs.draft_catch_up) * slower,
        costs.target_seconds(1 + tested) * slower,
    )


def played_draft(
    index: int, draft: Draft, emitted: Sequence[int], costs: Costs, *, read: int = 0, slower: float = 1.0
) -> Step:
    """The step that tested `draft` and emitted those tokens, all but the last of them drafted.

    A draft model read `read` tokens before it that it had missed. `slower`: times what the costs say.
    """
    accepted = len(emitted) - 1
    drafting = 0.0
    if draft.source is Source.DRAFT_MODEL:
        drafting = len(draft.drafted) * costs.draft_token + read * costs.draft_catch_up
    own = Origin.TARGET if not draft.tokens else Origin.BONUS if accepted == len(draft.tokens) else Origin.CORRECTED
    q = [draft.probability(place) for place in range(len(draft.drafted))]
    return Step(
        index,
        (
            *(Token(t, "x", Origin.ACCEPTED, draft.source, 0.9, q[i]) for i, t in enumerate(emitted[:-1])),
            Token(emitted[-1], "x", own),
        ),
        tuple(DraftedToken(draft.tokens[i], "y", draft_probability=q[i]) for i in range(accepted, len(draft.tokens))),
        tuple(DraftedToken(t, "y") for t in draft.dropped),
        draft.source,
        drafting * slower,
        costs.target_seconds(1 + len(draft.tokens)) * slower,
    )
