from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from converting_engine import converting
from fewer_layers import FEW, with_layers
from forespeak.engines.engine import (
    ChatMessage,
    ConversionRequest,
    Converted,
    GenerationRequest,
    LoadRequest,
    LoadSettings,
    NumberFormat,
    Progress,
    Role,
)
from forespeak.errors import UserFacingError
from forespeak.models import transfer
from forespeak.models.gguf import GgufHeader, read_header
from forespeak.models.quantisation import TENSOR_TYPES
from forespeak.models.starter import starter_draft_path
from forespeak.pairing import making
from forespeak.pairing.candidates import CandidateKind, Knowledge, find_candidates
from forespeak.pairing.compatibility import Judge, VerdictKind
from forespeak.pairing.machine_speed import MachineSpeed
from forespeak.pairing.making import (
    MADE_FORMATS,
    is_made_from,
    made_header,
    made_offers,
    made_path,
    make_draft,
)
from forespeak.pairing.model_names import Kinship, kinship
from forespeak.pairing.offers import Making, Place, offer_at
from forespeak.speculation.events import Finished
from forespeak.speculation.trace import Source, Step
from models.gguf_writer import ModelFile, text

Q4_0, Q2_K = NumberFormat.Q4_0, NumberFormat.Q2_K
ROWS = (
    ("token_embd.weight", (512, 4)),
    ("blk.0.attn_norm.weight", (512,)),
    ("blk.0.attn_q.weight", (512, 512)),
    ("blk.0.attn_v.weight", (512, 128)),
    ("blk.0.attn_output.weight", (512, 512)),
    ("blk.0.ffn_down.weight", (576, 512)),
    ("blk.0.ffn_up.weight", (512, 576)),
    ("output.weight", (512, 4)),
)


def model(path: Path, tensors: tuple[tuple[str, tuple[int, ...]], ...] = ROWS) -> Path:
    entries = {"qwen2.attention.head_count": 8, "qwen2.attention.head_count_kv": 2}
    return ModelFile(["a", "b", "c", "d"], tensors=tensors, entries=entries).write(path)


def types(header: GgufHeader) -> dict[str, str]:
    return {tensor.name.removeprefix("blk.0."): tensor.type for tensor in header.tensors}


@dataclass
class Copier:
    """Writes the source itself, or `answer`; tells of it half way."""

    answer: Callable[[ConversionRequest], Converted | None] | None = None
    requests: list[ConversionRequest] = field(default_factory=list)

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        self.requests.append(request)
        progress(Progress(0.5, "Writing"))
        if self.answer is not None:
            return self.answer(request)
        shutil.copyfile(request.source, request.destination)
        return Converted(request.destination)


def making_of(source: Path, folder: Path, number_format: NumberFormat = Q2_K) -> Making:
    return Making(source, made_path(folder, source, number_format), number_format)


def make(engine: Copier, wanted: Making, cancelled: Callable[[], bool] = lambda: False) -> Path | None:
    return make_draft(wanted, engine, lambda _: None, cancelled)


def test_it_is_named_after_its_target_whole_or_in_parts(tmp_path: Path) -> None:
    whole, part = Path("/a/Big-Q8_0.gguf"), Path("/a/Big-Q8_0-00001-of-00003.gguf")
    assert made_path(tmp_path, whole, Q2_K) == made_path(tmp_path, part, Q2_K) == tmp_path / "Big-Q8_0-draft-Q2_K.gguf"
    assert is_made_from(part, made_path(tmp_path, whole, Q4_0))
    assert not is_made_from(Path("Other.gguf"), made_path(tmp_path, whole, Q4_0))
    assert not is_made_from(whole, Path("Big-Q8_0.gguf"))


def test_formats_by_tensor_are_those_that_the_engine_chooses(tmp_path: Path) -> None:
    header = read_header(model(tmp_path / "m.gguf"))
    assert types(made_header([header], Q2_K)) == {
        "token_embd.weight": "Q2_K",
        "attn_norm.weight": "F32",
        "attn_q.weight": "Q2_K",
        "attn_v.weight": "Q4_K",
        "attn_output.weight": "Q3_K",
        "ffn_down.weight": "Q4_0",
        "ffn_up.weight": "Q2_K",
        "output.weight": "Q6_K",
    }
    assert set(types(made_header([header], Q4_0)).values()) == {"Q4_0", "F32", "Q6_K"}
    tied = read_header(model(tmp_path / "tied.gguf", ROWS[:-1]))
    assert types(made_header([tied], Q2_K))["token_embd.weight"] == "Q6_K"


def test_what_stands_against_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = offer_at(model(tmp_path / "m-F32.gguf"))
    assert [(each.place, each.problem) for each in made_offers(target, tmp_path)] == [(Place.MADE, None)] * 2
    assert [each.label for each in made_offers(target, tmp_path)] == ["Q4_0", "Q2_K"]
    coarse = offer_at(model(tmp_path / "m-F32.gguf"))
    assert coarse.shape is not None
    coarse = replace(coarse, label="Q4_K_M", shape=made_offers(target, tmp_path)[0].shape)
    first, second = made_offers(coarse, tmp_path)
    assert first.problem == "The target is as coarse as that already (Q4_K_M): a copy would be no faster."
    assert second.problem is None
    monkeypatch.setattr(making, "free_bytes", lambda folder: transfer.RESERVE + 1000)
    assert all("of disk space" in (each.problem or "") for each in made_offers(target, tmp_path))
    folder = tmp_path / "mlx"
    folder.mkdir()
    (only,) = made_offers(replace(target, path=folder), tmp_path)
    assert "MLX" in (only.problem or "")
    (tmp_path / "m-F32.gguf").write_bytes(b"GGUF")
    assert made_offers(target, tmp_path) == []


def test_it_is_a_candidate_until_it_is_there(tmp_path: Path) -> None:
    target = offer_at(model(tmp_path / "Sprout-8B-F32.gguf"))
    judge = Judge(tmp_path / "verdicts")
    assert target.path is not None
    path = target.path
    known = Knowledge(verdict=lambda offer: judge.verdict(path, offer.path or path))
    offers = [target, *made_offers(target, tmp_path)]
    found = find_candidates(target, offers, MachineSpeed(bandwidth=1e10), known)
    made = [each for each in found.listed if each.kind is CandidateKind.REQUANTISED]
    assert {each.name for each in made} == {"Made from Sprout-8B-F32 · Q4_0", "Made from Sprout-8B-F32 · Q2_K"}
    for each in made:
        assert each.verdict is not None
        assert each.verdict.kind is VerdictKind.SAME
        assert each.prediction is not None
        assert each.sources == (Source.DRAFT_MODEL,)
        assert each.offer is not None
        assert each.offer.path is None
    shutil.copyfile(path, tmp_path / "Sprout-8B-F32-draft-Q2_K.gguf")
    there = offer_at(tmp_path / "Sprout-8B-F32-draft-Q2_K.gguf")
    again = find_candidates(target, [*offers, there], MachineSpeed(bandwidth=1e10), known)
    names = [each.name for each in again.listed]
    assert "Made from Sprout-8B-F32 · Q2_K" not in names
    assert there.name in names
    assert kinship(target.model_name, there.model_name, 1.0, 1.0) is Kinship.SAME_WEIGHTS


def test_it_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    source, own = model(tmp_path / "m.gguf"), tmp_path / "models"
    own.mkdir()
    engine = Copier()
    assert make(engine, making_of(source, own)) == own / "m-draft-Q2_K.gguf"
    assert [each.name for each in own.iterdir()] == ["m-draft-Q2_K.gguf"]
    (request,) = engine.requests
    assert (request.source, request.number_format) == (source, Q2_K)
    assert request.destination.name == "m-draft-Q2_K.gguf.part"


def test_a_cancel_or_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, own = model(tmp_path / "m.gguf"), tmp_path / "models"
    own.mkdir()

    def half(request: ConversionRequest) -> None:
        request.destination.with_name(f"{request.destination.name}.part").write_bytes(b"GGUF")

    def fails(request: ConversionRequest) -> Converted | None:
        half(request)
        raise UserFacingError("No.", "", "")

    def shorter(request: ConversionRequest) -> Converted | None:
        request.destination.write_bytes(source.read_bytes()[:-100])
        return Converted(request.destination)

    def another(request: ConversionRequest) -> Converted | None:
        model(request.destination, ROWS[:3])
        return Converted(request.destination)

    assert make(Copier(half), making_of(source, own)) is None
    assert make(Copier(), making_of(source, own), lambda: True) is None
    for answer in (fails, shorter, another):
        with pytest.raises(UserFacingError):
            make(Copier(answer), making_of(source, own))
    monkeypatch.setattr(transfer, "free_bytes", lambda folder: 0)
    engine = Copier()
    with pytest.raises(UserFacingError, match="not enough disk space"):
        make(engine, making_of(source, own))
    assert not engine.requests
    assert list(own.iterdir()) == []


def in_two_parts(path: Path, folder: Path) -> list[Path]:
    """A model as its makers split large ones: the second part has tensors alone."""
    header, content = read_header(path), path.read_bytes()
    first, half = header.tensors[0], len(header.tensors) // 2
    infos = content.index(text(first.name) + struct.pack("<I", len(first.shape)))
    (entries,) = struct.unpack_from("<Q", content, 16)
    numbers = {type_.name: number for number, type_ in TENSOR_TYPES.items()}
    parts = []
    for number, tensors in enumerate((header.tensors[:half], header.tensors[half:])):
        own = b"".join(
            text(key) + struct.pack(f"<I{kind}", code, entry)
            for key, code, kind, entry in (
                ("split.no", 2, "H", number),
                ("split.count", 2, "H", 2),
                ("split.tensors.count", 5, "i", len(header.tensors)),
            )
        )
        count, body = 3 if number else entries + 3, b""
        head = b"" if number else content[24:infos]
        described = b""
        for tensor in tensors:
            shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
            described += text(tensor.name) + shape + struct.pack("<IQ", numbers[tensor.type], len(body))
            at = header.data_offset + tensor.offset
            body += content[at : at + tensor.size_bytes]
            body += bytes(-len(body) % 32)
        whole = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + head + own + described
        parts.append(folder / f"starter-{number + 1:05d}-of-00002.gguf")
        parts[-1].write_bytes(whole + bytes(-len(whole) % 32) + body)
    return parts


# The real thing


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the starter: what is made of eight layers is made of thirty in the same way."""
    source = starter_draft_path()
    if source is None:
        pytest.skip("the starter's weights are not installed (extra: starter)")
    return with_layers(source, FEW, tmp_path_factory.mktemp("few") / "starter.gguf")


@pytest.fixture(scope="module")
def f32(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("making")
    with converting(folder) as engine:
        done = engine.convert(ConversionRequest(few, folder / "starter-F32.gguf"), lambda _: None, lambda: False)
    assert done is not None
    return done.destination


def test_a_draft_of_the_starters_target_has_its_vocabulary_and_drafts(f32: Path, tmp_path: Path) -> None:
    from forespeak.engines.llamacpp.engine import LlamaEngine

    told: list[Progress] = []
    with converting(tmp_path) as engine:
        made = make_draft(making_of(f32, tmp_path), engine, told.append, lambda: False)
    assert made is not None
    assert told[-1].fraction == 1.0
    assert {each.doing for each in told} == {"Writing Q2_K"}
    expected, header = made_header([read_header(f32)], Q2_K), read_header(made)
    assert types(header) == types(expected)
    assert header.size_bytes == pytest.approx(expected.size_bytes, rel=0.005)
    judge = Judge(tmp_path / "verdicts")
    assert judge.verdict(f32, made).kind is VerdictKind.SAME
    loaded = LlamaEngine(judge.refusal)
    try:
        both = loaded.load(LoadRequest(f32, made, LoadSettings(context_length=256)), lambda _: None, lambda: False)
        assert both is not None
        assert both.draft is not None
        request = GenerationRequest(
            (ChatMessage(Role.USER, "Count from one to ten."),), (Source.DRAFT_MODEL,), draft_length=3, max_tokens=20
        )
        events = list(loaded.generate(request, lambda: False))
    finally:
        loaded.close()
    assert isinstance(events[-1], Finished)
    drafted = [each for each in events if isinstance(each, Step)]
    assert sum(each.accepted_count + len(each.rejected) + len(each.ignored) for each in drafted) > 0


def test_a_cancel_ends_the_engine_in_the_middle(f32: Path, tmp_path: Path) -> None:
    own = tmp_path / "models"
    own.mkdir()
    told: list[Progress] = []
    with converting(tmp_path) as engine:
        assert make_draft(making_of(f32, own), engine, told.append, lambda: len(told) > 3) is None
    assert told[-1].fraction < 1.0
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("number_format", MADE_FORMATS)
def test_a_target_in_parts_becomes_one_file(few: Path, tmp_path: Path, number_format: NumberFormat) -> None:
    parts = in_two_parts(few, tmp_path)
    with converting(tmp_path) as engine:
        made = make_draft(making_of(parts[0], tmp_path, number_format), engine, lambda _: None, lambda: False)
    assert made == tmp_path / f"starter-draft-{number_format.value}.gguf"
    header = read_header(made)
    assert header.shard == (1, 1)
    assert types(header) == types(made_header([read_header(part) for part in parts], number_format))
