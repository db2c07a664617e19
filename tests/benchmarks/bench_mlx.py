"""Figures of the MLX engine on SmolLM2 in float32. Run alone on the machine, in an environment with mlx-lm:

python tests/benchmarks/bench_mlx.py parity   greedy, same words: ten prompts with a draft model, n-grams and junk
python tests/benchmarks/bench_mlx.py plain    plain decoding against mlx-lm's stream_generate, interleaved
python tests/benchmarks/bench_mlx.py drafts   drafts of the same length by the same model against mlx-lm's own
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import mlx.core as mx
from mlx_lm import stream_generate
from mlx_lm.utils import load_model, load_tokenizer

from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.mlx.engine import MlxEngine
from forespeak.models.starter import starter_draft_path
from forespeak.speculation.events import Finished
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, Source, Step
from mlx_folders import convert, save_network

FOLDER = Path(tempfile.gettempdir()) / "forespeak-bench" / "mlx"
SHORT = {
    "capital": "What is the capital of France? Answer with one word.",
    "fruit": "Repeat this list: apple, pear, plum, apple, pear, plum, apple, pear, plum.",
    "count": "Count from one to ten in words.",
    "again": "Repeat the word 'again' twenty times, separated by spaces.",
    "code": "Repeat this code as it is:\nfor word in words:\n    print(word)\nfor word in words:\n    print(word)",
    "hello": "Say hello in three languages.",
    "sky": "Why is the sky blue? One sentence.",
    "json": 'Give a city as JSON, in the form {"name": "...", "country": "..."}.',
    "rain": "Copy this line twice: Rain falls on the old grey roof, rain falls on the old grey street.",
    "cjk": "用中文介紹一下京都。",
}


def folders() -> tuple[Path, Path, Path]:
    """SmolLM2; its first ten layers, which write words too; a network of random weights with the same vocabulary."""
    target, few, junk = FOLDER / "smollm2-f32", FOLDER / "smollm2-10-layers", FOLDER / "junk"
    gguf = starter_draft_path()
    assert gguf is not None, "the starter extra is not installed"
    if not target.exists():
        convert(gguf, target)
    if not few.exists():
        convert(gguf, few, layers=10)
    if not junk.exists():
        from mlx_lm.models.llama import Model, ModelArgs

        config = {
            "model_type": "llama",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "intermediate_size": 64,
            "num_attention_heads": 2,
            "rms_norm_eps": 1e-5,
            "vocab_size": 49152,
            "max_position_embeddings": 2048,
        }
        mx.random.seed(1)
        save_network(Model(ModelArgs.from_dict(config)), config, target, junk)
    return target, few, junk


def opened(target: Path, draft: Path | None = None, *, reproducible: bool = False) -> MlxEngine:
    engine = MlxEngine(lambda _target, _draft: None)
    request = LoadRequest(target, draft, LoadSettings(context_length=1024, reproducible=reproducible))
    engine.load(request, lambda _: None, lambda: False)
    return engine


def ask(prompt: str, tokens: int, *sources: Source, length: int | None = None) -> GenerationRequest:
    return GenerationRequest(
        (ChatMessage(Role.USER, prompt),),
        sources,
        SamplingSettings(temperature=0.0),
        draft_length=length,
        max_tokens=tokens,
    )


def run(engine: MlxEngine, request: GenerationRequest) -> tuple[list[int], GenerationStats]:
    ids: list[int] = []
    for event in engine.generate(request, lambda: False):
        if isinstance(event, Step):
            ids += [token.id for token in event.emitted]
        elif isinstance(event, Finished):
            return ids, event.stats
    raise AssertionError("the generation did not finish")


def parity(tokens: int) -> None:
    target, few, junk = folders()
    ways = {
        "draft model": (few, Source.DRAFT_MODEL),
        "n-gram": (few, Source.PROMPT_LOOKUP),
        "junk": (junk, Source.DRAFT_MODEL),
    }
    plain: dict[str, list[int]] = {}
    engines = {path: opened(target, path) for path in (few, junk)}
    equal = dict.fromkeys(ways, 0)
    for name, prompt in SHORT.items():
        plain[name], _ = run(engines[few], ask(prompt, tokens))
        for way, (draft, source) in ways.items():
            ids, stats = run(engines[draft], ask(prompt, tokens, source, length=4))
            equal[way] += ids == plain[name]
            tested = stats.accepted_draft_tokens_count + stats.rejected_draft_tokens_count
            print(f"{name:8} {way:12} {'equal' if ids == plain[name] else 'DIFFERENT'}, {tested} tested", flush=True)
    for way, count in equal.items():
        print(f"{way}: {count} of {len(SHORT)} equal")


def their_rate(network: object, tokenizer: object, prompt: list[int], tokens: int, **more: object) -> float:
    """Tokens per second behind the first, as ours are counted."""
    answers = stream_generate(network, tokenizer, mx.array(prompt), max_tokens=tokens, **more)
    times = [time.perf_counter() for _ in answers]
    return (len(times) - 1) / (times[-1] - times[0])


def speed(tokens: int, runs: int, *, drafts: bool) -> None:
    """Ours and theirs in turn, a pair for each run and prompt; the ratio of each pair, and their median."""
    target, few, _ = folders()
    engine = opened(target, few if drafts else None)
    network, config = load_model(target)
    tokenizer = load_tokenizer(target, eos_token_ids=config.get("eos_token_id"))
    more: dict[str, object] = {"draft_model": load_model(few)[0], "num_draft_tokens": 3} if drafts else {}
    sources = (Source.DRAFT_MODEL,) if drafts else ()
    ratios = []
    for turn in range(runs):
        for name in ("again", "count", "fruit"):
            request = ask(SHORT[name], tokens, *sources, length=3 if drafts else None)
            engine.forget(learned=False)
            prompt = engine.prompt(request)
            rates = {}
            for who in ("ours", "theirs") if turn % 2 else ("theirs", "ours"):
                if who == "ours":
                    engine.forget(learned=False)
                    rates[who] = run(engine, request)[1].tokens_per_second
                else:
                    rates[who] = their_rate(network, tokenizer, prompt, tokens, **more)
            ratios.append(rates["ours"] / rates["theirs"])
            print(f"{name:8} ours {rates['ours']:.2f}/s, theirs {rates['theirs']:.2f}/s: {ratios[-1]:.3f}", flush=True)
    print(f"median of {len(ratios)}: {statistics.median(ratios):.3f} × mlx-lm ({engine.engine})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("parity", "plain", "drafts"))
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if options.what == "parity":
        parity(options.tokens)
    else:
        speed(options.tokens, options.runs, drafts=options.what == "drafts")


if __name__ == "__main__":
    main()
