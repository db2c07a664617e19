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
from collections.abc import Mapping, Sequence
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
    texts = {key: json_words(value) for key, value in fields.items()}
    lanes = plan.lanes_by_place
    runs = [json_words(_run_record(lanes[run.task.where], run, private)) for run in results.runs]
    texts["runs"] = "[\n  " + ",\n  ".join(runs) + "\n ]" if runs else "[]"
    return without_folders("{\n" + ",\n".join(f' "{key}": {text}' for key, text in texts.items()) + "\n}\n", plan)


def report_csv(result: ComparisonResult) -> str:
    """One line per run, without any words but names and failures."""
    lanes = result.plan.lanes_by_place
    return without_folders(csv_of(result.results, lambda run: lanes[run.task.where].name), result.plan)


def without_folders(text: str, plan: Plan) -> str:
    """Without the folders of the models, which errors name: they are the user's own affair."""
    for path in model_paths(plan):
        for folder in {str(path.parent), str(Path(path.parent).absolute())} - {".", os.sep}:
            for spelled in (folder, folder.replace("\\", "\\\\")):
                text = text.replace(spelled + os.sep, "").replace(spelled, "…")
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
