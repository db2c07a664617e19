"""Several draft sources in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from forespeak.speculation.draft import EMPTY_DRAFT, Draft, DraftSource, DraftSourceError, Evaluation
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.trace import Source


class Chain:
    """Asks its members in their order; the first that proposes anything wins. The cheap ones belong in front.

    All members are told everything, so that each can propose at any time; what that costs those that were not asked
    is up to them. One that breaks is left out until the next beginning, and the others go on.
    """

    def __init__(self, members: Mapping[Source, DraftSource]) -> None:
        if not members:
            raise ValueError("a chain needs a source")
        self._members = dict(members)
        self._broken: dict[Source, str] = {}

    @property
    def sources(self) -> tuple[Source, ...]:
        """In the order in which they are asked."""
        return tuple(self._members)

    @property
    def obstacles(self) -> dict[Source, str]:
        """The members that cannot propose any more, and why."""
        reasons = {source: self._broken.get(source) or member.blocked for source, member in self._members.items()}
        return {source: reason for source, reason in reasons.items() if reason is not None}

    @property
    def blocked(self) -> str | None:
        """Why nobody can propose any more; None while one can."""
        obstacles = self.obstacles
        return " ".join(obstacles.values()) if len(obstacles) == len(self._members) else None

    def begin(self, tokens: Sequence[int], sampler: Sampler) -> None:
        self._broken.clear()
        self._tell(lambda member: member.begin(tokens, sampler))

    def observe(self, evaluation: Evaluation) -> None:
        self._tell(lambda member: member.observe(evaluation))

    def propose(self, limit: int) -> Draft:
        for source in self._members:
            draft = self.ask(source, limit)
            if draft.tokens:
                return draft
        return EMPTY_DRAFT

    def ask(self, source: Source, limit: int) -> Draft:
        """What one member proposes, at most `limit` tokens; nothing, if it is broken or breaks now."""
        if limit < 1 or source in self._broken:
            return EMPTY_DRAFT
        try:
            return self._members[source].propose(limit)
        except DraftSourceError as error:
            self._broken[source] = str(error)
            return EMPTY_DRAFT

    def accept(self, tokens: Sequence[int]) -> None:
        self._tell(lambda member: member.accept(tokens))

    def _tell(self, what: Callable[[DraftSource], None]) -> None:
        for source, member in self._members.items():
            if source in self._broken:
                continue
            try:
                what(member)
            except DraftSourceError as error:
                self._broken[source] = str(error)
