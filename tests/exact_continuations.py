"""What a target's own probabilities say of its next tokens: tests hold against it what was generated."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from forespeak.speculation.sampling import Distribution

Text = tuple[int, ...]


def exact_continuations(
    choices_behind: Callable[[Text], Distribution], length: int, ends: Callable[[int], bool] = lambda _token: False
) -> dict[Text, float]:
    """The probability of every continuation of `length` tokens, or fewer where one of them ends the reply.

    `choices_behind` a continuation so far: what the target may choose from, by what probability.
    """
    joint: dict[Text, float] = {(): 1.0}
    for _ in range(length):
        longer: dict[Text, float] = {}
        for text, probability in joint.items():
            if text and ends(text[-1]):
                longer[text] = probability
                continue
            choices = choices_behind(text)
            for token, log_p in zip(choices.ids.tolist(), choices.log_probabilities.tolist(), strict=True):
                longer[*text, token] = probability * math.exp(log_p)
        joint = longer
    assert math.fsum(joint.values()) == pytest.approx(1.0)
    return joint
