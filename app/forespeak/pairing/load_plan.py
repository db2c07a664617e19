"""Whether a request's models fit into memory, asked before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from forespeak.engines.engine import DEFAULT_CONTEXT_LENGTH, LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.machine_memory import Gpu, Machine, now
from forespeak.models.memory import Fit, MemoryPlan, MemorySettings, Quant, SuggestionKind, plan_of_files

CPU_BATCH, GPU_BATCH = 128, 512
"""As in `engines.llamacpp.loading`."""
OUTPUT_ROWS = 49
"""The longest draft and one more, as there."""

OPTIONS = {
    SuggestionKind.CONTEXT: "--context {context}",
    SuggestionKind.CACHE_TYPE: "without --reproducible",
    SuggestionKind.NO_DRAFT: "--draft none",
}
"""What the command line is told to follow an advice."""


def machine_now() -> Machine:
    """The machine's memory with the GPUs that the engine can use. Takes a second where there are such; reads files."""
    from forespeak.engines.gpu_list import gpus

    return now([Gpu(each.name, each.free_bytes, each.total_bytes) for each in gpus()])


def memory_settings(request: LoadRequest, machine: Machine) -> MemorySettings:
    """What our engine makes of a request."""
    on_gpu = request.gpu_layers != 0 and bool(machine.gpus)
    return MemorySettings(
        context_length=request.context_length,
        cache_type="F32" if request.reproducible else "F16",
        flash_attention=on_gpu and not request.reproducible,
        batch=GPU_BATCH if on_gpu else CPU_BATCH,
        outputs=OUTPUT_ROWS,
        gpu_layers=request.gpu_layers if on_gpu else 0,
        usual_context=DEFAULT_CONTEXT_LENGTH,
    )


def plan_load(request: LoadRequest, machine: Machine, quants: Sequence[Quant] = ()) -> MemoryPlan:
    """The plan for a request on a machine. Raises GgufError."""
    return plan_of_files(request.target, request.draft, memory_settings(request, machine), machine, quants)


def plan_lines(target: Path, draft: Path | None = None) -> list[str]:
    """What a model or a pair would take here with the usual settings: a sentence, then a line per part.

    Raises GgufError.
    """
    plan = plan_load(LoadRequest(target, draft), machine_now())
    return [plan.sentence, *plan.lines()]


def see_that_it_fits(
    request: LoadRequest,
    *,
    anyway: bool,
    ask: Callable[[str], bool] | None,
    options: Mapping[SuggestionKind, str] = OPTIONS,
    machine: Callable[[], Machine] = machine_now,
) -> None:
    """What the command line does before it loads: a pair that is too large is asked about, or refused.

    `ask` None: nobody is there to answer. `options`: what this command can be told. Raises UserFacingError with what
    is needed, what is free and what would fit.
    """
    if anyway:
        return
    try:
        plan = plan_load(request, machine())
    except UserFacingError:
        # The engine meets the same file and tells what is wrong with it.
        return
    if plan.fit is not Fit.TOO_LARGE or (ask is not None and ask(f"{plan.sentence} Load it anyway?")):
        return
    advice = [
        f"{each.words.removesuffix('.')} ({options[each.kind].format(context=each.settings.context_length)})."
        for each in plan.suggestions
        if each.kind in options
    ]
    raise UserFacingError(
        "This does not fit into this machine's memory.",
        plan.sentence,
        " ".join([*advice, "--load-anyway loads it all the same; the system may become slow or end the program."]),
    )
