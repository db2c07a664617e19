"""A comparison as files: JSON with every run's raw figures, and a CSV table of the runs.

The JSON is one object. Times are seconds, sizes bytes, rates tokens per second; what is unknown is null.

    schema          "forespeak-comparison"; `version` is raised whenever a field changes its meaning or goes
    version         1
    began_at        ISO 8601, UTC
    complete        false: stopped early, or not yet at its end
    machine         system, processor, cores, logical_cores, memory_bytes, load (1, 5, 15 minutes), versions
    settings        tokens, runs, temperatures, sampling (every SamplingSettings field but temperature; `seed` is the
                    first repetition's, each later one adds 1), rule, start (cold, fresh, warm), warm_up, reproducible,
                    context_length, threads, gpu_layers, draft_gpu_layers, device, draft_device, split, cache_type,
                    flash_attention
    pairs           per pair: target and draft (file, size_bytes, quantisation, name; no folders), devices, threads,
                    problem (why it could not be measured)
    ways            per way: name, sources, draft_length (null: auto); `plain` is the target alone
    prompts         per prompt: category, name, text
    runs            per run: pair (index), category, prompt, temperature, way, repetition, place (in its visit), seed,
                    began (since began_at), seconds (of the whole run), others_cores (used by other programs
                    meanwhile), chatted (this program's own chat computed meanwhile), failure, finish_reason, identical
                    (to plain), differs_at (token, from 0), text, notices, stats (fields of GenerationStats) and steps:
                    [emitted, tested, accepted, draft seconds, target seconds] each, the first one being the prompt's
                    evaluation
    summary         cells (one way in one category of one pair at one temperature), totals (over the categories),
                    overall (over everything) and auto_against_best_fixed; estimates are {value, count, low, high,
                    coverage}, in which the last three are null where there are too few values. The figures are
                    described in `forespeak.compare.statistics`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

from forespeak.compare.plan import PLAIN, Way
from forespeak.compare.runner import Results, Run, visit_of
from forespeak.compare.statistics import Estimate, Figures, Summary, plain_runs, summarise
from forespeak.engines.load_record import load_record
from forespeak.errors import UserFacingError
from forespeak.models.gguf import GgufError, read_header
from forespeak.models.mlx_folder import read_mlx_facts
from forespeak.models.on_disk import size_and_time
from forespeak.speculation.json_values import sampling_record
from forespeak.whole_file import write_whole

SCHEMA, VERSION = "forespeak-comparison", 1

CSV_FIELDS = (
    "pair",
    "category",
    "prompt",
    "temperature",
    "way",
    "repetition",
    "place",
    "seed",
    "tokens_per_second",
    "ratio_to_plain",
    "generated_tokens",
    "decode_seconds",
    "time_to_first_token_seconds",
    "prompt_tokens",
    "prompt_tokens_per_second",
    "acceptance_rate",
    "mean_acceptance_length",
    "draft_time_share",
    "peak_memory_bytes",
    "others_cores",
    "chatted",
    "identical",
    "differs_at",
    "finish_reason",
    "failure",
)


class Record:
    """The JSON and the CSV of a comparison that may still be going on: each run is put into text only once."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._run_texts: list[str] = []
        self._files = [pair_files(pair.target, pair.draft) for pair in results.comparison.pairs]

    def json_text(self) -> str:
        results = self._results
        self._run_texts += [json_words(run_figures(run)) for run in results.runs[len(self._run_texts) :]]
        fields = {name: json_words(value) for name, value in head_record(results, self._files).items()}
        fields["runs"] = "[\n  " + ",\n  ".join(self._run_texts) + "\n ]" if self._run_texts else "[]"
        fields["summary"] = json_words(summary_record(summarise(results)))
        return "{\n" + ",\n".join(f' "{name}": {text}' for name, text in fields.items()) + "\n}\n"

    def csv_text(self) -> str:
        """One line per run, with the ratio to plain in the same visit."""
        return csv_of(self._results)


def csv_of(results: Results, lane_of: Callable[[Run], str] | None = None) -> str:
    """One line per run, with the ratio to plain in the same visit; `lane_of` adds a column in front."""
    plain = plain_runs(results)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(["lane"] if lane_of else []), *CSV_FIELDS])
    for run in results.runs:
        base = plain.get(visit_of(run))
        stats = {name: getattr(run.stats, name) for name in CSV_FIELDS if hasattr(run.stats, name)}
        values = run_figures(run) | (stats if run.failure is None else {})
        values["pair"] = results.comparison.pairs[run.task.pair].name
        values["ratio_to_plain"] = run.rate / base.rate if run.rate and base and base.rate else None
        cells = [*([lane_of(run)] if lane_of else []), *(values.get(name) for name in CSV_FIELDS)]
        writer.writerow(map(_no_formula, cells))
    return out.getvalue()


def _no_formula(value: object) -> object:
    """A text that a spreadsheet would compute gets an apostrophe in front, which it takes for the sign of a text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def head_record(results: Results, files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All but the runs and what they say; `files` are those of the pairs, by `pair_files`."""
    comparison = results.comparison
    sampling = sampling_record(comparison.sampling)
    del sampling["temperature"]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "began_at": results.began_at.isoformat(timespec="seconds"),
        "complete": results.complete,
        "machine": asdict(results.machine) | {"versions": dict(results.machine.versions)},
        "settings": {
            "tokens": comparison.tokens,
            "runs": comparison.runs,
            "temperatures": comparison.temperatures,
            "sampling": sampling,
            "rule": comparison.rule,
            "start": comparison.start,
            "warm_up": comparison.warm_up,
            **load_record(comparison.load_settings),
        },
        "pairs": [_pair_record(results, pair, record) for pair, record in enumerate(files)],
        "ways": [
            {"name": way.name, "sources": way.sources, "draft_length": way.draft_length}
            for way in (PLAIN, *comparison.ways)
        ],
        "prompts": [
            {"category": prompt.category, "name": prompt.name, "text": prompt.text} for prompt in comparison.prompts
        ],
    }


def _pair_record(results: Results, pair: int, files: dict[str, Any]) -> dict[str, Any]:
    loaded = results.loaded.get(pair)
    return files | {
        "devices": loaded.devices if loaded else None,
        "threads": loaded.threads if loaded else None,
        "problem": results.problems.get(pair) or (loaded.draft_problem if loaded else None),
    }


def write_file(path: Path, text: str, *, for_spreadsheets: bool = False) -> None:
    """Put `text` in the place of the file at once, so that what is there is always whole. Raises UserFacingError.

    `for_spreadsheets`: with a byte order mark, without which those on Windows take UTF-8 for the system's own code.
    """
    try:
        write_whole(path, text.encode("utf-8-sig") if for_spreadsheets else text)
    except OSError as error:
        raise UserFacingError(
            f"The results could not be written to {path}.",
            f"The system says: {error.strerror or error}.",
            "Check that the folder is there, may be written to, and has room.",
        ) from error


def pair_files(target: Path, draft: Path | None) -> dict[str, Any]:
    """What the files of a pair are; folders are the user's own affair."""
    return {"target": file_record(target), "draft": None if draft is None else file_record(draft)}


def file_record(path: Path) -> dict[str, Any]:
    """What a model's file is, without its folder."""
    unknown = {"file": path.name, "size_bytes": None, "quantisation": None, "name": None}
    try:
        if path.is_dir():
            facts = read_mlx_facts(path, {each.name for each in path.iterdir()})
            if facts is None:
                return unknown
            return unknown | {"size_bytes": size_and_time(path)[0], "quantisation": facts.label, "name": path.name}
        header = read_header(path)
    except (GgufError, OSError):
        return unknown
    return {
        "file": path.name,
        "size_bytes": header.size_bytes,
        "quantisation": header.quantisation,
        "name": header.name,
    }


def run_figures(run: Run) -> dict[str, Any]:
    """A run with all its figures, its recording aside."""
    task = run.task
    return {
        "pair": task.pair,
        "category": task.prompt.category,
        "prompt": task.prompt.name,
        "temperature": task.temperature,
        "way": task.way.name,
        "repetition": task.repetition,
        "place": task.place,
        "seed": run.seed,
        "began": run.began,
        "seconds": run.seconds,
        "others_cores": run.others_cores,
        "chatted": run.chatted,
        "failure": run.failure,
        "finish_reason": run.finish.value if run.finish else None,
        "identical": run.identical,
        "differs_at": run.differs_at,
        "text": run.text,
        "notices": run.notices,
        "stats": None if run.failure is not None else asdict(run.stats),
        "steps": [
            [step.emitted, step.tested, step.accepted, round(step.draft_seconds, 6), round(step.target_seconds, 6)]
            for step in run.steps
        ],
    }


def summary_record(summary: Summary) -> dict[str, Any]:
    """What the runs say together."""
    return {
        "cells": [
            {"pair": cell.pair, "temperature": cell.temperature, "category": cell.category, "way": cell.way.name}
            | figures_record(cell.figures)
            for cell in summary.cells
        ],
        "totals": [
            {"pair": total.pair, "temperature": total.temperature, "way": total.way.name}
            | figures_record(total.figures)
            | {
                "ratio": estimate_record(total.ratio),
                "worst_category": total.worst.category if total.worst else None,
                "worst_ratio": estimate_record(total.worst.figures.ratio if total.worst else None),
            }
            for total in summary.totals
        ],
        "overall": [{"way": way.name, "ratio": estimate_record(estimate)} for way, estimate in summary.overall],
        "auto_against_best_fixed": [
            {"way": against.auto.name, "ratio": estimate_record(against.ratio), "worst": against.worst}
            for against in summary.against_fixed
        ],
    }


def figures_record(figures: Figures) -> dict[str, Any]:
    """By the names of their fields; the gaps by their percentiles."""
    record = asdict(figures)
    gaps = figures.gaps or (None, None, None)
    return record | {
        "rate": estimate_record(figures.rate),
        "ratio": estimate_record(figures.ratio),
        "gaps": dict(zip(("p50", "p95", "p99"), gaps, strict=True)),
    }


def estimate_record(estimate: Estimate | None) -> dict[str, Any] | None:
    """{value, count, low, high, coverage}."""
    if estimate is None:
        return None
    interval = estimate.interval
    return {
        "value": estimate.value,
        "count": estimate.count,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "coverage": interval.coverage if interval else None,
    }


def json_words(value: object) -> str:
    """A part of a record as JSON: enumerations by their values, files by their names, ways by theirs."""
    return json.dumps(value, ensure_ascii=False, default=_plainly, allow_nan=False)


def _plainly(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return value.name
    if isinstance(value, Way):
        return value.name
    raise TypeError(f"{type(value).__name__} has no place in a record")
