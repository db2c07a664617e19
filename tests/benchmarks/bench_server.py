r"""Forespeak's engine against llama.cpp's own server: the same commit, files, threads, prompts and filters, in turns.

    python tests/benchmarks/bench_server.py --server PATH/llama-server [--only plain|model|ngram] [--runs 3]
        [--tokens 200] [--categories code,list] [--temperatures 0,0.8] [--flash auto,off] [--json FILE]

How to build the server (its source is in the source distribution of llama-cpp-python, whose version pyproject.toml
pins; about six minutes on two cores):

    pip download --no-binary :all: --no-deps --no-build-isolation llama-cpp-python==VERSION, and unpack it
    cmake -S vendor/llama.cpp -B BUILD -G Ninja -DCMAKE_BUILD_TYPE=Release -DLLAMA_BUILD_SERVER=ON \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF
    cmake --build BUILD --target llama-server

With GCC before 14 on processors that have AMX, put -DCMAKE_C_FLAGS and -DCMAKE_CXX_FLAGS="-mno-amx-tile -mno-amx-int8
-mno-amx-bf16" in front, as packaging/llama-build does for the engine: both must be compiled alike.

What is compared. The decode rate: tokens after the first, per second after the first. The server's own
`timings.predicted_per_second` is exactly that (its n - 1 over the time from the first token's sampling to the last's),
and so is our `tokens_per_second`; the prompt counts in neither. As a check, whole-request tokens per wall-clock second:
for the server over HTTP, not streamed, which spares it the events that we always make.

Each server variant is a process of its own, since the length and type of drafts cannot be chosen by request in this
version; one slot, no prompt cache, context 4096. It is stopped (SIGSTOP) whenever it is not its turn. With `-fa`
auto (its default) and off: per category and temperature the faster of all variants is "its best". The n-gram variants
are started anew for each request, and we forget as much: what they learned of an earlier reply to the same prompt would
tell them the next one. A ratio is taken run by run; per case its median is shown with the least and greatest, over the
cases the geometric mean of the medians; and once more against the one variant that is their best over all cases, since
a server cannot change its length by case.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.pair_runs import (
    PAIR_PROMPTS,
    REWRITINGS,
    TEXT_SOURCES,
    Run,
    ask,
    filters,
    geometric_mean,
    load,
    machine,
    measure,
    ratio,
    verdict,
    warn_if_busy,
    write_json,
)
from benchmarks.relatives import relative
from benchmarks.server_process import Server
from forespeak.engines.llamacpp.engine import LlamaEngine
from forespeak.pairing.candidates import LOOKUP_SOURCES
from forespeak.speculation.trace import Source

CONTEXT = 4096
LENGTHS = (3, 6, 8, 16)
NGRAM_TYPES = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")
SHORT = 64
"""A reply of fewer tokens says little about a rate."""


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt as both sides get it: the server the tokens, so that no template or tokenizer can differ."""

    category: str
    prompt: str
    tokens: list[int]
    temperature: float


@dataclass(slots=True)
class Bench:
    """The options, the servers that are up, and what was measured: (category, temperature, contender) -> runs."""

    options: argparse.Namespace
    servers: dict[str, Server] = field(default_factory=dict)
    runs: dict[tuple[str, float, str], list[Run]] = field(default_factory=dict)

    def server(self, name: str, arguments: Iterable[str]) -> Server:
        if name not in self.servers:
            threads = str(self.options.threads)
            common = ["-m", str(relative("F32")), "-c", str(CONTEXT), "-np", "1", "-t", threads, "-tb", threads]
            common += ["--cache-ram", "0", "--no-cache-prompt", "--no-ui", "--offline"]
            self.servers[name] = Server(self.options.server, [*common, *arguments])
            self.servers[name].start()
        return self.servers[name]

    def close(self) -> None:
        while self.servers:
            self.servers.popitem()[1].stop()

    def record(self, question: Question, contender: str, run: Run) -> None:
        self.runs.setdefault((question.category, question.temperature, contender), []).append(run)
        short = "" if run.tokens >= SHORT else f"   only {run.tokens} tokens"
        acceptance = "" if run.acceptance is None else f", accepted {run.acceptance:.2f} of {run.drafted}"
        acceptance += f", {run.per_evaluation:.2f} per evaluation" if run.accepted else ""
        print(
            f"  {question.category} T={question.temperature} {contender:28} {run.rate:6.1f}/s, "
            f"whole {run.wall_rate:6.1f}/s{acceptance}{short}",
            flush=True,
        )

    def ask_server(self, question: Question, seed: int) -> dict[str, object]:
        greedy = question.temperature == 0.0
        return {
            "prompt": question.tokens,
            "n_predict": self.options.tokens,
            "temperature": question.temperature,
            # At temperature 0 the shortest chain that it has.
            "samplers": ["top_k"] if greedy else ["top_k", "top_p", "temperature"],
            "top_k": 1 if greedy else 40,
            "top_p": 0.95,
            "min_p": 0.0,
            "seed": seed,
            "cache_prompt": False,
        }

    def answer(self, contender: Contender, engine: LlamaEngine, question: Question, seed: int) -> Run:
        if contender.arguments is not None:
            return self.server(contender.name, contender.arguments).complete(self.ask_server(question, seed))
        sampling = filters(question.temperature, seed)
        return measure(engine, ask(question.prompt, self.options.tokens, sampling, contender.sources))


def questions(engine: LlamaEngine, prompts: Mapping[str, str], temperatures: list[float]) -> list[Question]:
    tokens = {category: engine.prompt(ask(prompt, 1, filters(0.0))) for category, prompt in prompts.items()}
    return [
        Question(category, prompt, tokens[category], temperature)
        for category, prompt in prompts.items()
        for temperature in temperatures
    ]


@dataclass(frozen=True, slots=True)
class Contender:
    """A server variant, or with `arguments` None our engine with Auto lengths from `sources`."""

    name: str
    arguments: tuple[str, ...] | None = None
    sources: tuple[Source, ...] = ()


def servers(bench: Bench, name: str, *arguments: str) -> list[Contender]:
    """A variant with each of the settings of flash attention."""
    return [Contender(f"server {name}, fa {flash}", (*arguments, "-fa", flash)) for flash in bench.options.flash]


def compare_models(bench: Bench, *, drafts: bool) -> None:
    """Plain decoding, and with `drafts` F32 + Q4_1: the server's fixed lengths against Auto."""
    threads = str(bench.options.threads)
    model = ["--spec-type", "draft-simple", "-md", str(relative("Q4_1")), "-td", threads, "-tbd", threads]
    contenders = [*servers(bench, "plain"), Contender("ours plain")]
    if drafts:
        auto = Contender("ours auto", sources=(Source.DRAFT_MODEL,))
        chain = Contender("ours lookup, then model", sources=(Source.PROMPT_LOOKUP, Source.DRAFT_MODEL))
        short, *longer = (servers(bench, f"n-max {n}", *model, "--spec-draft-n-max", str(n)) for n in LENGTHS)
        # Ours stand in the middle, so that a drift of the machine favours neither side.
        contenders += [*short, auto, chain, *(contender for group in longer for contender in group)]
    engine = load("F32", "Q4_1" if drafts else None, threads=bench.options.threads, context=CONTEXT)
    prompts = {category: PAIR_PROMPTS[category] for category in bench.options.categories}
    asked = questions(engine, prompts, bench.options.temperatures)
    for run in range(bench.options.runs):
        for question in asked:
            for contender in contenders if run % 2 == 0 else reversed(contenders):
                bench.record(question, contender.name, bench.answer(contender, engine, question, run))
    engine.close()
    bench.close()


def compare_ngrams(bench: Bench) -> None:
    """Model-free drafts where text is repeated: the server's types against our sources and their chain."""
    theirs = [variant for kind in NGRAM_TYPES for variant in servers(bench, kind, "--spec-type", kind)]
    ours = [Contender(f"ours {source.value}", sources=(source,)) for source in TEXT_SOURCES]
    ours.append(Contender("ours chain", sources=LOOKUP_SOURCES))
    # One of theirs, one of ours, in turn.
    contenders = [contender for pair in zip_longest(theirs, ours) for contender in pair if contender is not None]
    engine = load("F32", None, threads=bench.options.threads, context=CONTEXT)
    for run in range(bench.options.runs):
        for question in questions(engine, REWRITINGS, bench.options.temperatures):
            for contender in contenders if run % 2 == 0 else reversed(contenders):
                engine.forget()
                bench.record(question, contender.name, bench.answer(contender, engine, question, run))
                bench.close()
    engine.close()


def best(bench: Bench, category: str, temperature: float, wanted: Callable[[str], bool]) -> str:
    """The contender with the highest median rate in a case."""
    names = [name for where, heat, name in bench.runs if (where, heat) == (category, temperature) and wanted(name)]
    return max(names, key=lambda name: statistics.median(run.rate for run in bench.runs[category, temperature, name]))


def report(
    bench: Bench, title: str, our: Callable[[str], bool], their: Callable[[str], bool], least: dict[float, float]
) -> list[dict[str, object]]:
    """The ratios of our best against theirs, per case and over the cases; `least` is wanted, by temperature."""
    print(f"\n{title}")
    rows: list[dict[str, object]] = []
    for temperature in bench.options.temperatures:
        medians = []
        cases = dict.fromkeys(where for where, heat, name in bench.runs if heat == temperature and our(name))
        for category in cases:
            mine, other = (best(bench, category, temperature, wanted) for wanted in (our, their))
            a, b = (bench.runs[category, temperature, name] for name in (mine, other))
            rates, walls = (
                ratio(*([run.rate for run in runs] for runs in (a, b))),
                ratio(*([run.wall_rate for run in runs] for runs in (a, b))),
            )
            medians.append(rates.median)
            rows.append(
                {
                    "comparison": title,
                    "category": category,
                    "temperature": temperature,
                    "ours": mine,
                    "theirs": other,
                    "ratio": asdict(rates),
                    "whole_request_ratio": asdict(walls),
                    "our_acceptance": acceptance(a),
                    "their_acceptance": acceptance(b),
                    "tokens": [statistics.median(run.tokens for run in runs) for runs in (a, b)],
                }
            )
            print(
                f"  T={temperature} {category:12} {rates}, whole request {walls}; {mine} {rate_of(a)} against "
                f"{other} {rate_of(b)}"
            )
        if medians:
            mean = geometric_mean(medians)
            rows.append({"comparison": title, "temperature": temperature, "geometric_mean": mean})
            print(f"  T={temperature} over {len(medians)} cases {verdict(mean, least.get(temperature, 1.0))}")
            # A server is started with one length and type for all that it is asked.
            fixed = fixed_ratios(bench, temperature, list(cases), our, their)
            name = min(fixed, key=fixed.__getitem__)
            rows.append({"comparison": title, "temperature": temperature, "against_one_for_all": fixed})
            print(f"  T={temperature} against its best one for all cases, {name}: {fixed[name]:.3f}")
    return rows


def fixed_ratios(
    bench: Bench, temperature: float, cases: list[str], our: Callable[[str], bool], their: Callable[[str], bool]
) -> dict[str, float]:
    """For each of their contenders, the geometric mean over the cases of our best against it."""
    names = dict.fromkeys(name for _, heat, name in bench.runs if heat == temperature and their(name))
    return {
        name: geometric_mean(
            [
                ratio(
                    *(rates(bench, case, temperature, of) for of in (best(bench, case, temperature, our), name))
                ).median
                for case in cases
            ]
        )
        for name in names
    }


def rates(bench: Bench, category: str, temperature: float, name: str) -> list[float]:
    return [run.rate for run in bench.runs[category, temperature, name]]


def rate_of(runs: list[Run]) -> str:
    share = acceptance(runs)
    return f"{statistics.median(run.rate for run in runs):.1f}/s" + (
        "" if share is None else f" (accepted {share:.2f})"
    )


def acceptance(runs: list[Run]) -> float | None:
    drafted = sum(run.drafted for run in runs)
    return sum(run.accepted for run in runs) / drafted if drafted else None


def listed(text: str) -> list[str]:
    return text.split(",")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="the llama-server to compare with")
    parser.add_argument("--only", choices=["plain", "model", "ngram"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--categories", type=listed, default=list(PAIR_PROMPTS))
    parser.add_argument(
        "--temperatures", type=lambda text: [float(part) for part in text.split(",")], default=[0.0, 0.8]
    )
    parser.add_argument("--flash", type=listed, default=["auto", "off"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # A stopped server would outlive us.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(1))
    warn_if_busy()
    before = machine()
    bench = Bench(options)
    rows: list[dict[str, object]] = []
    try:
        # The model's comparison measures plain decoding too.
        if options.only in {None, "plain", "model"}:
            compare_models(bench, drafts=options.only != "plain")
            rows += report(bench, "Plain decoding", "ours plain".__eq__, lambda name: "server plain" in name, {})
            if options.only != "plain":
                lengths = {0.0: 1.35, 0.8: 1.7}
                rows += report(bench, "F32 + Q4_1", "ours auto".__eq__, lambda name: "n-max" in name, lengths)
                chained = "ours lookup, then model"
                rows += report(bench, "Prompt lookup, then Q4_1", chained.__eq__, lambda name: "n-max" in name, lengths)
                rows += report(bench, "Prompt lookup first against Q4_1 alone", chained.__eq__, "ours auto".__eq__, {})
                own = dict.fromkeys(options.temperatures, 1.35)
                rows += report(bench, "F32 + Q4_1 against our plain", "ours auto".__eq__, "ours plain".__eq__, own)
                bench.runs.clear()
        if options.only in {None, "ngram"}:
            compare_ngrams(bench)
            wanted = dict.fromkeys(options.temperatures, 1.1)
            ngrams = (
                lambda name: name.startswith("ours") and name != "ours plain",
                lambda name: "server ngram" in name,
            )
            rows += report(bench, "N-grams on a rewriting", *ngrams, wanted)
    finally:
        bench.close()
    write_json(options.json, {"machine": before, "runs": options.runs, "tokens": options.tokens, "cases": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
