"""The files of a comparison: their fields are promised to others."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from compare.timed_engine import AUTO, DRAFT, TARGET, TimedEngine, comparison, measured
from forespeak.compare import report
from forespeak.compare.plan import Pair
from forespeak.compare.report import CSV_FIELDS, SCHEMA, VERSION, Record, file_record, write_file
from forespeak.compare.runner import Happening, Results, Runner, Visited
from forespeak.engines.engine import LoadSettings
from forespeak.errors import UserFacingError
from models.gguf_writer import ModelFile
from models.library_folders import write_mlx


def written(results: Results) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Record(results).json_text())
    return found


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return written(measured(TimedEngine(fails=lambda request: "No." if request.draft_length == 4 else None)))


RUN = {
    *("pair", "category", "prompt", "temperature", "way", "repetition", "place", "seed", "began", "seconds"),
    *(
        "others_cores",
        "chatted",
        "failure",
        "finish_reason",
        "identical",
        "differs_at",
        "text",
        "notices",
        "stats",
        "steps",
    ),
}
FIGURES = {
    *("runs", "failures", "tokens", "rate", "ratio", "whole_ratio", "first_token", "first_token_ratio", "prompt_rate"),
    *("acceptance_rate", "mean_acceptance_length", "acceptance_by_position", "draft_time_share", "gaps"),
    *("peak_memory_bytes", "identical", "compared", "first_difference"),
}
MACHINE = {"system", "processor", "cores", "logical_cores", "memory_bytes", "load", "versions"}


def test_the_schema(record: dict[str, Any]) -> None:
    assert (record["schema"], record["version"], record["complete"]) == (SCHEMA, VERSION, True)
    assert set(record["machine"]) == MACHINE
    assert {"forespeak", "python"} <= set(record["machine"]["versions"])
    assert set(record["settings"]) == {
        *("tokens", "runs", "temperatures", "sampling", "rule", "start", "warm_up"),
        *(each.name for each in fields(LoadSettings)),
    }
    assert record["settings"]["rule"] == "coupled"
    assert record["settings"]["sampling"]["top_k"] == 40
    assert [way["name"] for way in record["ways"]] == ["plain", "draft-model auto", "draft-model 4"]
    assert record["ways"][1] == {"name": "draft-model auto", "sources": ["draft-model"], "draft_length": None}
    assert {"category": "code", "name": "code 0", "text": "Write code 0."} in record["prompts"]
    for run in record["runs"]:
        assert set(run) == RUN
    summary = record["summary"]
    assert set(summary) == {"cells", "totals", "overall", "auto_against_best_fixed"}
    for cell in summary["cells"]:
        assert set(cell) == {"pair", "temperature", "category", "way"} | FIGURES
    for total in summary["totals"]:
        assert set(total) == {"pair", "temperature", "way", "worst_category", "worst_ratio"} | FIGURES


def test_every_field_is_documented() -> None:
    for name in RUN | MACHINE:
        assert name in (report.__doc__ or "")


def test_raw_figures_of_runs(record: dict[str, Any]) -> None:
    auto = next(run for run in record["runs"] if run["way"] == "draft-model auto")
    assert auto["stats"]["tokens_per_second"] == pytest.approx(20.0)
    assert auto["steps"][:2] == [[1, 0, 0, 0.0, 0.05], [2, 2, 1, 0.025, 0.075]]
    assert auto["identical"] is True
    failed = next(run for run in record["runs"] if run["way"] == "draft-model 4")
    assert (failed["failure"], failed["stats"], failed["steps"]) == ("No.", None, [])


def test_estimates(record: dict[str, Any]) -> None:
    cell = next(cell for cell in record["summary"]["cells"] if cell["way"] == "draft-model auto")
    assert cell["ratio"] == {
        "value": pytest.approx(2.0),
        "count": 2,
        "low": pytest.approx(2.0),
        "high": pytest.approx(2.0),
        "coverage": 0.5,
    }
    assert set(cell["gaps"]) == {"p50", "p95", "p99"}


def test_models_are_named_without_their_folders(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    model = ModelFile(["a", "b", "ab", "c"]).write(tmp_path / "private" / "big.gguf")
    record = written(measured(pairs=(Pair(model, DRAFT),)))
    target = record["pairs"][0]["target"]
    assert target["file"] == "big.gguf"
    assert target["size_bytes"] == model.stat().st_size
    assert target["quantisation"]
    assert record["pairs"][0]["draft"]["size_bytes"] is None
    assert str(tmp_path) not in json.dumps(record)


def test_a_folder_is_a_model_too(tmp_path: Path) -> None:
    folder = write_mlx(tmp_path / "private" / "mlx")
    record = file_record(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert record == {"file": "mlx", "size_bytes": size, "quantisation": "4-bit", "name": "mlx"}
    (folder / "config.json").write_text("nonsense")
    assert file_record(folder)["size_bytes"] is None


def test_problems_are_kept() -> None:
    pairs = (Pair(Path("broken.gguf"), DRAFT), Pair(TARGET, DRAFT))
    record = written(measured(TimedEngine(refuses=frozenset({"broken"})), pairs=pairs, runs=1))
    assert "It is broken." in record["pairs"][0]["problem"]
    assert record["pairs"][1]["problem"] is None


def test_it_is_whole_after_each_visit() -> None:
    engine, texts = TimedEngine(), list[str]()
    record: Record

    def listen(happening: Happening) -> None:
        if isinstance(happening, Visited):
            texts.append(record.json_text())

    runner = Runner(comparison(), engine, listen, lambda: False, clock=engine.clock, others=lambda: 0.0)
    record = Record(runner.results)
    assert json.loads(record.json_text())["runs"] == []
    runner.run()
    assert [len(json.loads(text)["runs"]) for text in texts] == [3, 6, 9, 12]
    assert [json.loads(text)["complete"] for text in texts] == [False] * 4
    assert json.loads(record.json_text())["complete"] is True


def rows(results: Results) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(Record(results).csv_text()))


def test_a_line_per_run() -> None:
    results = measured(TimedEngine(fails=lambda request: "No, never." if request.draft_length == 4 else None))
    found = list(rows(results))
    assert tuple(found[0]) == CSV_FIELDS
    assert len(found) == len(results.runs)
    auto = next(row for row in found if row["way"] == AUTO.name)
    assert float(auto["ratio_to_plain"]) == pytest.approx(2.0)
    assert float(auto["tokens_per_second"]) == pytest.approx(20.0)
    assert auto["pair"] == "big + small"
    assert auto["identical"] == "True"
    failed = next(row for row in found if row["failure"])
    assert (failed["failure"], failed["tokens_per_second"], failed["ratio_to_plain"]) == ("No, never.", "", "")


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("old", encoding="utf-8")
    write_file(path, "neu ×\n")
    assert path.read_bytes() == "neu ×\n".encode()
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UserFacingError, match="could not be written"):
        write_file(tmp_path / "no such folder" / "results.json", "x")
