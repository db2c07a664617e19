"""A comparison of lanes as JSON and CSV: the record of `report`, and what was planned and found, lane by lane.

`resources/schemas/comparison.schema.json` describes it. Beside the fields of `forespeak.compare.report` there are

    id, name        as the comparison is kept; `id` null if it is not
    plan            all settings, as `forespeak compare --plan` and `--repeat` read them; files by their names
    models          per file of the plan: file, size_bytes, quantisation, name, and parts with their SHA-256
    headline, notes the whole in one sentence, and what a reader must know to judge it
    lanes           per lane: name, base (the lane it is compared with), problem, overall and categories (figures, ratio
                    and verdict: kind, reason, words, advice), and differences: where words part from those of the base

The words of private prompts and of their replies are null unless they are asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forespeak.compare.lane_results import ComparisonResult, LaneCell, LaneResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.model_files import model_paths
from forespeak.compare.plan_record import plan_record
from forespeak.compare.report import (
    csv_of,
    estimate_record,
    figures_record,
    head_record,
    json_words,
    pair_files,
    run_figures,
    summary_record,
)
from forespeak.compare.runner import Run
from forespeak.compare.statistics import summarise

Json = dict[str, Any]


def report_json(
    result: ComparisonResult,
    models: Sequence[Mapping[str, Any]],
    *,
    private: bool = False,
    comparison_id: str | None = None,
    name: str = "",
) -> str:
    """`models` are those of `model_files.model_records`. `private`: with the words of private prompts."""
    plan, results = result.plan, result.results
    record = head_record(results, [pair_files(pair.target, pair.draft) for pair in results.comparison.pairs])
    for plain, prompt in zip(record["prompts"], plan.prompts, strict=True):
        plain["text"] = prompt.text if private or not prompt.private else None
    fields = record | {
        "id": comparison_id,
        "name": name,
        "plan": plan_record(plan, folders=False, private=private),
        "models": list(models),
        "headline": result.headline,
        "notes": result.notes,
        "lanes": [_lane_record(lane, private) for lane in result.lanes],
        "summary": summary_record(summarise(results)),
    }
    texts = {key: json_words(value) for key, value in _discreet(fields, plan).items()}
    lanes = plan.lanes_by_place
    runs = [
        json_words(_discreet(_run_record(lanes[run.task.where], run, private), plan, deep=False))
        for run in results.runs
    ]
    texts["runs"] = "[\n  " + ",\n  ".join(runs) + "\n ]" if runs else "[]"
    return "{\n" + ",\n".join(f' "{key}": {text}' for key, text in texts.items()) + "\n}\n"


def report_csv(result: ComparisonResult) -> str:
    """One line per run, without any words but names and failures."""
    plan, lanes = result.plan, result.plan.lanes_by_place
    runs = [
        run if run.failure is None else replace(run, failure=without_folders(run.failure, plan))
        for run in result.results.runs
    ]
    return csv_of(replace(result.results, runs=runs), lambda run: lanes[run.task.where].name)


_ERRORS = {"failure", "failures", "notes", "notices", "problem"}
"""The fields in which errors stand. All others stay to the letter: a plan is repeated with the words it has."""


def _discreet(value: Any, plan: Plan, *, deep: bool = True) -> Any:  # noqa: ANN401 -- JSON values
    """`without_folders` for the errors in a record, those of its parts too if `deep`."""
    if isinstance(value, dict):
        return {
            key: _every_text(each, plan) if key in _ERRORS else _discreet(each, plan) if deep else each
            for key, each in value.items()
        }
    return [_discreet(each, plan) for each in value] if isinstance(value, list | tuple) else value


def _every_text(value: Any, plan: Plan) -> Any:  # noqa: ANN401 -- JSON values
    if isinstance(value, list | tuple):
        return [_every_text(each, plan) for each in value]
    return without_folders(value, plan) if isinstance(value, str) else value


def without_folders(text: str, plan: Plan) -> str:
    """An error without the folders of the models, which it may name: they are the user's own affair."""
    for path in model_paths(plan):
        for folder in {str(path.parent), str(Path(path.parent).absolute())} - {".", os.sep}:
            # Whole names only: what is in /models is not in /models-of-others.
            named = rf"(?<![\w.\-/\\]){re.escape(folder)}"
            text = re.sub(rf"{named}{re.escape(os.sep)}", "", text)
            text = re.sub(rf"{named}(?![\w\-])", "…", text)
    return text


def _run_record(lane: Lane, run: Run, private: bool) -> Json:
    shown = private or not run.task.prompt.private
    return {"lane": lane.name, **run_figures(run), "text": run.text if shown else None}


def _lane_record(result: LaneResult, private: bool) -> Json:
    return {
        "name": result.lane.name,
        "base": result.base.name if result.base else None,
        "problem": result.problem,
        "overall": _cell_record(result.overall),
        "categories": [_cell_record(cell) for cell in result.cells],
        "differences": [
            {
                "category": difference.run.task.prompt.category,
                "prompt": difference.run.task.prompt.name,
                "repetition": difference.run.task.repetition,
                "at": difference.at,
                "base_text": difference.base_text if shown else None,
                "text": difference.text if shown else None,
                "looks_like_tie": difference.looks_like_tie,
                "words": difference.words,
            }
            for difference in result.differences
            for shown in (private or not difference.run.task.prompt.private,)
        ],
    }


def _cell_record(cell: LaneCell) -> Json:
    verdict = cell.verdict
    return {
        "category": cell.category,
        "ratio": estimate_record(cell.ratio),
        "verdict": {
            "kind": verdict.kind,
            "reason": verdict.reason,
            "words": verdict.words,
            "advice": verdict.advice,
        },
        "figures": {key: value for key, value in figures_record(cell.figures).items() if key != "ratio"},
    }
