from __future__ import annotations

import pytest

from forespeak.pairing.quick_prompts import KINDS_OF_WORK, quick_prompts


@pytest.mark.parametrize("kind", KINDS_OF_WORK)
def test_three_prompts_for_each_kind(kind: str) -> None:
    prompts = quick_prompts(kind)
    assert len(prompts) == len({prompt.name for prompt in prompts}) == 3
    for prompt in prompts:
        assert prompt.kind == kind
        # Reading them must not take most of the time on a slow machine.
        assert 20 < len(prompt.text) < 900
        assert prompt.text == prompt.text.strip()


def test_no_other_kind() -> None:
    with pytest.raises(KeyError):
        quick_prompts("poetry")
