"""What a model's evaluation reads and computes, from headers alone: the sizes behind every prediction of its speed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from forespeak.models.gguf import GgufHeader, Tensor
from forespeak.models.gguf_values import unreadable
from forespeak.models.mlx_folder import read_mlx_facts
from forespeak.models.model_layout import layout_of_file
from forespeak.models.shards import shard_paths
from forespeak.models.vocabulary import cached_header


class WeightFormat(Enum):
    """Number formats by what computing with them costs. `value` is for files and never changes."""

    F32 = "f32"
    F16 = "f16"
    BITS_8 = "8 bit"
    BITS_6 = "6 bit"
    BITS_5 = "5 bit"
    BITS_4 = "4 bit"
    BITS_3 = "3 bit"
    BITS_2 = "2 bit"

    @property
    def bits(self) -> int:
        return _BITS[self]


_BITS = {
    WeightFormat.F32: 32,
    WeightFormat.F16: 16,
    WeightFormat.BITS_8: 8,
    WeightFormat.BITS_6: 6,
    WeightFormat.BITS_5: 5,
    WeightFormat.BITS_4: 4,
    WeightFormat.BITS_3: 3,
    WeightFormat.BITS_2: 2,
}
_BY_BITS = {bits: format_ for format_, bits in _BITS.items()} | {1: WeightFormat.BITS_2}
_LABEL_BITS = re.compile(r"(\d)")


def weight_format(label: str | None, bits_per_weight: float | None = None) -> WeightFormat | None:
    """The class of a label such as `Q4_K_M`, `BF16` or `4bit`; by the mean size if the label tells nothing."""
    name = (label or "").upper().replace("-", "_")
    if "32" in name:
        return WeightFormat.F32
    if "16" in name:
        return WeightFormat.F16
    if (match := _LABEL_BITS.search(name)) is not None and int(match[1]) in _BY_BITS:
        return _BY_BITS[int(match[1])]
    if bits_per_weight is None:
        return None
    # A file of 4 bits a weight has scales too, and a few tensors with more.
    return min(WeightFormat, key=lambda format_: abs(bits_per_weight - format_.bits * 1.08))


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Weights and bytes of them that an evaluation of one token reads; those of experts apart.

    `coarsest` is the format with the fewest bits that a tenth of the weights or more have: it decides how true a copy
    is, where `format`, the file's as a whole, decides what computing costs; None: the same.
    `expert_share`: of the experts, the share that one token uses; 1.0 for a model without experts. `is_estimate`: made
    from a size and a name, not from a header.
    """

    format: WeightFormat
    shared_weights: float
    shared_bytes: float
    expert_weights: float = 0.0
    expert_bytes: float = 0.0
    expert_share: float = 1.0
    is_estimate: bool = False
    coarsest: WeightFormat | None = None

    @property
    def fidelity(self) -> WeightFormat:
        return self.coarsest or self.format

    @property
    def parameters(self) -> float:
        return self.shared_weights + self.expert_weights

    @property
    def active_weights(self) -> float:
        """Weights that one token is multiplied with."""
        return self.shared_weights + self.expert_share * self.expert_weights

    def touched(self, tokens: int) -> float:
        """Share of the experts' weights that `tokens` tokens use together, if they choose independently."""
        return 1.0 - (1.0 - self.expert_share) ** tokens

    def weights_read(self, tokens: int) -> float:
        return self.shared_weights + self.touched(tokens) * self.expert_weights

    def bytes_read(self, tokens: int) -> float:
        return self.shared_bytes + self.touched(tokens) * self.expert_bytes


_SHARE_THAT_COUNTS = 0.1


def shape_of(headers: Iterable[GgufHeader]) -> ModelShape | None:
    """The shape of a model from the headers of all its parts; None if they hold no weights."""
    parts = list(headers)
    tensors = [tensor for header in parts for tensor in header.tensors]
    if not tensors:
        return None
    # Of the token embeddings one row is read, unless the same table gives the scores as well.
    tied = not any(tensor.name == "output.weight" for tensor in tensors)
    sums = {False: [0.0, 0.0], True: [0.0, 0.0]}
    for tensor in tensors:
        if tensor.name == "token_embd.weight" and not tied:
            continue
        of = sums["_exps." in tensor.name]
        of[0] += tensor.parameters
        of[1] += tensor.size_bytes
    first = parts[0]
    (shared_weights, shared_bytes), (expert_weights, expert_bytes) = sums[False], sums[True]
    bits = 8.0 * (shared_bytes + expert_bytes) / max(1.0, shared_weights + expert_weights)
    format_ = weight_format(first.quantisation, bits)
    count, used = (first.integer(f"{first.architecture}.expert_{name}") for name in ("count", "used_count"))
    share = min(1.0, used / count) if count and used else 1.0
    assert format_ is not None
    coarsest = _coarsest(tensors)
    return ModelShape(
        format_,
        shared_weights,
        shared_bytes,
        expert_weights,
        expert_bytes,
        share,
        coarsest=None if coarsest is format_ else coarsest,
    )


def _coarsest(tensors: Sequence[Tensor]) -> WeightFormat | None:
    """Files named after one format hold others too: rows whose length does not suit it, embeddings, chosen layers."""
    counts: Counter[WeightFormat | None] = Counter()
    for tensor in tensors:
        counts[weight_format(tensor.type)] += tensor.parameters
    least = _SHARE_THAT_COUNTS * sum(counts.values())
    found = [format_ for format_, count in counts.items() if format_ is not None and count >= least]
    return min(found, key=lambda format_: format_.bits, default=None)


def file_shape(path: Path) -> ModelShape | None:
    """The shape of a model on disk, its other parts included; None if it holds no weights. Raises GgufError."""
    return _folder_shape(path) if path.is_dir() else shape_of(map(cached_header, shard_paths(path)))


_OUTPUT_SHARE = 0.25
"""What gives the scores is as large as the table of embeddings, where there are two; the last norm is much smaller."""


def _folder_shape(folder: Path) -> ModelShape | None:
    """Of a model in the MLX format, whose weights are all in one number format but for small tensors."""
    layout = layout_of_file(folder)
    try:
        facts = read_mlx_facts(folder, {path.name for path in folder.iterdir()})
    except OSError as error:
        raise unreadable(folder, error) from error
    if facts is None or facts.parameters <= 0 or layout.size_bytes <= 0:
        return None
    format_ = weight_format(facts.label, 8.0 * layout.size_bytes / facts.parameters)
    assert format_ is not None
    each = layout.size_bytes / facts.parameters
    experts = float(facts.expert_parameters)
    # Of the token embeddings one row is read, unless the same table gives the scores as well.
    untied = layout.output_bytes > _OUTPUT_SHARE * layout.input_bytes
    shared = max(0.0, facts.parameters - experts - (layout.input_bytes / each if untied else 0.0))
    share = facts.experts_used / facts.experts if 0 < facts.experts_used < facts.experts else 1.0
    return ModelShape(format_, shared, shared * each, experts, experts * each, share)


def estimated_shape(
    size_bytes: int, label: str | None, parameters: float | None = None, active: float | None = None
) -> ModelShape | None:
    """The shape of a file of which only the size, the name of its format and perhaps its parameters are known.

    `active`: parameters that one token uses, where that is fewer; then most of the rest is taken to be experts.
    None if neither tells how many weights there are.
    """
    bits = 8.0 * size_bytes / parameters if parameters else None
    format_ = weight_format(label, bits)
    if format_ is None or size_bytes <= 0:
        return None
    weights = parameters or size_bytes * 8.0 / (format_.bits * 1.08 if format_.bits < 16 else format_.bits)
    if active is None or active >= weights:
        return ModelShape(format_, weights, float(size_bytes), is_estimate=True)
    # What every token uses (attention, embeddings) is about half of what one token uses.
    shared = active / 2.0
    experts = weights - shared
    each = size_bytes / weights
    return ModelShape(
        format_, shared, shared * each, experts, experts * each, (active - shared) / experts, is_estimate=True
    )
