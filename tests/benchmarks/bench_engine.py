"""Figures of the llama.cpp engine on the starter pair. Run alone on the machine:

uv run python tests/benchmarks/bench_engine.py parity   same seed, same words, with and without drafts
uv run python tests/benchmarks/bench_engine.py speed    plain against a bare loop, drafts against plain
uv run python tests/benchmarks/bench_engine.py turn     first token of a second turn against the first's
uv run python tests/benchmarks/bench_engine.py busy     beside one busy core
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from forespeak.engines.engine import ChatMessage, ConversionRequest, GenerationRequest, LoadRequest, LoadSettings, Role
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.models.starter import starter_draft_path
from forespeak.pairing.parity import WORST_LIMIT, explain
from forespeak.pairing.parity_words import explanation
from forespeak.speculation.events import Finished
from forespeak.speculation.sampling import Sampler
from forespeak.speculation.settings import SamplingSettings
from forespeak.speculation.trace import GenerationStats, Source, Step, text_of
from prompts import LONG_TEXT, PROMPTS

RUNS = 3
TOKENS = 160
DRAFTED: dict[str, tuple[Source, int | None]] = {
    "draft 4": (Source.DRAFT_MODEL, 4),
    "draft 8": (Source.DRAFT_MODEL, 8),
    "draft auto": (Source.DRAFT_MODEL, None),
    "lookup 4": (Source.PROMPT_LOOKUP, 4),
    "lookup auto": (Source.PROMPT_LOOKUP, None),
}


def starter_pair() -> tuple[Path, Path]:
    draft = starter_draft_path()
    assert draft is not None, "the starter extra is not installed"
    target = Path(tempfile.gettempdir()) / "forespeak-bench" / "starter-f32.gguf"
    if not target.exists():
        LlamaEngine(lambda _target, _draft: None).convert(
            ConversionRequest(draft, target), lambda _: None, lambda: False
        )
    return target, draft


def loaded(*, reproducible: bool = False) -> LlamaEngine:
    engine = LlamaEngine(lambda _target, _draft: None)
    target, draft = starter_pair()
    engine.load(LoadRequest(target, draft, LoadSettings(reproducible=reproducible)), lambda _: None, lambda: False)
    return engine


def run(engine: LlamaEngine, request: GenerationRequest) -> tuple[list[Step], GenerationStats]:
    steps: list[Step] = []
    for event in engine.generate(request, lambda: False):
        if isinstance(event, Step):
            steps.append(event)
        elif isinstance(event, Finished):
            return steps, event.stats
    raise AssertionError("the generation did not finish")


def ask(prompt: str, **settings: object) -> GenerationRequest:
    request = GenerationRequest((ChatMessage(Role.USER, prompt),), max_tokens=TOKENS)
    return replace(request, **settings)  # type: ignore[arg-type]


def ids(steps: list[Step]) -> list[int]:
    return [token.id for step in steps for token in step.emitted]


CHAIN = (Source.PROMPT_LOOKUP, Source.NGRAM_MAP_K4V, Source.DRAFT_MODEL)
WAYS: tuple[tuple[tuple[Source, ...], int | None], ...] = (
    *(((Source.DRAFT_MODEL,), length) for length in (1, 4, 8, None)),
    *(((source,), None) for source in Source if not source.uses_model),
    (CHAIN, 4),
    (CHAIN, None),
)
FAST_WAYS: tuple[tuple[tuple[Source, ...], int | None], ...] = (
    ((Source.DRAFT_MODEL,), 4),
    ((Source.DRAFT_MODEL,), None),
    (CHAIN, None),
)


def parity(names: list[str], *, fast: bool) -> None:
    """Every prompt, greedy and sampled, plain against each way of drafting. Differences are shown with their margin."""
    engine = loaded(reproducible=not fast)
    tokens, temperatures, ways = (120, (0.0, 0.8), FAST_WAYS) if fast else (40, (0.0, 0.8, 1.2), WAYS)
    equal, different = 0, 0
    for name in names:
        prompt = PROMPTS[name]
        for temperature in temperatures:
            sampling = SamplingSettings(temperature=temperature, seed=42)
            plain, _ = run(engine, ask(prompt, sampling=sampling, max_tokens=tokens))
            for sources, length in ways:
                request = ask(prompt, sampling=sampling, max_tokens=tokens, sources=sources, draft_length=length)
                steps, _ = run(engine, request)
                if ids(steps) == ids(plain) and text_of(steps) == text_of(plain):
                    equal += 1
                    continue
                different += 1
                drafted = " + ".join(source.label for source in sources) + f" {length or 'auto'}"
                assert engine._target is not None
                difference = explain(
                    engine._target, Sampler(sampling), engine.prompt(request), ids(plain), steps, WORST_LIMIT, drafted
                )
                print(f"  {name} T={temperature}: {explanation(difference)}")
        print(f"{name:12} {equal} equal, {different} different so far", flush=True)
    print(f"{'default' if fast else 'reproducible'} setting: {equal} of {equal + different} equal")


def bare_loop(engine: LlamaEngine, prompt: list[int]) -> float:
    """Tokens per second of llama_decode and an argmax, nothing else, on the engine's own context."""
    import numpy as np

    assert engine._target is not None
    context = engine._target._context
    engine._target.truncate(0)
    for start in range(0, len(prompt), context.batch):
        logits = context.decode(prompt[start : start + context.batch], start, 1)
    token, position = int(np.argmax(logits[0])), len(prompt)
    started = time.perf_counter()
    for _ in range(TOKENS - 1):
        token, position = int(np.argmax(context.decode([token], position, 1)[0])), position + 1
    elapsed = time.perf_counter() - started
    context.clear()
    return (TOKENS - 1) / elapsed


def speed(names: list[str]) -> None:
    engine = loaded()
    for name in names:
        print(f"-- {name}")
        speed_of(engine, PROMPTS[name])


def speed_of(engine: LlamaEngine, prompt: str) -> None:
    assert engine._target is not None
    tokens = engine._target.vocabulary.tokenize(f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n")
    for temperature in (0.0, 0.8):
        sampling = SamplingSettings(temperature=temperature, seed=3)
        rates: dict[str, list[float]] = {name: [] for name in ("bare", "plain", *DRAFTED)}
        for _ in range(RUNS):
            rates["bare"].append(bare_loop(engine, tokens))
            for name, sources, length in (
                ("plain", (), 0),
                *((name, (source,), length) for name, (source, length) in DRAFTED.items()),
            ):
                _, stats = run(engine, ask(prompt, sampling=sampling, sources=sources, draft_length=length))
                rates[name].append(stats.tokens_per_second)
        medians = {name: statistics.median(values) for name, values in rates.items()}
        pairs = {
            "plain / bare": statistics.median(p / b for p, b in zip(rates["plain"], rates["bare"], strict=True)),
            **{
                f"{name} / plain": statistics.median(d / p for d, p in zip(rates[name], rates["plain"], strict=True))
                for name in DRAFTED
            },
        }
        print(f"T = {temperature}: " + ", ".join(f"{name} {rate:.1f}/s" for name, rate in medians.items()))
        print("   " + ", ".join(f"{name} {ratio:.3f}" for name, ratio in pairs.items()), flush=True)


def turn() -> None:
    engine = loaded()
    ratios = []
    for run_number in range(RUNS):
        engine.forget()
        sampling = SamplingSettings(temperature=0.8, seed=run_number)
        history = (ChatMessage(Role.USER, LONG_TEXT[:5200]),)
        request = GenerationRequest(history, (Source.DRAFT_MODEL,), sampling, max_tokens=60)
        steps, first = run(engine, request)
        follow = (
            *history,
            ChatMessage(Role.ASSISTANT, text_of(steps)),
            ChatMessage(Role.USER, "And which one lent most?"),
        )
        _, second = run(engine, replace(request, messages=follow))
        ratios.append(second.time_to_first_token_seconds / first.time_to_first_token_seconds)
        print(
            f"first {first.time_to_first_token_seconds:.3f} s for {first.prompt_tokens} tokens, second "
            f"{second.time_to_first_token_seconds:.3f} s ({second.reused_prompt_tokens} of {second.prompt_tokens} kept)"
        )
    print(f"second / first: median {statistics.median(ratios):.3f}, worst {max(ratios):.3f}")


def _spin() -> None:
    while True:
        pass


def busy() -> None:
    engine = loaded()
    request = ask(PROMPTS["explain"], sampling=SamplingSettings(temperature=0.0), max_tokens=60)
    ratios = []
    for _ in range(10):
        _, idle = run(engine, request)
        spinner = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
        spinner.start()
        time.sleep(0.5)
        _, loaded_stats = run(engine, request)
        spinner.kill()
        spinner.join()
        ratios.append(loaded_stats.tokens_per_second / idle.tokens_per_second)
        print(
            f"idle {idle.tokens_per_second:.1f}/s, beside a busy core {loaded_stats.tokens_per_second:.1f}/s",
            flush=True,
        )
    print(f"busy / idle: worst {min(ratios):.2f}, median {statistics.median(ratios):.2f}; {os.cpu_count()} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["parity", "speed", "turn", "busy"])
    parser.add_argument("--fast", action="store_true", help="parity in the default setting instead of the reproducible")
    parser.add_argument(
        "--prompts", nargs="+", choices=list(PROMPTS), metavar="NAME", help="parity: all 20; speed: three"
    )
    arguments = parser.parse_args()
    if arguments.what == "parity":
        parity(arguments.prompts or list(PROMPTS), fast=arguments.fast)
    elif arguments.what == "speed":
        speed(arguments.prompts or ["explain", "code", "list"])
    else:
        {"turn": turn, "busy": busy}[arguments.what]()


if __name__ == "__main__":
    main()
