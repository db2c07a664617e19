"""From a folder to a loaded model: what MLX does before it can generate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from forespeak.engines.drafting import MAX_DRAFT_LENGTH
from forespeak.engines.engine import (
    DEFAULT_CONTEXT_LENGTH,
    Buffer,
    CacheType,
    LoadRequest,
    LoadSettings,
    ModelSummary,
    Placement,
    Progress,
)
from forespeak.engines.mlx.model import MlxModel
from forespeak.engines.mlx.runtime import (
    ENGINE,
    device_name,
    get_total_parameters,
    give_memory_back,
    load_network,
    load_tokenizer,
    maybe_set_recommended_wired_limit,
    mx,
    nn,
    on_gpu,
    tree_flatten,
    use_processor,
)
from forespeak.engines.mlx.settings import cache_bits, on_processor
from forespeak.engines.mlx.vocabulary import MlxVocabulary
from forespeak.engines.pair_engine import ProgressListener
from forespeak.engines.pair_knowledge import PairConditions
from forespeak.errors import UserFacingError
from forespeak.speculation.language_model import EvaluationError

_CPU_BATCH, _GPU_BATCH = 64, 512
"""Tokens of one evaluation of a prompt. A stop waits for one of these."""
_CHUNK_BYTES = 64 << 20
"""Weights that are read before the next look at whether the load was cancelled."""
_NEEDED = ("config.json", "tokenizer.json")
_ERRORS = (
    EvaluationError,
    OSError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ImportError,
    IndexError,
)
"""What mlx-lm raises for folders that are damaged, incomplete or of a kind that it does not know."""


def load_model(
    request: LoadRequest,
    path: Path,
    start: float,
    share: float,
    progress: ProgressListener,
    cancelled: Callable[[], bool],
) -> MlxModel | None:
    """The model of a folder with a cache; its progress is told as `start` to `start + share`. None if cancelled.

    Raises UserFacingError. Code that a folder brings along is not run.
    """
    progress(Progress(start, f"Loading {path.name}"))
    _check_folder(path)
    use_processor(on_processor(request.settings))
    maybe_set_recommended_wired_limit()
    try:
        network, config = load_network(path, lazy=True)
        tokenizer = load_tokenizer(path, eos_token_ids=config.get("eos_token_id"))
        for fraction in _read_weights(network):
            progress(Progress(start + share * fraction, f"Loading {path.name}"))
            if cancelled():
                del network
                give_memory_back()
                return None
        model = _with_cache(network, config, tokenizer, request.settings)
        model.try_out()
    except _ERRORS as error:
        give_memory_back()
        if isinstance(error, UserFacingError):
            raise
        raise UserFacingError(
            f"“{path.name}” could not be loaded.",
            f"MLX says: {_first_line(error)}",
            "It may be damaged, of a kind that this version of mlx-lm does not know, or too large for the memory.",
        ) from error
    return model


def _check_folder(path: Path) -> None:
    """mlx-lm takes a path that does not exist for a name on the Hub, and looks at the tokenizer last."""
    if not path.is_dir():
        raise UserFacingError(
            f"There is no model folder at {path}.",
            "A model in the MLX format is a folder. It may have been moved or deleted.",
            "Choose another one.",
        )
    missing = [name for name in _NEEDED if not (path / name).is_file()]
    if missing or not any(path.glob("model*.safetensors")):
        raise UserFacingError(
            f"“{path.name}” is not a complete model in the MLX format.",
            f"{missing[0]} is missing." if missing else "Its weights (model.safetensors) are missing.",
            "Download the whole folder again, or choose another model.",
        )
    try:
        read = json.loads((path / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise UserFacingError(
            f"“{path.name}” could not be loaded.",
            f"Its config.json cannot be read: {error}.",
            "Download the whole folder again, or choose another model.",
        ) from error
    if not isinstance(read, dict) or not isinstance(read.get("model_type"), str):
        raise UserFacingError(
            f"“{path.name}” could not be loaded.",
            "Its config.json does not say what kind of model it is.",
            "Download the whole folder again, or choose another model.",
        )


def _read_weights(network: nn.Module) -> Iterator[float]:
    """Read what was only mapped so far, and tell which part of it is there."""
    arrays = [array for _, array in tree_flatten(network.parameters())]
    whole = sum(array.nbytes for array in arrays)
    done = waiting = 0
    chunk: list[Any] = []
    for array in arrays:
        chunk.append(array)
        waiting += array.nbytes
        if waiting >= _CHUNK_BYTES:
            mx.eval(chunk)
            done, waiting = done + waiting, 0
            chunk.clear()
            yield done / whole
    mx.eval(chunk)
    yield 1.0


def _with_cache(
    network: nn.Module,
    config: dict[str, Any],
    tokenizer: Any,  # noqa: ANN401 -- a class of mlx-lm
    settings: LoadSettings,
) -> MlxModel:
    # Shapes are known before anything is computed.
    width = int(network(mx.array([[0]])).shape[-1])
    trained = trained_context_length(config)
    wanted = settings.context_length or min(trained, DEFAULT_CONTEXT_LENGTH)
    template = tokenizer._tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    batch = _GPU_BATCH if on_gpu() else _CPU_BATCH
    return MlxModel(
        network,
        MlxVocabulary(tokenizer, width),
        # Positions are an embedding in some models, and reading one that is not there would crash MLX.
        context_length=min(wanted, trained),
        batch_limit=batch,
        output_limit=MAX_DRAFT_LENGTH + 1,
        chat_template=template if isinstance(template, str) else None,
        cache_bits=cache_bits(settings),
        config=config,
    )


def beside(model: MlxModel, settings: LoadSettings) -> MlxModel:
    """The same weights with another cache, to be closed first. Raises UserFacingError.

    It may be of another kind than the model's own, so what works with it is tried out as well.
    """
    twin = MlxModel(
        model.network,
        model.vocabulary,
        context_length=min(settings.context_length or model.context_length, trained_context_length(model.config)),
        batch_limit=model.batch_limit,
        output_limit=model.output_limit,
        chat_template=model.chat_template,
        cache_bits=cache_bits(settings),
        config=model.config,
    )
    try:
        twin.try_out()
    except EvaluationError as error:
        raise UserFacingError(
            "There is not enough memory beside the loaded models.",
            f"MLX says: {_first_line(error)}",
            "Load the models with a shorter context, then try again.",
        ) from error
    return twin


def trained_context_length(config: Mapping[str, Any]) -> int:
    """The longest text, in tokens, that the model was made for; our usual length where its settings do not say."""
    for place in (config, config.get("text_config")):
        for name in ("max_position_embeddings", "max_seq_len", "n_positions", "seq_length"):
            value = place.get(name) if isinstance(place, dict) else None
            if isinstance(value, int) and value > 0:
                return value
    return DEFAULT_CONTEXT_LENGTH


def is_f32(model: MlxModel) -> bool:
    return all(array.dtype == mx.float32 for _, array in tree_flatten(model.network.parameters()))


def conditions_of(request: LoadRequest, target: MlxModel, with_draft: bool) -> PairConditions:
    """What the costs of a loaded pair depend on."""
    settings = request.settings
    return PairConditions(
        target=request.target,
        draft=request.draft if with_draft else None,
        engine=ENGINE,
        devices=(device_name(),),
        # MLX shares its work out itself.
        threads=0,
        gpu_layers=settings.gpu_layers,
        reproducible=settings.reproducible,
        context_length=target.context_length,
        cache_type=CacheType.F16 if settings.reproducible else settings.cache_type,
    )


def placement_of(model: MlxModel) -> Placement:
    """Where a model is: whole on one device."""
    layers = len(model.network.layers) + 1
    return Placement(
        devices=(device_name(),),
        gpu_layers=layers if on_gpu() else 0,
        layers=layers,
        cache_type=model.cache_type,
        # Its attention is one kernel that keeps no table of scores.
        flash_attention=True,
        threads=0,
        buffers=(Buffer("weights", device_name(), _weight_bytes(model)),),
    )


def summary(path: Path, model: MlxModel) -> ModelSummary:
    config = model.config
    quantisation = config.get("quantization")
    bits = quantisation.get("bits") if isinstance(quantisation, dict) else None
    parameters = int(get_total_parameters(model.network))
    label = f"{bits}-bit" if bits else _weights_type(model)
    size = f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.0f}M"
    return ModelSummary(
        path=path,
        name=path.name,
        description=f"{config['model_type']} {size} {label}",
        parameters=parameters,
        size_bytes=_weight_bytes(model),
        vocabulary_size=model.vocabulary.size,
        context_length=model.context_length,
        trained_context_length=trained_context_length(config),
    )


def _weight_bytes(model: MlxModel) -> int:
    return sum(array.nbytes for _, array in tree_flatten(model.network.parameters()))


def _weights_type(model: MlxModel) -> str:
    arrays = [array for _, array in tree_flatten(model.network.parameters())]
    names = {mx.float32: "F32", mx.float16: "F16", mx.bfloat16: "BF16"}
    largest = max(arrays, key=lambda array: array.size)
    return names.get(largest.dtype, str(largest.dtype))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{(lines[0] if lines else type(error).__name__).rstrip('.')}."
