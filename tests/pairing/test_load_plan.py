"""Requests weighed before they are loaded: our engine's settings, the gate, and one real pair at its peak."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.devices import Device
from forespeak.engines.drafting import MAX_DRAFT_LENGTH
from forespeak.engines.engine import CacheType, LoadRequest, LoadSettings
from forespeak.errors import UserFacingError
from forespeak.models.machine_memory import Gpu, Machine, now
from forespeak.models.memory import Fit, SuggestionKind
from forespeak.models.model_layout import layout_of_file
from forespeak.models.starter import starter_draft_path
from forespeak.pairing import load_plan
from forespeak.pairing.load_plan import as_gpus, choose_layers, memory_settings, plan_load, see_that_it_fits
from memory_child import peak
from models import architectures

GB = 10**9
SMALL, LARGE = Machine(8 * GB, GB), Machine(64 * GB, 48 * GB)
CARD = Device("CUDA0", "A card", "GPU", 20 * GB, 24 * GB, "CUDA")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return architectures.llama().write(tmp_path_factory.mktemp("models") / "large.gguf")


def test_settings_are_those_that_our_engine_loads_with() -> None:
    from forespeak.engines.llamacpp import loading

    assert (loading._CPU_BATCH, loading._GPU_BATCH) == (load_plan.CPU_BATCH, load_plan.GPU_BATCH)
    assert load_plan.OUTPUT_ROWS == MAX_DRAFT_LENGTH + 1
    plain = memory_settings(LoadRequest(Path("m")), LARGE)
    assert (plain.cache_type, plain.flash_attention, plain.batch, plain.gpu_layers) == ("F16", False, 128, 0)
    # llama.cpp keeps the whole context of sliding windows unless it is told otherwise, and we do not tell it.
    assert not plain.windows
    exact = memory_settings(LoadRequest(Path("m"), settings=LoadSettings(reproducible=True, context_length=512)), LARGE)
    assert (exact.cache_type, exact.context_length) == ("F32", 512)
    card = Machine(64 * GB, 48 * GB, (Gpu("Card", 20 * GB, 24 * GB),))
    on_card = memory_settings(LoadRequest(Path("m")), card)
    assert (on_card.flash_attention, on_card.batch, on_card.gpu_layers) == (True, 512, -1)
    assert memory_settings(LoadRequest(Path("m"), settings=LoadSettings(gpu_layers=0)), card) == plain


@pytest.mark.parametrize("kind", CacheType)
def test_every_cache_is_planned_for(model: Path, kind: CacheType) -> None:
    settings = memory_settings(LoadRequest(model, settings=LoadSettings(cache_type=kind)), LARGE)
    assert (settings.cache_type, settings.flash_attention) == (kind.value, kind.is_quantised)
    half = plan_load(LoadRequest(model, settings=LoadSettings(cache_type=CacheType.F16)), LARGE).needed_bytes
    needed = plan_load(LoadRequest(model, settings=LoadSettings(cache_type=kind)), LARGE).needed_bytes
    assert (needed < half) == kind.is_quantised
    assert (needed > half) == (kind is CacheType.F32)


def test_target_and_draft_may_be_in_different_places() -> None:
    machine = Machine(64 * GB, 48 * GB, tuple(as_gpus([CARD, replace(CARD, name="CUDA1", free_bytes=22 * GB)])))
    assert [gpu.name for gpu in machine.gpus] == ["A card (CUDA0)", "A card (CUDA1)"]
    apart = memory_settings(
        LoadRequest(Path("m"), Path("d"), LoadSettings(device="CPU", draft_device="CUDA0")), machine
    )
    assert (apart.gpus, apart.gpu_layers, apart.batch, apart.flash_attention) == ((), 0, 128, False)
    draft = apart.of_draft
    assert (draft.gpus, draft.gpu_layers, draft.batch) == (("A card (CUDA0)",), -1, 512)
    assert draft.flash_attention
    both = memory_settings(LoadRequest(Path("m"), Path("d")), machine)
    assert (both.gpus, both.of_draft.gpus) == (("A card (CUDA0)", "A card (CUDA1)"), ("A card (CUDA1)",))
    with pytest.raises(UserFacingError, match="CUDA7"):
        memory_settings(LoadRequest(Path("m"), settings=LoadSettings(device="CUDA7")), machine)


def on_card(request: LoadRequest, free: int) -> LoadRequest:
    return choose_layers(request, [replace(CARD, free_bytes=free)])


def test_layers_are_chosen_so_that_they_fit_and_the_draft_comes_first(model: Path) -> None:
    request = LoadRequest(model, model, LoadSettings(8192))
    roomy = Machine(64 * GB, 48 * GB, tuple(as_gpus([CARD])))
    needed = {need.device: need.needed_bytes for need in plan_load(request, roomy).devices}["A card"]
    assert on_card(request, 2 * needed) == request
    less = on_card(request, int(0.8 * needed))
    layers = len(layout_of_file(model).layers)
    assert less.settings.draft_gpu_layers == -1
    assert 0 < less.settings.gpu_layers < layers
    tight = replace(roomy, gpus=tuple(as_gpus([replace(CARD, free_bytes=int(0.8 * needed))])))
    assert plan_load(less, tight).fit is not Fit.TOO_LARGE
    # What is planned for a request that leaves it open is what is chosen for it.
    assert plan_load(request, tight) == plan_load(less, tight)
    none = on_card(request, 1)
    assert (none.settings.gpu_layers, none.settings.draft_gpu_layers) == (0, 0)


def test_what_was_said_of_layers_is_left_alone(model: Path, tmp_path: Path) -> None:
    fixed = LoadRequest(model, model, LoadSettings(8192, gpu_layers=2))
    assert on_card(fixed, 1) == fixed
    assert on_card(LoadRequest(model, settings=LoadSettings(device="CPU")), 1) == LoadRequest(
        model, settings=LoadSettings(device="CPU")
    )
    gone = LoadRequest(tmp_path / "gone.gguf")
    assert on_card(gone, 1) == gone
    assert choose_layers(LoadRequest(model), []) == LoadRequest(model)
    half = on_card(LoadRequest(model, model, LoadSettings(8192, draft_gpu_layers=0)), 1)
    assert (half.settings.gpu_layers, half.settings.draft_gpu_layers) == (0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_a_real_pair_takes_what_was_planned() -> None:
    model = starter_draft_path()
    if model is None:
        pytest.skip("the starter pair is not installed")
    planned = plan_load(LoadRequest(model, model, LoadSettings(context_length=256)), now())
    assert planned.needed_bytes == pytest.approx(peak(model, model, 256, reproducible=False).peak, rel=0.1)


def test_what_fits_goes_ahead_without_a_word(model: Path) -> None:
    see_that_it_fits(LoadRequest(model), anyway=False, ask=lambda _: pytest.fail("asked"), machine=lambda: LARGE)


def test_what_does_not_fit_is_refused_in_words(model: Path) -> None:
    request = LoadRequest(model, model, LoadSettings(context_length=8192, reproducible=True))
    with pytest.raises(UserFacingError) as refusal:
        see_that_it_fits(request, anyway=False, ask=None, machine=lambda: SMALL)
    assert refusal.value.what == "This does not fit into this machine's memory."
    assert refusal.value.why == plan_load(request, SMALL).sentence
    assert refusal.value.remedy.startswith("--load-anyway")


def test_a_refusal_names_the_options_that_help(model: Path) -> None:
    request = LoadRequest(model, model, LoadSettings(context_length=32768, reproducible=True))
    usual = LoadRequest(model, model, LoadSettings(context_length=32768))
    machine = Machine(64 * GB, plan_load(usual, LARGE).needed_bytes)
    with pytest.raises(UserFacingError) as refusal:
        see_that_it_fits(request, anyway=False, ask=None, machine=lambda: machine)
    remedy = refusal.value.remedy
    assert "(--context 16384)." in remedy
    assert "(without --reproducible)." in remedy
    assert "(--draft none)." in remedy
    with pytest.raises(UserFacingError) as refusal:
        see_that_it_fits(
            request,
            anyway=False,
            ask=None,
            options={SuggestionKind.NO_DRAFT: "--draft none"},
            machine=lambda: machine,
        )
    assert refusal.value.remedy.startswith("Leave out the draft model (--draft none). --load-anyway")


def test_a_cache_that_was_chosen_too_large_is_named_with_its_own_option(model: Path) -> None:
    request = LoadRequest(model, settings=LoadSettings(context_length=1024, cache_type=CacheType.F32))
    usual = LoadRequest(model, settings=LoadSettings(1024))
    machine = Machine(64 * GB, plan_load(usual, LARGE).needed_bytes)
    with pytest.raises(UserFacingError) as refusal:
        see_that_it_fits(request, anyway=False, ask=None, machine=lambda: machine)
    assert "(--cache-type F16)." in refusal.value.remedy
    assert "reproducible" not in refusal.value.remedy


def test_on_a_terminal_the_user_decides(model: Path) -> None:
    asked: list[str] = []

    def yes(question: str) -> bool:
        asked.append(question)
        return True

    see_that_it_fits(LoadRequest(model), anyway=False, ask=yes, machine=lambda: SMALL)
    assert asked == [f"{plan_load(LoadRequest(model), SMALL).sentence} Load it anyway?"]
    with pytest.raises(UserFacingError):
        see_that_it_fits(LoadRequest(model), anyway=False, ask=lambda _: False, machine=lambda: SMALL)


def test_load_anyway_asks_nothing(model: Path) -> None:
    see_that_it_fits(LoadRequest(model), anyway=True, ask=None, machine=lambda: pytest.fail("weighed"))


def test_a_file_that_cannot_be_read_is_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("not a model")
    with pytest.raises(UserFacingError):
        plan_load(LoadRequest(tmp_path / "text.gguf"), LARGE)
    see_that_it_fits(LoadRequest(tmp_path / "text.gguf"), anyway=False, ask=None, machine=lambda: SMALL)


def test_tight_is_loaded(model: Path) -> None:
    needed = plan_load(LoadRequest(model), LARGE).needed_bytes
    tight = Machine(64 * GB, needed)
    assert plan_load(LoadRequest(model), tight).fit is Fit.TIGHT
    see_that_it_fits(LoadRequest(model), anyway=False, ask=None, machine=lambda: tight)
