from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forespeak.pairing.model_names import Kinship, ModelName, kinship, parse_name, search_terms

NAMES = {
    "Qwen2.5-Coder-32B-Instruct-Q4_K_M.gguf": (("qwen2.5", "coder"), 32e9, None, {"instruct"}),
    "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF": (("llama", "3.1"), 8e9, None, {"instruct"}),
    "llama-3.2-1b-instruct-q8_0": (("llama", "3.2"), 1e9, None, {"instruct"}),
    "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL-00001-of-00002.gguf": (("qwen3",), 30e9, 3e9, {"instruct", "2507"}),
    "gemma-3-27b-it-qat-q4_0.gguf": (("gemma", "3"), 27e9, None, {"it", "qat"}),
    "Mixtral-8x7B-Instruct-v0.1.Q4_K_M.gguf": (("mixtral",), 56e9, None, {"instruct", "v0.1"}),
    "SmolLM2 135M Instruct": (("smollm2",), 135e6, None, {"instruct"}),
    "unsloth/gpt-oss-20b-GGUF": (("gpt", "oss"), 20e9, None, set()),
    "google_gemma-3-1b-it-IQ3_XXS": (("gemma", "3"), 1e9, None, {"it"}),
    "Qwen_Qwen3-0.6B-bf16": (("qwen3",), 0.6e9, None, set()),
    "mlx-community/Llama-3.3-70B-Instruct-4bit": (("llama", "3.3"), 70e9, None, {"instruct"}),
    "Phi-4-mini-instruct": (("phi", "4", "mini"), None, None, {"instruct"}),
    "model": (("model",), None, None, set()),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_apart(name: str) -> None:
    family, parameters, active, variants = NAMES[name]
    assert parse_name(name) == ModelName(family, parameters, active, frozenset(variants))


@given(st.text(max_size=60))
def test_no_name_breaks_it(name: str) -> None:
    found = parse_name(name)
    assert found.parameters is None or found.parameters >= 0
    assert all(found.family)
    search_terms(name)


@pytest.mark.parametrize(
    ("target", "draft", "kin"),
    [
        ("Qwen2.5-32B-Instruct-Q4_K_M", "Qwen2.5-0.5B-Instruct-Q8_0", Kinship.SAME_FAMILY),
        ("Qwen2.5-Coder-32B-Instruct", "Qwen2.5-0.5B-Instruct", Kinship.RELATED),
        ("SmolLM2-135M-Instruct-F32", "SmolLM2-135M-Instruct.Q4_1", Kinship.SAME_WEIGHTS),
        ("SmolLM2-135M-Instruct", "SmolLM2-135M", Kinship.SAME_FAMILY),
        ("Llama-3.3-70B-Instruct", "Llama-3.2-1B-Instruct", Kinship.SAME_FAMILY),
        ("Llama-3.1-8B", "Llama-2-7B", Kinship.RELATED),
        ("Mistral-7B", "Qwen3-0.6B", Kinship.OTHER),
        ("Phi-4", "Phi-4", Kinship.SAME_FAMILY),
        ("", "Qwen3-0.6B", Kinship.OTHER),
    ],
)
def test_kinship_by_names(target: str, draft: str, kin: Kinship) -> None:
    assert kinship(parse_name(target), parse_name(draft)) is kin


def test_weights_that_were_counted_outweigh_the_name() -> None:
    phi = parse_name("Phi-4")
    assert kinship(phi, phi, 14.0e9, 14.1e9) is Kinship.SAME_WEIGHTS
    assert kinship(phi, phi, 14.0e9, 3.8e9) is Kinship.SAME_FAMILY


def test_what_to_search_for() -> None:
    assert search_terms("Qwen2.5-Coder-32B-Instruct-Q4_K_M.gguf") == ("qwen2.5-coder", "qwen2.5")
    assert search_terms("Meta-Llama-3.1-70B-Instruct")[0] == "Llama-3.2-1B-Instruct"
    assert search_terms("gemma-3-27b-it") == ("gemma-3",)
    assert search_terms("Q4_K_M.gguf", "llama") == ("llama",)
    assert search_terms("Q4_K_M.gguf") == ()
