"""Where a model's thoughts begin and end, by its chat template: what a grammar has to wait for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """The texts that open and close thoughts. Where channels have names, the closer opens the channel of the reply."""

    opener: str
    closer: str


_KNOWN = (
    ThoughtMarks("<think>", "</think>"),
    ThoughtMarks("<thinking>", "</thinking>"),
    ThoughtMarks("<reasoning>", "</reasoning>"),
    ThoughtMarks("<seed:think>", "</seed:think>"),
    ThoughtMarks("<mm:think>", "</mm:think>"),
    ThoughtMarks("[THINK]", "[/THINK]"),
    ThoughtMarks("<|START_THINKING|>", "<|END_THINKING|>"),
    ThoughtMarks("<|inner_prefix|>", "<|inner_suffix|>"),
    ThoughtMarks("<|channel>", "<channel|>"),
    ThoughtMarks("<|channel|>", "<|channel|>final<|message|>"),
    ThoughtMarks("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)


@dataclass(frozen=True, slots=True)
class Thoughts:
    """What may stand before what a grammar describes: free text up to and with `after`, if that is given.

    With an `opener`, only for a reply that begins with it; without one, for every reply.
    """

    after: str = ""
    opener: str = ""


def thought_marks(template: str | None) -> ThoughtMarks | None:
    """The marks in a chat template; None where it has none that we know.

    Only the closer is looked for: some templates do no more than to cut the thoughts off earlier replies.
    """
    return next((marks for marks in _KNOWN if template is not None and marks.closer in template), None)


def thoughts_behind(prompt: str, marks: ThoughtMarks | None) -> Thoughts:
    """What a reply to the rendered `prompt` may begin with."""
    end = prompt.rstrip()
    if marks is None or end.endswith(marks.closer):
        return Thoughts()
    if end.endswith(marks.opener):
        return Thoughts(marks.closer)
    return Thoughts(marks.closer, marks.opener)
