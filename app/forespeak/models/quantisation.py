"""Number formats of weights: sizes of ggml's tensor types, and the names people give to whole files.

The figures are those of ggml.h, ggml-common.h and llama.h in llama.cpp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorType:
    """A number format: `block_bytes` bytes hold `block_values` weights."""

    name: str
    block_values: int
    block_bytes: int


TENSOR_TYPES: dict[int, TensorType] = {
    number: TensorType(name, values, size)
    for number, name, values, size in (
        (0, "F32", 1, 4),
        (1, "F16", 1, 2),
        (2, "Q4_0", 32, 18),
        (3, "Q4_1", 32, 20),
        (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24),
        (8, "Q8_0", 32, 34),
        (9, "Q8_1", 32, 36),
        (10, "Q2_K", 256, 84),
        (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210),
        (15, "Q8_K", 256, 292),
        (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74),
        (18, "IQ3_XXS", 256, 98),
        (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18),
        (21, "IQ3_S", 256, 110),
        (22, "IQ2_S", 256, 82),
        (23, "IQ4_XS", 256, 136),
        (24, "I8", 1, 1),
        (25, "I16", 1, 2),
        (26, "I32", 1, 4),
        (27, "I64", 1, 8),
        (28, "F64", 1, 8),
        (29, "IQ1_M", 256, 56),
        (30, "BF16", 1, 2),
        (34, "TQ1_0", 256, 54),
        (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17),
        (40, "NVFP4", 64, 36),
        (41, "Q1_0", 128, 18),
        (42, "Q2_0", 64, 18),
    )
}
"""By the number that stands in the file. Numbers that are missing were withdrawn or are newer than this list."""

FILE_TYPES: dict[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
    39: "NVFP4",
    40: "Q1_0",
    41: "Q2_0",
}
"""`general.file_type` to the label that names of files carry."""

_MIXES = {"IQ2_M": {"IQ2_S", "IQ2_XS"}, "IQ3_M": {"IQ3_S"}, "IQ3_XS": {"IQ3_S", "IQ3_XXS"}, "MXFP4_MOE": {"MXFP4"}}
_GUESSED = 1024


def quantisation_label(file_type: int | None, weights: Iterable[tuple[str, int]]) -> str | None:
    """What people call the file's number format: `Q4_K_M`, `F16`; None if nothing tells.

    `weights` gives each tensor's type name and its number of weights. The declared label counts unless none of the
    weights has its format (converters are known to leave a wrong number behind); then the most frequent format does.
    """
    counts: Counter[str] = Counter()
    for name, amount in weights:
        counts[name] += amount
    declared = FILE_TYPES.get(file_type & ~_GUESSED) if file_type is not None else None
    if not counts:
        return declared
    majority = counts.most_common(1)[0][0]
    if declared is None:
        return majority
    if "K" in declared.split("_"):
        expected = {"_".join(declared.split("_")[:2])}
    else:
        expected = _MIXES.get(declared, {declared})
    # Every quantised file also has some tensors in F32, so for the float formats only the majority proves the label.
    present = {majority} if declared in {"F32", "F16", "BF16"} else counts.keys()
    return declared if expected & present else majority
