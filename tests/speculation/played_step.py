"""A step as a simulated machine takes it: what was drafted for it is known, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from forespeak.speculation.costs import Costs
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
