"""Drafts made from the target's own weights: the same model in a coarser number format.

How large one becomes is told beforehand by llama.cpp's own rules (`llama_tensor_get_type` in llama-quant.cpp), which
give most weights the format that the file is named after, and some a finer one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from forespeak.engines.engine import ConversionRequest, Converted, NumberFormat, Progress
from forespeak.errors import UserFacingError
from forespeak.models.gguf import GgufError, GgufHeader, read_header
from forespeak.models.gguf_values import Tensor
from forespeak.models.quantisation import FILE_TYPES, TENSOR_TYPES
from forespeak.models.shards import shard_name, shard_paths
from forespeak.models.sizes import size_words
from forespeak.models.transfer import RESERVE, check_space, explained, free_bytes
from forespeak.models.vocabulary import cached_header
from forespeak.pairing.model_shape import shape_of, weight_format
from forespeak.pairing.offers import Making, Offer, Place
from forespeak.whole_file import sync_folder

MADE_FORMATS = (NumberFormat.Q4_0, NumberFormat.Q2_K)
"""Those worth drafting with: nearly as true as the target, and as small as it gets without calibration texts."""

_TYPES = {type_.name: type_ for type_ in TENSOR_TYPES.values()}
_FILE_NUMBERS = {name: number for number, name in FILE_TYPES.items()}
_MADE_NAME = re.compile(rf"(.+)-draft-(?:{'|'.join(format_.value for format_ in MADE_FORMATS)})\.gguf")
_LEFT_ALONE = (
    "_norm.weight",
    "ffn_gate_inp.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "position_embd",
    "token_types",
    "ssm_conv1d",
    "shortconv.conv",
    "time_mix_",
    "attn_rel_b",
)
"""Parts of the names of tensors that stay as they are."""
_FOR_SHORT_ROWS = {"Q2_K": "Q4_0", "Q3_K": "Q4_0", "Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What takes the place of a format whose blocks do not divide a tensor's rows."""
_HEADER_MARGIN = 1 << 16
"""A few entries of the header are new."""


class NoDraftError(UserFacingError):
    """Why no draft can be made from a model."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"No draft can be made from {name}.", why, "Choose another draft for it.")


class Converter(Protocol):
    """An engine, as far as it writes models anew."""

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None: ...


# Names


def made_path(folder: Path, target: Path, number_format: NumberFormat) -> Path:
    """Where a draft made from a target is kept."""
    return folder / f"{_stem(target)}-draft-{number_format.value}.gguf"


def is_made_from(target: Path, draft: Path) -> bool:
    """Whether a file bears the name of a draft made from the target."""
    match = _MADE_NAME.fullmatch(draft.name)
    return match is not None and match[1] == _stem(target)


def _stem(target: Path) -> str:
    parted = shard_name(target.name)
    return target.name.removesuffix(".gguf") if parted is None else parted.stem


# What could be made


def made_offers(target: Offer, folder: Path) -> list[Offer]:
    """What could be made from a target and kept in a folder, each with what stands against it. Reads headers.

    Nothing of a target that cannot be read, or has no weights: its verdict says so.
    """
    path = target.path
    name = f"Made from {target.name.removesuffix('.gguf')}"
    if path is None or target.shape is None:
        return []
    if path.is_dir():
        problem = "It is in the MLX format. Drafts can be made from GGUF files only, so far."
        made = Making(path, made_path(folder, path, MADE_FORMATS[0]), MADE_FORMATS[0])
        return [Offer(name, Place.MADE, target.model_name, 0, making=made, problem=problem)]
    try:
        headers = [cached_header(part) for part in shard_paths(path)]
    except GgufError:
        return []
    free = _free(folder)
    offers = []
    for number_format in MADE_FORMATS:
        header = made_header(headers, number_format)
        offers.append(
            Offer(
                f"{name} · {number_format.value}",
                Place.MADE,
                target.model_name,
                header.size_bytes,
                number_format.value,
                shape_of([header]),
                making=Making(path, made_path(folder, path, number_format), number_format),
                problem=_problem(target, number_format, header.size_bytes, free, folder),
            )
        )
    return offers


def _problem(target: Offer, number_format: NumberFormat, size: int, free: int | None, folder: Path) -> str | None:
    wanted = weight_format(number_format.value)
    assert target.shape is not None
    assert wanted is not None
    if target.shape.fidelity.bits <= wanted.bits:
        label = target.label or target.shape.fidelity.value
        return f"The target is as coarse as that already ({label}): a copy would be no faster."
    if free is not None and free < size + RESERVE:
        left = size_words(max(0, free - RESERVE))
        return f"It needs {size_words(size)} of disk space, and {left} are free in {folder}."
    return None


def _free(folder: Path) -> int | None:
    try:
        return free_bytes(folder)
    except OSError:
        # Whoever makes one is told.
        return None


def made_header(headers: Sequence[GgufHeader], number_format: NumberFormat) -> GgufHeader:
    """What the header of a draft made from a model would be, given those of all its parts."""
    first = headers[0]
    old = [tensor for header in headers for tensor in header.tensors]
    tied = all(tensor.name != "output.weight" for tensor in old)
    tensors = []
    offset = 0
    for tensor in old:
        name = _type_of(tensor, number_format, first, tied=tied)
        type_ = _TYPES[name]
        size = tensor.parameters // type_.block_values * type_.block_bytes
        tensors.append(Tensor(tensor.name, tensor.shape, name, offset, size))
        offset += -(-size // 32) * 32
    metadata = {key: entry for key, entry in first.metadata.items() if not key.startswith("split.")}
    metadata["general.file_type"] = _FILE_NUMBERS[number_format.value]
    size = first.data_offset + _HEADER_MARGIN + offset
    return replace(first, metadata=metadata, tensors=tuple(tensors), size_bytes=size)


def _type_of(tensor: Tensor, number_format: NumberFormat, header: GgufHeader, *, tied: bool) -> str:
    name = tensor.name
    if len(tensor.shape) < 2 or not name.endswith("weight") or any(part in name for part in _LEFT_ALONE):
        return tensor.type
    row = tensor.shape[0]
    wanted = number_format.value
    if name == "output.weight" or (tied and name == "token_embd.weight"):
        fits = row % _TYPES[wanted].block_values == 0
        wanted = "Q6_K" if fits and header.architecture != "falcon" else "Q8_0"
    else:
        wanted = _finer(name, wanted, header)
    if row % _TYPES[wanted].block_values != 0:
        wanted = _FOR_SHORT_ROWS.get(wanted, "F16")
    return wanted if row % _TYPES[wanted].block_values == 0 else "F16"


def _finer(name: str, wanted: str, header: GgufHeader) -> str:
    """Tensors that matter most get more bits."""
    architecture = header.architecture
    eight_experts = header.integer(f"{architecture}.expert_count") == 8
    if eight_experts and ("attn_v.weight" in name or "attn_k.weight" in name):
        return "Q8_0"
    if wanted != NumberFormat.Q2_K.value:
        return wanted
    if "attn_v.weight" in name:
        heads = header.integer(f"{architecture}.attention.head_count") or 1
        shared = heads // max(1, header.integer(f"{architecture}.attention.head_count_kv") or heads)
        return "Q4_K" if shared >= 4 else "Q3_K"
    if "attn_output.weight" in name and architecture != "falcon":
        return "Q5_K" if eight_experts else "Q3_K"
    return "Q3_K" if "ffn_down" in name else wanted


# Making one


def make_draft(
    making: Making, engine: Converter, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
) -> Path | None:
    """Make a draft, and give it its name once it is whole and has been read; None if cancelled.

    Whatever ends it early leaves nothing behind. Raises UserFacingError: no room, not writable, not readable.
    """
    to = making.destination
    headers = [cached_header(part) for part in shard_paths(making.source)]
    expected = made_header(headers, making.number_format)
    work = to.with_name(f"{to.name}.part")
    # The engine writes beside its own destination.
    left = (work, work.with_name(f"{work.name}.part"))
    try:
        _remove(left)
        check_space(to.parent, expected.size_bytes, f"to make “{to.name}”")
        done = engine.convert(ConversionRequest(making.source, work, making.number_format), progress, cancelled)
        if done is None or cancelled():
            return None
        _see_that_it_is_whole(work, expected)
        work.replace(to)
        sync_folder(to.parent)
        return to
    except OSError as error:
        raise explained(f"“{to.name}” could not be made.", to, error) from error
    finally:
        _remove(left)


def _see_that_it_is_whole(path: Path, expected: GgufHeader) -> None:
    """Raises GgufError for a file that is shorter than its header says, UserFacingError for one without some tensor."""
    made = read_header(path)
    if {(tensor.name, tensor.shape) for tensor in made.tensors} != {
        (tensor.name, tensor.shape) for tensor in expected.tensors
    }:
        raise UserFacingError(
            "The draft could not be made.",
            "What was written is not the whole model.",
            "Try again; if it happens again, choose another draft.",
        )


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
