"""Which file to take, and why; what fits by size alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from forespeak.models.gguf import GgufKind
from forespeak.models.hub_files import HubFileGroup
from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.memory import Fit
from forespeak.ui.recommended import Recommendation, recommendation, size_fit
from ui.hub_doubles import GB, MACHINE, group, groups


def advice(found: Sequence[HubFileGroup], machine: Machine = MACHINE) -> Recommendation | None:
    return recommendation(found, lambda each: size_fit(each.size_bytes, machine))


def machine(gigabytes: float) -> Machine:
    return Machine(64 * GB, round(gigabytes * GB))


@pytest.mark.parametrize(
    ("memory", "label", "why"),
    [
        (32.0, "Q4_K_M", "About four bits"),
        (11.0, "Q4_K_M", "About four bits"),
        (5.2, "Q2_K", "largest that fits"),
        (3.9, "Q2_K", "just fits"),
    ],
)
def test_what_is_taken_depends_on_the_memory(memory: float, label: str, why: str) -> None:
    found = advice(groups(), machine(memory))
    assert found is not None
    assert found.group.label == label
    assert why in found.why


def test_nothing_is_recommended_where_nothing_fits() -> None:
    assert advice(groups(), machine(1.0)) is None
    assert advice(()) is None
    assert advice([group(missing=(2,), shards=2)]) is None


def test_small_models_are_taken_nearly_without_loss() -> None:
    small = [group("Q4_K_M", 400_000_000), group("Q8_0", 600_000_000), group("F16", 1_100_000_000)]
    found = advice(small)
    assert found is not None
    assert found.group.label == "Q8_0"


def test_floats_are_taken_only_where_there_is_nothing_else() -> None:
    found = advice([group("F16", 5 * GB), group("Q3_K_M", 3 * GB)])
    assert found is not None
    assert found.group.label == "Q3_K_M"
    found = advice([group("F32", 6 * GB), group("BF16", 5 * GB)])
    assert found is not None
    assert found.group.label == "F32"


def test_a_projector_is_no_model() -> None:
    found = advice([group("F16", GB, kind=GgufKind.PROJECTOR), group(None, 3 * GB)])
    assert found is not None
    assert found.why == "The only one here."


def test_before_the_memory_is_known_the_usual_one_is_taken() -> None:
    found = recommendation(groups(), lambda _: None)
    assert found is not None
    assert found.group.label == "Q4_K_M"


def test_the_reason_compares_numbers() -> None:
    assert size_fit(4_680_000_000, MACHINE).why == (
        "4.68 GB of weights and room for a chat, in the 11 GB that are free now."
    )
    tight = size_fit(9_400_000_000, MACHINE)
    assert tight.kind is Fit.TIGHT
    assert "leaves little" in tight.why
    large = size_fit(15_200_000_000, MACHINE)
    assert large.kind is Fit.TOO_LARGE
    assert large.why == "15.2 GB of weights do not fit into the 11 GB that are free now."


def test_a_gpus_memory_counts_where_it_is_more() -> None:
    with_gpu = Machine(32 * GB, 8 * GB, (Gpu("GPU", 22 * GB, 24 * GB),))
    assert "22 GB" in size_fit(15_200_000_000, with_gpu).why
