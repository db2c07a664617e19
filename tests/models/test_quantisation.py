from __future__ import annotations

import pytest

from forespeak.models.quantisation import FILE_TYPES, quantisation_label


@pytest.mark.parametrize(
    ("file_type", "weights", "label"),
    [
        (15, [("Q4_K", 100), ("Q6_K", 20), ("F32", 1)], "Q4_K_M"),
        (27, [("IQ3_S", 100), ("Q4_K", 20)], "IQ3_M"),
        (22, [("IQ3_XXS", 100), ("Q4_K", 20)], "IQ3_XS"),
        (38, [("MXFP4", 100), ("Q8_0", 20)], "MXFP4_MOE"),
        (3, [("Q4_1", 100), ("Q8_0", 60)], "Q4_1"),
        (3 | 1024, [("Q4_1", 100)], "Q4_1"),
        (0, [("F32", 100)], "F32"),
        # The number that a converter left behind does not fit what is in the file.
        (1, [("Q8_0", 100), ("F16", 1)], "Q8_0"),
        (0, [("Q4_K", 100), ("F32", 1)], "Q4_K"),
        (7, [("Q4_K", 100)], "Q4_K"),
        (None, [("BF16", 100)], "BF16"),
        (9999, [("BF16", 100)], "BF16"),
        (15, [], "Q4_K_M"),
        (None, [], None),
    ],
)
def test_label(file_type: int | None, weights: list[tuple[str, int]], label: str | None) -> None:
    assert quantisation_label(file_type, weights) == label


def test_labels_are_unique() -> None:
    assert len(set(FILE_TYPES.values())) == len(FILE_TYPES)
