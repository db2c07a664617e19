from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.engines.engine import CacheType
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.models.formats import ModelFormat
from forespeak.pairing.machine_speed import (
    SIZES,
    Basis,
    MachineSpeed,
    Setup,
    Timing,
    bandwidth,
    machine_speed,
    measured_bandwidth,
    published_bandwidth,
    timings_of,
)
from forespeak.pairing.model_shape import ModelShape, WeightFormat
from forespeak.pairing.pair_memory import PairFiles
from models.gguf_writer import ModelFile, gguf
from models.library_folders import write_mlx

SMALL = ModelShape(WeightFormat.F32, 1e8, 4e8)
CURVE = ((1, 0.02), (2, 0.03), (5, 0.032), (9, 0.04))
HERE = Path("here.gguf")
TIMED = Timing(HERE, SMALL, CURVE)


def times(shape: ModelShape, factor: float) -> ModelShape:
    return ModelShape(shape.format, factor * shape.shared_weights, factor * shape.shared_bytes)


def test_a_file_that_was_timed_costs_what_it_cost() -> None:
    found = MachineSpeed((TIMED,), 1e9).costs(SMALL, HERE)
    assert found.curve == CURVE
    assert found.basis is Basis.THIS_FILE
    assert found.seconds(3) == pytest.approx(0.03 + 0.002 / 3)


def test_another_model_of_the_format_is_scaled_by_its_weights() -> None:
    found = MachineSpeed((TIMED,)).costs(times(SMALL, 3.0), Path("other.gguf"))
    assert found.basis is Basis.THIS_FORMAT
    assert [tokens for tokens, _ in found.curve] == list(SIZES)
    for tokens, seconds in CURVE:
        assert found.seconds(tokens) == pytest.approx(3.0 * seconds)
    assert found.spread > MachineSpeed((TIMED,)).costs(SMALL, HERE).spread


def test_the_nearest_in_size_counts() -> None:
    large = Timing(Path("large.gguf"), times(SMALL, 10.0), ((1, 0.3), (9, 0.4)))
    machine = MachineSpeed((TIMED, large))
    assert machine.costs(times(SMALL, 9.0)).seconds(1) == pytest.approx(0.27)
    assert machine.costs(times(SMALL, 1.1)).seconds(1) == pytest.approx(0.022)


def test_no_model_is_read_faster_than_the_memory_allows() -> None:
    """The small one may have lain in a cache: 20 ms for 400 MB is 20 GB/s, and the memory gives 10."""
    found = MachineSpeed((TIMED,), 1e10).costs(times(SMALL, 50.0))
    assert found.seconds(1) == pytest.approx(2.0)
    assert found.seconds(9) == pytest.approx(2.0)


def test_what_an_engine_has_read_from_memory_outdoes_what_was_measured_of_it() -> None:
    large = Timing(Path("large.gguf"), times(SMALL, 10.0), ((1, 0.2),))
    assert MachineSpeed((large,), 1e9).costs(times(SMALL, 50.0)).seconds(1) == pytest.approx(1.0)


def test_other_formats_are_scaled_by_what_the_machine_does_against_the_reference() -> None:
    unknown = MachineSpeed((), None).costs(SMALL)
    slow = MachineSpeed((Timing(HERE, SMALL, tuple((n, 2.0 * s) for n, s in unknown.curve)),))
    quantised = ModelShape(WeightFormat.BITS_4, 1e8, 6e7)
    assert slow.costs(quantised).basis is Basis.OTHER_FORMATS
    expected = MachineSpeed((), None).costs(quantised)
    assert slow.costs(quantised).seconds(5) == pytest.approx(2.0 * expected.seconds(5))
    assert expected.spread > slow.costs(quantised).spread > MachineSpeed((TIMED,)).costs(SMALL).spread


def test_before_anything_was_loaded_the_bandwidth_counts() -> None:
    found = MachineSpeed((), 2e10).costs(SMALL)
    assert found.basis is Basis.BANDWIDTH
    assert found.seconds(1) == pytest.approx(0.02)
    assert MachineSpeed().costs(SMALL).basis is Basis.GUESS


def test_files_can_be_left_out() -> None:
    machine = MachineSpeed((TIMED,), 2e10)
    assert machine.costs(SMALL, HERE, without={HERE}).basis is Basis.BANDWIDTH


def test_a_mixture_of_experts_reads_more_of_them_in_a_check() -> None:
    """On a machine that is bound by reading, a check of nine tokens of 1 in 8 experts reads most of them."""
    flat = Timing(HERE, SMALL, ((1, 0.02), (33, 0.02)))
    experts = ModelShape(WeightFormat.F32, 1e8, 4e8, 8e8, 32e8, 1.0 / 8.0)
    machine = MachineSpeed((flat,))
    assert machine.costs(experts).seconds(1) == pytest.approx(0.04)
    touched = 1.0 - (7.0 / 8.0) ** 9
    assert machine.costs(experts).seconds(9) == pytest.approx(0.02 * (1.0 + 8.0 * touched))
    dense = times(SMALL, 2.0)
    assert machine.costs(dense).seconds(9) == pytest.approx(0.04)


def test_a_known_graphics_processor_is_reckoned_by_its_published_speed() -> None:
    machine = MachineSpeed(gpu_bandwidth=published_bandwidth(["NVIDIA GeForce RTX 3090 Ti"]))
    shape = ModelShape(WeightFormat.BITS_4, 32e9, 20e9)
    found = machine.costs(shape)
    assert found.basis is Basis.DEVICE
    assert 20e9 / 936e9 < found.seconds(1) < 3 * 20e9 / 936e9
    assert found.seconds(9) < 1.6 * found.seconds(1)
    assert machine.costs(times(shape, 1e-6)).seconds(1) >= 1e-3


@pytest.mark.parametrize(
    ("name", "speed"),
    [
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 672e9),
        ("Apple M2 Max", 400e9),
        ("Apple M2", 100e9),
        ("NVIDIA H200", 4800e9),
        ("Intel(R) Xeon(R) Processor", None),
    ],
)
def test_published_bandwidths(name: str, speed: float | None) -> None:
    assert published_bandwidth([name]) == speed


@given(
    st.sampled_from(list(WeightFormat)),
    st.floats(1e6, 1e12),
    st.floats(1.0, 20.0),
    st.sampled_from([(), (TIMED,)]),
    st.sampled_from([None, 1e10]),
    st.sampled_from([None, 1e12]),
)
def test_costs_grow_with_tokens_and_with_size(
    format_: WeightFormat,
    weights: float,
    factor: float,
    timings: tuple[Timing, ...],
    memory: float | None,
    gpu: float | None,
) -> None:
    machine = MachineSpeed(timings, memory, gpu)
    shape = ModelShape(format_, weights, weights * format_.bits / 8)
    small, large = machine.costs(shape), machine.costs(times(shape, factor))
    seconds = [each for _, each in small.curve]
    assert seconds == sorted(seconds)
    assert all(each > 0 for each in seconds)
    assert all(large.seconds(tokens) >= small.seconds(tokens) * (1 - 1e-9) for tokens in SIZES)
    assert small.spread > 0


# What engines keep


@pytest.fixture
def files(tmp_path: Path) -> PairFiles:
    return PairFiles(tmp_path / "pairs")


def model(path: Path, name: str = "a") -> Path:
    ModelFile([name, "b"], tensors=(("blk.0.x.weight", (8, 8)), ("blk.1.x.weight", (8, 8)))).write(path)
    return path


def conditions(target: Path, draft: Path | None, **changes: object) -> PairConditions:
    values = {"engine": "toy 1", "devices": ("CPU",), "threads": 2, "gpu_layers": -1, "reproducible": False}
    return PairConditions(target, draft, context_length=4096, **{**values, **changes})  # type: ignore[arg-type]


def learned(target: list[list[float]], draft: list[float]) -> dict[str, object]:
    return {"timings": [], "drafting": {"target_seconds": target, "draft_seconds": draft}}


def test_a_draft_on_another_device_tells_nothing_of_this_one(files: PairFiles, tmp_path: Path) -> None:
    target, draft = model(tmp_path / "target.gguf"), model(tmp_path / "draft.gguf", "b")
    apart = conditions(target, draft, draft_devices=("A card",), draft_gpu_layers=-1)
    files.keep(apart, learned([[1, 0.03], [5, 0.05]], [0.005, 0.001]))
    assert {timing.path for timing in timings_of(files.everything())[0]} == {target}
    files.keep(replace(apart, draft_devices=("CPU",)), learned([[1, 0.03]], [0.005, 0.001]))
    assert {timing.path for timing in timings_of(files.everything())[0]} == {target, draft}


def test_another_cache_is_another_setup(files: PairFiles, tmp_path: Path) -> None:
    target = model(tmp_path / "target.gguf")
    files.keep(conditions(target, None), learned([[1, 0.03]], [0.0, 0.0]))
    files.keep(
        conditions(target, None, cache_type=CacheType.Q8_0, flash_attention=True), learned([[1, 0.02]], [0.0, 0.0])
    )
    found, _ = timings_of(files.everything(), Setup(("CPU",), 2, -1, "toy 1"))
    assert found[0].curve[0] == (1, 0.03)
    assert timings_of(files.everything())[1] == Setup(("CPU",), 2, -1, "toy 1", "Q8_0", flash_attention=True)


def test_timings_are_gathered_from_all_pairs(files: PairFiles, tmp_path: Path) -> None:
    target, draft, other = (model(tmp_path / f"{name}.gguf") for name in ("target", "draft", "other"))
    files.keep(conditions(target, draft), learned([[1, 0.03], [5, 0.05]], [0.005, 0.001]))
    files.keep(conditions(other, draft), learned([[1, 0.02]], [0.004, 0.003]))
    files.keep(conditions(draft, None), learned([[1, 0.0045], [9, 0.02]], [0.0, 0.0]))
    found, setup = timings_of(files.everything())
    assert setup == Setup(("CPU",), 2, -1, "toy 1")
    by_path = {timing.path: timing for timing in found}
    assert set(by_path) == {target, draft, other}
    assert by_path[target].curve == ((1, 0.03), (5, 0.05))
    assert by_path[draft].curve[0] == (1, 0.004)
    assert by_path[draft].curve[1][1] == pytest.approx(0.006)
    assert by_path[draft].curve[2] == (9, 0.02)
    assert by_path[target].shape.parameters == 128


def test_timings_of_another_setup_are_passed_over(files: PairFiles, tmp_path: Path) -> None:
    one, two, three = (model(tmp_path / f"{name}.gguf") for name in ("one", "two", "three"))
    files.keep(conditions(one, None, threads=8), learned([[1, 0.01]], [0.0, 0.0]))
    files.keep(conditions(two, None, reproducible=True), learned([[1, 0.01]], [0.0, 0.0]))
    files.keep(conditions(three, None), learned([[1, 0.03]], [0.0, 0.0]))
    wanted = Setup(("CPU",), 2, -1, "toy 1")
    found, _ = timings_of(files.everything(), wanted)
    assert [timing.path for timing in found] == [three]


def test_a_file_that_changed_since_counts_no_more(files: PairFiles, tmp_path: Path) -> None:
    target = model(tmp_path / "a.gguf")
    files.keep(conditions(target, None), learned([[1, 0.03]], [0.0, 0.0]))
    model(target, "another text that is longer")
    assert timings_of(files.everything()) == ((), None)


@pytest.mark.parametrize(
    "damage",
    [
        {"drafting": None},
        {"drafting": {"target_seconds": "x"}},
        {"drafting": {"target_seconds": [[1, "x"], [0, 1.0], [2, -1.0], [1]]}},
        {"drafting": {"target_seconds": [[5, 0.1]]}},
        {"drafting": {"target_seconds": [[1, 1e9]]}},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_passed_over(files: PairFiles, tmp_path: Path, damage: dict[str, object]) -> None:
    files.keep(conditions(model(tmp_path / "a.gguf"), None), damage)
    found, _ = timings_of(files.everything())
    assert found == ()


def test_a_file_that_is_no_model_is_passed_over(files: PairFiles, tmp_path: Path) -> None:
    for name, data in (("a", b"nonsense"), ("b", gguf({"general.architecture": "llama"}))):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(data)
        files.keep(conditions(path, None), learned([[1, 0.03]], [0.0, 0.0]))
    assert timings_of(files.everything())[0] == ()


# The memory's bandwidth


def test_the_bandwidth_is_measured_once_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "data" / "machine.json"
    answers = iter([2e10, 3e10])
    assert bandwidth(file, lambda: next(answers)) == 2e10
    assert bandwidth(file, lambda: next(answers)) == 2e10
    assert [path.name for path in file.parent.iterdir()] == ["machine.json"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"bandwidth": "x"}', '{"bandwidth": -1, "format": 1}', '{"bandwidth": 1e10, "cores": 999}'],
)
def test_what_is_not_ours_is_written_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "machine.json"
    file.write_text(text, encoding="utf-8")
    assert bandwidth(file, lambda: 3e10) == 3e10
    assert json.loads(file.read_text("utf-8"))["bandwidth"] == 3e10


def test_a_folder_that_cannot_be_written_to_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert bandwidth(tmp_path / "file" / "machine.json", lambda: 3e10) == 3e10


def test_the_best_pass_is_the_bandwidth() -> None:
    ticks: Iterator[float] = iter([0.0, 0.0, 0.5, 0.55, 0.55, 0.65, 0.7])
    assert measured_bandwidth(lambda: next(ticks)) == pytest.approx((1 << 28) / 0.1)


def test_what_is_known_of_a_machine(files: PairFiles, tmp_path: Path) -> None:
    target = model(tmp_path / "a.gguf")
    files.keep(conditions(target, None), learned([[1, 0.03]], [0.0, 0.0]))
    found = machine_speed(files.everything(), tmp_path, measure=lambda: 1e10)
    assert [timing.path for timing in found.timings] == [target]
    assert (found.bandwidth, found.gpu_bandwidth) == (1e10, None)
    on_gpu = machine_speed([], tmp_path, ["Apple M3 Max"], measure=lambda: math.nan)
    assert (on_gpu.bandwidth, on_gpu.gpu_bandwidth) == (1e10, 400e9)


def test_each_format_is_reckoned_from_its_own_engine_s_timings(files: PairFiles, tmp_path: Path) -> None:
    gguf, folder = model(tmp_path / "a.gguf"), write_mlx(tmp_path / "a-4bit")
    files.keep(conditions(gguf, None), learned([[1, 0.03]], [0.0, 0.0]))
    files.keep(conditions(folder, None, engine="other 1"), learned([[1, 0.5]], [0.0, 0.0]))
    for format_, path in ((ModelFormat.GGUF, gguf), (ModelFormat.MLX, folder)):
        found = machine_speed(files.everything(), tmp_path, measure=lambda: 1e10, format_=format_)
        assert [timing.path for timing in found.timings] == [path]
