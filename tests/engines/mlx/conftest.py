"""MLX folders of tiny networks, and the starter's weights as one. mlx is imported in fixtures: it may be missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forespeak.models.starter import starter_draft_path
from tiny_llama import vocabulary, write_llama


def accept_any_pair(_target: Path, _draft: Path) -> None:
    return None


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama of one layer over single bytes and a few pairs, with ChatML's marks and no chat template."""
    return _converted(tmp_path_factory, "tiny", noise=0.0)


@pytest.fixture(scope="session")
def near(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft for `tiny` that mostly agrees with it."""
    return _converted(tmp_path_factory, "near", noise=0.15)


@pytest.fixture(scope="session")
def junk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft for `tiny` that knows nothing."""
    return _converted(tmp_path_factory, "junk", seed=5)


def _converted(paths: pytest.TempPathFactory, name: str, **settings: Any) -> Path:
    from mlx_folders import convert

    folder = paths.mktemp("mlx")
    return convert(write_llama(vocabulary(), folder / f"{name}.gguf", **settings), folder / name)


RING = 40


@pytest.fixture(scope="session")
def ring(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gemma's architecture: every other layer holds the last RING tokens only."""
    config = {
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "intermediate_size": 32,
        "num_attention_heads": 2,
        "head_dim": 16,
        "query_pre_attn_scalar": 16,
        "sliding_window": RING,
        "sliding_window_pattern": 2,
        "max_position_embeddings": 512,
    }
    return _random("gemma3_text", config, tiny, tmp_path_factory)


@pytest.fixture(scope="session")
def hybrid(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LFM2's architecture: convolutions, whose state gives nothing back, and attention in turn."""
    config = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 32,
        "block_ff_dim": 32,
        "block_multiple_of": 8,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "full_attn_idxs": [1],
    }
    return _random("lfm2", config, tiny, tmp_path_factory)


@pytest.fixture(scope="session")
def wide(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama whose heads are long enough for a quantised cache."""
    config = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "num_attention_heads": 1,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "max_position_embeddings": 512,
    }
    return _random("llama", config, tiny, tmp_path_factory)


def _random(kind: str, config: dict[str, Any], tokenizer_of: Path, paths: pytest.TempPathFactory) -> Path:
    import importlib

    import mlx.core as mx
    from mlx.utils import tree_map

    from mlx_folders import save_network

    module = importlib.import_module(f"mlx_lm.models.{kind}")
    config |= {"model_type": kind, "vocab_size": len(vocabulary().tokens)}
    mx.random.seed(3)
    network = module.Model(module.ModelArgs.from_dict(config))
    # As they are made, such networks repeat one token for ever.
    network.update(tree_map(lambda array: array + 0.3 * mx.random.normal(array.shape), network.parameters()))
    return save_network(network, config, tokenizer_of, paths.mktemp("mlx") / kind)


@pytest.fixture(scope="session")
def smol(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter's model in float32."""
    from mlx_folders import convert

    path = starter_draft_path()
    if path is None:
        pytest.skip("the starter's weights are not installed (extra: starter)")
    return convert(path, tmp_path_factory.mktemp("mlx") / "smol")
