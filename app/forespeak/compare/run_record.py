"""A run, and what was loaded for it, as JSON values, and back: the lines of a journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forespeak.compare.lanes import Plan
from forespeak.compare.machine import MachineNotes
from forespeak.compare.plan import Task
from forespeak.compare.recording import from_plain, to_plain
from forespeak.compare.runner import Run, figures_of
from forespeak.engines.engine import Loaded, ModelSummary
from forespeak.engines.load_record import placement_from, placement_record
from forespeak.speculation.json_values import stats_from
from forespeak.speculation.trace import FinishReason, GenerationStats, text_of

Json = dict[str, Any]


def run_record(plan: Plan, run: Run) -> Json:
    """Text and tokens are in the steps, and where words differ is found again from them."""
    task = run.task
    lanes = plan.all_lanes
    return {
        "lane": lanes.index(plan.lane_at(task.where)),
        "pair": task.pair,
        "prompt": plan.prompts.index(task.prompt),
        "repetition": task.repetition,
        "place": task.place,
        "seed": run.seed,
        "began": round(run.began, 6),
        "seconds": round(run.seconds, 6),
        "others_cores": round(run.others_cores, 3),
        "chatted": run.chatted,
        "failure": run.failure,
        "finish": run.finish.value if run.finish else None,
        "notices": list(run.notices),
        "stats": None if run.failure is not None else asdict(run.stats),
        "steps": to_plain(run.recording),
    }


def run_from(plan: Plan, record: Mapping[str, Any]) -> Run:
    """What `run_record` made. For anything else, raises one of the errors that foreign JSON values raise."""
    lane, pair = plan.all_lanes[record["lane"]], record["pair"]
    place = next(place for place in plan.places[lane] if place[0] == pair)
    recording = from_plain(record["steps"])
    steps = [recorded.step for recorded in recording]
    return Run(
        task=Task(
            *place[:1], plan.prompts[record["prompt"]], place[1], place[2], record["repetition"], record["place"]
        ),
        seed=record["seed"],
        began=record["began"],
        seconds=record["seconds"],
        others_cores=record["others_cores"],
        chatted=record.get("chatted", False),
        failure=record["failure"],
        finish=FinishReason(record["finish"]) if record["finish"] else None,
        text=text_of(steps),
        token_ids=tuple(token.id for step in steps for token in step.emitted),
        steps=tuple(map(figures_of, steps)),
        stats=stats_from(record["stats"]) if record["stats"] else GenerationStats(),
        notices=tuple(record["notices"]),
        recording=recording,
    )


def loaded_record(loaded: Loaded) -> Json:
    record = asdict(loaded)
    for model in (record["target"], record["draft"]):
        if model is not None:
            model["path"] = str(model["path"])
    for name in ("placement", "draft_placement"):
        record[name] = placement_record(getattr(loaded, name))
    return record


def loaded_from(record: Mapping[str, Any]) -> Loaded:
    values = dict(record)
    for name in ("target", "draft"):
        model = values[name]
        values[name] = None if model is None else ModelSummary(**{**model, "path": Path(model["path"])})
    for name in ("placement", "draft_placement"):
        values[name] = placement_from(values.get(name))
    values["devices"] = tuple(values["devices"])
    return Loaded(**values)


def machine_record(machine: MachineNotes) -> Json:
    return asdict(machine) | {"versions": dict(machine.versions)}


def machine_from(record: Mapping[str, Any]) -> MachineNotes:
    one, five, fifteen = record["load"]
    values = {**record, "load": (one, five, fifteen), "versions": tuple(record["versions"].items())}
    return MachineNotes(**values)
