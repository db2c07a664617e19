"""The plan: parts, devices, verdict, words, and what would help."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.models.machine_memory import Gpu, Machine
from forespeak.models.memory import (
    MAIN_MEMORY,
    Fit,
    MemorySettings,
    PartKind,
    Quant,
    SuggestionKind,
    fit_of,
    plan,
    plan_of_files,
)
from forespeak.models.model_layout import ModelLayout, layout_of_file
from forespeak.models.model_memory import ContextSettings, memory_of
from models import architectures

GB = 10**9
LARGE = Machine(64 * GB, 48 * GB)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> ModelLayout:
    return layout_of_file(architectures.qwen3().write(tmp_path_factory.mktemp("m") / "target.gguf"))


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> ModelLayout:
    return layout_of_file(architectures.qwen2().write(tmp_path_factory.mktemp("m") / "draft.gguf"))


def test_a_pairs_parts_are_those_of_both_and_of_the_engine(target: ModelLayout, draft: ModelLayout) -> None:
    found = plan(target, draft, MemorySettings(), LARGE)
    assert found.fit is Fit.FITS
    assert found.suggestions == ()
    assert [(part.kind, part.of) for part in found.parts] == [
        (kind, of) for of in ("target", "draft") for kind in (PartKind.WEIGHTS, PartKind.CACHE, PartKind.BUFFERS)
    ] + [(PartKind.PROGRAM, "")]
    # No longer than the usual context, although the model was trained for 32,768.
    context = ContextSettings(8192)
    expected = memory_of(target, context, 0).host + memory_of(draft, context, 0).host
    assert found.needed_bytes == expected + found.parts[-1].size_bytes
    assert found.context_length == 8192


def test_a_models_own_context_counts_if_it_is_shorter(target: ModelLayout) -> None:
    assert plan(replace(target, trained_context=2048), None, MemorySettings(), LARGE).context_length == 2048
    assert plan(target, None, MemorySettings(context_length=20000), LARGE).context_length == 20000


def test_fits_tight_and_too_large_are_told_apart(target: ModelLayout) -> None:
    needed = plan(target, None, MemorySettings(), LARGE).needed_bytes
    verdicts = [
        plan(target, None, MemorySettings(), Machine(64 * GB, available)).fit
        for available in (needed - 1, needed, int(needed / 0.85) - 1, int(needed / 0.85) + 2)
    ]
    assert verdicts == [Fit.TOO_LARGE, Fit.TIGHT, Fit.TIGHT, Fit.FITS]


def test_the_sentence_says_what_is_needed_and_what_is_free(target: ModelLayout, draft: ModelLayout) -> None:
    found = plan(target, draft, MemorySettings(), Machine(8 * GB, 2 * GB))
    assert found.sentence.startswith("Target and draft need ")
    assert found.sentence.endswith(" of memory, and 2 GB are free of 8 GB.")
    assert plan(target, None, MemorySettings(), LARGE).sentence.startswith("The model needs ")


def test_lines_name_every_part_and_what_is_free(target: ModelLayout, draft: ModelLayout) -> None:
    lines = plan(target, draft, MemorySettings(), LARGE).lines()
    assert [line.split("  ")[0] for line in lines] == [
        *("Target weights", "Target cache", "Target buffers", "Draft weights", "Draft cache", "Draft buffers"),
        *("Engine", "Main memory"),
    ]
    assert lines[-1].endswith("of 48 GB free (fits)")


def test_what_helps_comes_in_order_and_fits(target: ModelLayout, draft: ModelLayout) -> None:
    settings = MemorySettings(context_length=32768, cache_type="F32")
    needed = plan(target, draft, settings, LARGE).needed_bytes
    machine = Machine(16 * GB, int(0.7 * needed))
    found = plan(target, draft, settings, machine, [Quant("Q8_0", target.size_bytes // 2), Quant("F16", 99 * GB)])
    assert found.fit is Fit.TOO_LARGE
    kinds = [each.kind for each in found.suggestions]
    assert kinds[0] is SuggestionKind.CONTEXT
    assert kinds == sorted(kinds, key=list(SuggestionKind).index)
    for each in found.suggestions:
        if each.kind in {SuggestionKind.CONTEXT, SuggestionKind.CACHE_TYPE}:
            again = plan(target, draft, each.settings, machine)
            assert again.fit is not Fit.TOO_LARGE
            assert again.needed_bytes == each.needed_bytes
    assert found.suggestions[0].words == f"Use a context of {found.suggestions[0].settings.context_length:,}."


@pytest.mark.parametrize(
    ("reproducible", "kind", "words"),
    [
        (True, SuggestionKind.REPRODUCIBLE, "Switch the reproducible setting off: it doubles the cache."),
        (False, SuggestionKind.CACHE_TYPE, "Keep the cache in F16: in F32 it is twice as large."),
    ],
)
def test_a_large_cache_is_given_up_where_it_was_chosen(
    target: ModelLayout, reproducible: bool, kind: SuggestionKind, words: str
) -> None:
    settings = MemorySettings(context_length=1024, cache_type="F32", reproducible=reproducible)
    machine = Machine(16 * GB, plan(target, None, replace(settings, cache_type="F16"), LARGE).needed_bytes)
    found = plan(target, None, settings, machine)
    assert [(each.kind, each.words) for each in found.suggestions] == [(kind, words)]
    assert (found.suggestions[0].settings.cache_type, found.suggestions[0].settings.reproducible) == ("F16", False)


def test_no_longer_context_is_advised_than_the_largest_that_fits(target: ModelLayout) -> None:
    machine = Machine(16 * GB, plan(target, None, MemorySettings(context_length=8192), LARGE).needed_bytes)
    found = plan(target, None, MemorySettings(context_length=32768), machine)
    assert found.suggestions[0].settings.context_length == 8192


def test_the_largest_smaller_file_that_fits_is_named(target: ModelLayout) -> None:
    full = plan(target, None, MemorySettings(context_length=1024), LARGE).needed_bytes
    machine = Machine(16 * GB, full - target.size_bytes // 3)
    sizes = [
        Quant("Q2_K", target.size_bytes // 6),
        Quant("Q6_K", target.size_bytes // 2),
        Quant("BF16", target.size_bytes),
    ]
    found = plan(target, None, MemorySettings(context_length=1024), machine, sizes)
    assert [(each.kind, each.file) for each in found.suggestions] == [(SuggestionKind.SMALLER_FILE, "Q6_K")]


def test_a_draft_that_is_too_much_may_be_left_out(target: ModelLayout, draft: ModelLayout) -> None:
    alone = plan(target, None, MemorySettings(context_length=1024), LARGE).needed_bytes
    found = plan(target, draft, MemorySettings(context_length=1024), Machine(16 * GB, alone))
    assert [each.kind for each in found.suggestions] == [SuggestionKind.NO_DRAFT]
    assert found.suggestions[0].needed_bytes == alone


def test_a_gpu_takes_the_layers_and_main_memory_the_rest(target: ModelLayout) -> None:
    machine = replace(LARGE, gpus=(Gpu("Card", 20 * GB, 24 * GB),))
    settings = MemorySettings(gpu_layers=-1, batch=512, flash_attention=True)
    found = plan(target, None, settings, machine)
    assert [need.device for need in found.devices] == [MAIN_MEMORY, "Card"]
    on_card = [part for part in found.parts if part.device == "Card"]
    weights = sum(part.size_bytes for part in on_card if part.kind is PartKind.WEIGHTS)
    assert weights == target.weight_bytes - target.input_bytes
    # Without layers on it, a card is not asked for anything.
    assert [need.device for need in plan(target, None, MemorySettings(), machine).devices] == [MAIN_MEMORY]


def test_on_a_small_gpu_the_draft_comes_first(target: ModelLayout, draft: ModelLayout) -> None:
    settings = MemorySettings(gpu_layers=-1, batch=512, flash_attention=True)
    roomy = replace(LARGE, gpus=(Gpu("Card", 40 * GB, 40 * GB),))
    needs = {need.device: need.needed_bytes for need in plan(target, draft, settings, roomy).devices}
    small = replace(LARGE, gpus=(Gpu("Card", needs["Card"] - 700_000_000, 40 * GB),))
    found = plan(target, draft, settings, small)
    assert found.fit is Fit.TOO_LARGE
    advice = next(each for each in found.suggestions if each.kind is SuggestionKind.GPU_LAYERS)
    assert advice.settings.draft_gpu_layers == -1
    assert 0 <= advice.settings.gpu_layers <= len(target.layers)
    assert advice.words.endswith(", and all of the draft.")
    assert plan(target, draft, advice.settings, small).fit is not Fit.TOO_LARGE
    one_more = replace(advice.settings, gpu_layers=advice.settings.gpu_layers + 1)
    assert plan(target, draft, one_more, small).fit is Fit.TOO_LARGE


def test_two_gpus_share_by_what_is_free(target: ModelLayout) -> None:
    machine = replace(LARGE, gpus=(Gpu("A", 30 * GB, 30 * GB), Gpu("B", 10 * GB, 10 * GB)))
    found = plan(target, None, MemorySettings(gpu_layers=-1), machine)
    weights = {part.device: part.size_bytes for part in found.parts if part.kind is PartKind.WEIGHTS}
    assert weights["A"] == pytest.approx(3 * weights["B"], rel=1e-6)


def test_unified_memory_is_one_pool_with_the_systems_limit(target: ModelLayout) -> None:
    gpu = Gpu("Apple", 20 * GB, 21 * GB)
    machine = Machine(32 * GB, 24 * GB, (gpu,), unified=True)
    settings = MemorySettings(gpu_layers=-1)
    found = plan(target, None, settings, machine)
    assert [need.device for need in found.devices] == [MAIN_MEMORY]
    assert found.devices[0].needed_bytes == sum(part.size_bytes for part in found.parts)
    assert found.fit is Fit.FITS
    limited = replace(machine, gpus=(replace(gpu, free_bytes=GB),))
    assert plan(target, None, settings, limited).fit is Fit.TOO_LARGE


def test_a_file_alone_is_judged_by_its_size() -> None:
    machine = Machine(16 * GB, 10 * GB)
    assert [fit_of(size, machine) for size in (5 * GB, 8 * GB, 9 * GB)] == [Fit.FITS, Fit.TIGHT, Fit.TOO_LARGE]
    with_card = replace(machine, gpus=(Gpu("Card", 24 * GB, 24 * GB),))
    assert [fit_of(size, with_card) for size in (9 * GB, 24 * GB, 40 * GB)] == [Fit.FITS, Fit.TIGHT, Fit.TOO_LARGE]
    shared = Machine(16 * GB, 10 * GB, (Gpu("Apple", 10 * GB, 10 * GB),), unified=True)
    assert fit_of(9 * GB, shared) is Fit.TOO_LARGE


def test_files_are_planned_by_their_headers(tmp_path: Path) -> None:
    path = architectures.lfm2().write(tmp_path / "m.gguf")
    assert plan_of_files(path, path, MemorySettings(), LARGE) == plan(
        layout_of_file(path), layout_of_file(path), MemorySettings(), LARGE
    )
