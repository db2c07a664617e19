"""Reads the header of a GGUF file: everything a model says about itself, without its weights.

The format is described in ggml's docs/gguf.md. Little-endian versions 2 and 3 are read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forespeak.models.gguf_kind import GgufKind
from forespeak.models.gguf_values import GgufError, LazyArray, Problem, Tensor, Value, damaged, unreadable
from forespeak.models.gguf_walker import MOST_ENTRIES, MOST_PIECE, MOST_TENSORS, Fetch, Walker
from forespeak.models.known_texts import KnownTexts
from forespeak.models.quantisation import quantisation_label
from forespeak.models.sizes import compared_words

__all__ = [
    "GgufError",
    "GgufHeader",
    "GgufKind",
    "KnownTexts",
    "LazyArray",
    "Problem",
    "Tensor",
    "parse_header",
    "read_header",
]

_ENCODERS = frozenset(
    {
        *(
            "bert",
            "modern-bert",
            "nomic-bert",
            "nomic-bert-moe",
            "neo-bert",
            "jina-bert-v2",
            "jina-bert-v3",
            "eurobert",
        ),
        *("t5encoder", "gemma-embedding", "llama-embed", "wavtokenizer-dec", "qwen3tts", "pockettts"),
    }
)
# Experts' tensors are stacked in one: blk.3.ffn_up_exps.weight. Shared experts (…_shexp) take part always.
_EXPERTS = re.compile(r"_exps(?:\.|$)")
_DRAFT_HEADS = frozenset({"eagle3", "dflash", "gemma4-assistant"})


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about itself. `size_bytes` is the whole file's, `data_offset` where the tensors begin.

    `tokenizer.ggml.*` arrays and long ones are LazyArrays, the rest of `metadata` is here.
    """

    path: Path
    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    data_offset: int
    size_bytes: int

    @property
    def tensor_count(self) -> int:
        return len(self.tensors)

    @property
    def needed_bytes(self) -> int:
        """How long the file must be to hold all its tensors."""
        return max((self.data_offset + tensor.offset + tensor.size_bytes for tensor in self.tensors), default=0)

    @property
    def architecture(self) -> str | None:
        return self.text("general.architecture")

    @property
    def name(self) -> str:
        return self.text("general.name") or self.path.stem

    @property
    def parameters(self) -> int:
        """The weights in this file; of a split model, its own part only."""
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def expert_parameters(self) -> int:
        """The weights in this file that belong to experts, of which a token uses only some."""
        return sum(tensor.parameters for tensor in self.tensors if _EXPERTS.search(tensor.name))

    @property
    def active_parameters(self) -> int | None:
        """The weights in this file that take part in each token; None if all do, or the header does not tell."""
        experts = self.integer(f"{self.architecture}.expert_count") or 0
        used = self.integer(f"{self.architecture}.expert_used_count") or 0
        mine = self.expert_parameters
        return self.parameters - mine + mine * used // experts if mine and 0 < used < experts else None

    @property
    def mtp_layers(self) -> int:
        """How many layers predict the tokens after the next one (multi-token prediction)."""
        return max(0, self.integer(f"{self.architecture}.nextn_predict_layers") or 0)

    @property
    def has_template(self) -> bool:
        return bool(self.text("tokenizer.chat_template"))

    @property
    def quantisation(self) -> str | None:
        """What people call its number format, such as `Q4_K_M`; None for a file without weights."""
        if not self.tensors:
            return None
        # One-dimensional tensors stay in F32 whatever the format, so they prove nothing.
        weights = [(tensor.type, tensor.parameters) for tensor in self.tensors if len(tensor.shape) > 1]
        return quantisation_label(self.integer("general.file_type"), weights)

    @property
    def context_length(self) -> int | None:
        """The context the model was trained for, in tokens."""
        return self.integer(f"{self.architecture}.context_length")

    @property
    def shard(self) -> tuple[int, int]:
        """Which part of how many this file is, counted from 1; (1, 1) for a whole model."""
        count = self.integer("split.count") or 1
        return ((self.integer("split.no") or 0) + 1, count) if count > 1 else (1, 1)

    @property
    def is_vocabulary_only(self) -> bool:
        return self.kind is GgufKind.VOCABULARY_ONLY

    @property
    def kind(self) -> GgufKind:
        declared = self.text("general.type")
        if self.architecture == "clip" or declared in {"mmproj", "projector"}:
            return GgufKind.PROJECTOR
        if declared == "adapter":
            return GgufKind.ADAPTER
        if declared == "imatrix" or "imatrix.datasets" in self.metadata:
            return GgufKind.IMATRIX
        if self.shard[0] > 1:
            return GgufKind.LATER_SHARD
        if self.architecture is None:
            return GgufKind.OTHER
        if not self.tensors and self.shard == (1, 1):
            return GgufKind.VOCABULARY_ONLY if "tokenizer.ggml.tokens" in self.metadata else GgufKind.OTHER
        if self.architecture in _ENCODERS:
            return GgufKind.ENCODER
        return GgufKind.DRAFT_HEAD if self.architecture in _DRAFT_HEADS else GgufKind.MODEL

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def integer(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag(self, key: str) -> bool | None:
        value = self.metadata.get(key)
        return value if isinstance(value, bool) else None


# A disk answers at once: there is nothing to be gained by asking for more than is read.
_LOCAL_PIECE = 1 << 19


def read_header(path: Path, known: KnownTexts | None = None) -> GgufHeader:
    """The header of a file on disk whose tensors are all there. Raises GgufError.

    With `known`, lists of texts are hashed, and those that are known already are read faster.
    """
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GgufError(
            Problem.MISSING,
            f"There is no file “{path.name}” any more.",
            f"It was looked for in {path.parent}.",
            "Choose another file, or put it back.",
        ) from error
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(about.st_mode):
        is_folder = stat.S_ISDIR(about.st_mode)
        raise GgufError(
            Problem.NOT_A_FILE,
            f"“{path.name}” is {'a folder' if is_folder else 'not an ordinary file'}, not a model file.",
            remedy="Choose a .gguf file.",
        )
    try:
        with path.open("rb", buffering=0) as file:

            def fetch(offset: int, length: int) -> bytes:
                file.seek(offset)
                pieces = []
                while length > 0 and (piece := file.read(length)):
                    pieces.append(piece)
                    length -= len(piece)
                return b"".join(pieces)

            header = parse_header(path, os.fstat(file.fileno()).st_size, fetch, _LOCAL_PIECE, known)
    except OSError as error:
        raise unreadable(path, error) from error
    if header.needed_bytes > header.size_bytes:
        needed, there = compared_words(header.needed_bytes, header.size_bytes)
        raise GgufError(
            Problem.TRUNCATED,
            f"“{path.name}” is incomplete.",
            f"It should be at least {needed} long and has {there}: the download or the copy probably stopped early.",
            "Download it again, or copy it again.",
        )
    return header


def parse_header(
    path: Path, size: int, fetch: Fetch, most_piece: int = MOST_PIECE, known: KnownTexts | None = None
) -> GgufHeader:
    """The header of a file of `size` bytes, wherever it lies; `path` only names it. Raises GgufError.

    That the tensors are there is not checked. Pieces grow from 1 MiB up to `most_piece` bytes.
    """
    walker = Walker(path, size, fetch, most_piece, known)
    version = walker.preamble()
    tensor_count, entry_count = walker.u64(), walker.u64()
    if tensor_count > MOST_TENSORS or entry_count > MOST_ENTRIES:
        raise damaged(path, f"It claims {tensor_count:,} tensors and {entry_count:,} entries.")
    metadata: dict[str, Value] = {}
    for _ in range(entry_count):
        key = walker.name()
        if key in metadata:
            raise damaged(path, f"Its entry “{key}” is there twice.")
        metadata[key] = walker.value(key, walker.u32())
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1) or alignment > 1 << 30:
        raise damaged(path, "The alignment of its tensors makes no sense.")
    tensors = tuple(walker.tensor() for _ in range(tensor_count))
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise damaged(path, "Two of its tensors have the same name.")
    data_offset = -(-walker.at // alignment) * alignment
    return GgufHeader(path, version, metadata, tensors, data_offset, size)
