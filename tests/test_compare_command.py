"""`forespeak compare`: its arguments, its outputs, what stops it, resuming, repeating and the list."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from compare.timed_engine import TimedEngine
from forespeak import cli
from forespeak.compare.lanes import Lane
from forespeak.compare_arguments import lane_of
from forespeak.engines.engine import GenerationRequest, LoadSettings, Start
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Source
from json_schema import faults
from models.gguf_writer import ModelFile

WORDS: list[str | bytes] = ["a", "b", "ab", "c"]
SMALL = ("--tokens", "9", "--repeats", "2", "--suite", "qa", "--each", "1", "--no-warm-up")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FORESPEAK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> TimedEngine:
    engine = TimedEngine()
    monkeypatch.setattr(cli, "_engine", lambda: engine)
    return engine


@pytest.fixture
def target(home: Path) -> str:
    folder = home / "models"
    folder.mkdir(parents=True)
    return str(ModelFile(WORDS).write(folder / "big.gguf"))


@pytest.fixture
def draft(home: Path, target: str) -> str:
    return str(ModelFile(WORDS).write(home / "models" / "small.gguf"))


def compare(*arguments: str) -> int:
    return cli.run(["compare", *arguments])


def stop_at(engine: TimedEngine, number: int) -> Callable[[GenerationRequest], str | None]:
    def fails(_: GenerationRequest) -> str | None:
        if len(engine.requests) == number:
            signal.raise_signal(signal.SIGINT)
        return None

    return fails


class TestLanes:
    def lane(self, text: str) -> Lane:
        kept = Lane("My pair", (Source.DRAFT_MODEL,), Path("kept.gguf"), 5, pair_id="1")
        return lane_of(text, Path, lambda name: kept if name == "My pair" else None)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("off", Lane("Off")),
            ("off,temperature=0.8", Lane("Off, temperature 0.8", temperature=0.8)),
            ("a/small.gguf", Lane("small", (Source.DRAFT_MODEL,), Path("a/small.gguf"))),
            ("a,b.gguf,length=4", Lane("a,b, 4 tokens", (Source.DRAFT_MODEL,), Path("a,b.gguf"), 4)),
            ("prompt-lookup,length=auto", Lane("prompt lookup", (Source.PROMPT_LOOKUP,))),
            (
                "ngram-mod+draft-model,draft=small.gguf,name=both",
                Lane("both", (Source.NGRAM_MOD, Source.DRAFT_MODEL), Path("small.gguf")),
            ),
            ("My pair", Lane("My pair", (Source.DRAFT_MODEL,), Path("kept.gguf"), 5, pair_id="1")),
        ],
    )
    def test_what_they_mean(self, text: str, expected: Lane) -> None:
        assert self.lane(text) == expected

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("draft-model", "needs draft=FILE"),
            ("prompt-lookup,draft=small.gguf", "needs draft=FILE"),
            ("small.gguf,length=0", "from 1 to"),
            ("small.gguf,length=many", "from 1 to"),
            ("off,temperature=-1", "its temperature"[1:]),
            ("off,draft=small.gguf", "or it has none"),
            ("draft-model+ngram-mod,draft=small.gguf", "would ever be asked"),
            ("ngram-mod+ngram-mod", "twice"),
        ],
    )
    def test_what_makes_no_sense(self, text: str, words: str) -> None:
        with pytest.raises(UserFacingError, match=words):
            self.lane(text)


def test_settings_reach_the_engine(engine: TimedEngine, target: str, draft: str) -> None:
    code = compare(
        *("--target", target, "--lane", draft, "--lane", f"{draft},length=4,temperature=0.5", "--prompt", "Mine."),
        *("--repeats", "2", "--tokens", "9", "--seed", "7", "--rule", "rejection", "--fresh", "--no-warm-up"),
        *("--context", "99", "--threads", "3", "--reproducible"),
    )
    assert code == 0
    assert engine.loads[-1].settings.context_length == 99
    assert (engine.loads[-1].settings.threads, engine.loads[-1].settings.reproducible) == (3, True)
    # The first one tells how long it will take.
    requests = engine.requests[1:]
    assert len(requests) == 2 * (2 + 2)
    assert {request.sampling.temperature for request in requests} == {0.0, 0.5}
    assert {request.sampling.seed for request in requests} == {7, 8}
    assert {request.start for request in requests} == {Start.FRESH}
    assert {request.rule.value for request in requests} == {"rejection"}
    assert {request.messages[0].content for request in requests} == {"Mine."}


def test_models_are_named_as_the_library_lists_them(
    engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--target", "big", "--lane", "SMALL,length=4", *SMALL) == 0
    assert {(load.target, load.draft) for load in engine.loads} == {(Path(target), Path(draft))}
    assert "small, 4 tokens" in capsys.readouterr().out
    assert compare("--target", target, "--lane", "prompt-lokup", *SMALL) == 2
    assert "no model called “prompt-lokup”" in capsys.readouterr().err


def test_the_table_is_on_stdout_and_the_time_beside_it(
    engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--target", target, "--lane", draft, *SMALL) == 0
    printed = capsys.readouterr()
    assert "small is 2.00 times as fast as the target alone." in printed.out
    assert "Faster in all 2 runs, 2.00×" in printed.out
    assert max(map(len, printed.out.splitlines())) <= 100
    assert "This will take less than a minute." in printed.err
    assert "Repeat 2 of 2" in printed.err
    assert engine.closed


def report_of(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def schema() -> Any:
    path = Path(__file__).resolve().parent.parent / "resources" / "schemas" / "comparison.schema.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_reports_of_all_kinds(
    engine: TimedEngine, target: str, draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / f"report.{kind}") for kind in ("json", "md", "csv", "html")]
    words = "My secret question."
    assert compare("--target", target, "--lane", draft, *SMALL, "--prompt", words, "--report", *files, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    record = report_of(tmp_path / "report.json")
    assert printed == record
    assert faults(record, schema()) == []
    assert len(record["runs"]) == 2 * 2 * 2
    assert {len(part["sha256"]) for model in record["models"] for part in model["parts"]} == {64}
    with (tmp_path / "report.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {row["lane"] for row in csv.DictReader(file)} == {"Off", "small"}
    for name in files:
        # Spreadsheets on Windows know UTF-8 by its mark alone; nothing else wants one.
        assert Path(name).read_bytes().startswith(b"\xef\xbb\xbf") is name.endswith(".csv")
        text = Path(name).read_text(encoding="utf-8")
        assert words not in text
        assert str(tmp_path) not in text
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_private_words_only_if_asked_for(engine: TimedEngine, target: str, draft: str, tmp_path: Path) -> None:
    files = [str(tmp_path / f"report.{kind}") for kind in ("json", "md", "html")]
    own = ("--prompt", "My secret question.", "--repeats", "1", "--tokens", "9")
    assert compare("--target", target, "--lane", draft, *own, "--private", "--report", *files) == 0
    for name in files:
        assert "My secret question." in Path(name).read_text(encoding="utf-8")
    assert faults(report_of(tmp_path / "report.json"), schema()) == []


def test_what_a_report_may_be(target: str, capsys: pytest.CaptureFixture[str], engine: TimedEngine) -> None:
    assert compare("--target", target, "--report", "charts.png") == 2
    assert "saved from the window" in capsys.readouterr().err
    assert compare("--target", target, *SMALL, "--report", "no/such/folder/report.md") == 2
    assert "could not be written" in capsys.readouterr().err
    assert engine.requests == []


def test_ctrl_c_keeps_what_is_done_and_resume_completes_it(
    engine: TimedEngine, target: str, draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.fails = stop_at(engine, 4)
    assert compare("--target", target, "--lane", draft, *SMALL) == 130
    told = capsys.readouterr()
    assert "Stopped early" in told.out
    known = told.err.rpartition("--resume ")[2].strip()
    engine.fails = lambda _: None
    before = len(engine.requests)
    report = tmp_path / "report.json"
    assert compare("--resume", known, "--report", str(report)) == 0
    record = report_of(report)
    assert (record["complete"], len(record["runs"])) == (True, 4)
    # Two of the four runs were there; the warm-up was switched off.
    assert len(engine.requests) - before == 2
    assert compare("--resume", known) == 2
    assert "complete" in capsys.readouterr().err


def test_ctrl_c_while_it_loads_again_costs_nothing(
    engine: TimedEngine, target: str, draft: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.fails = stop_at(engine, 4)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert compare("--target", target, "--lane", draft, *SMALL, "--report", str(first)) == 130
    engine.fails = lambda _: None
    load = TimedEngine.load

    def interrupted(timed: TimedEngine, *arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return load(timed, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(TimedEngine, "load", interrupted)
        assert compare("--resume", "last", "--report", str(second)) == 130
    told = [
        (record["headline"], [(run["lane"], run["text"], run["identical"], run["seed"]) for run in record["runs"]])
        for record in (report_of(first), report_of(second))
    ]
    assert told[0] == told[1]
    assert len(report_of(second)["runs"]) == 2
    assert compare("--resume", "last") == 0


def test_a_resume_that_cannot_load_says_so_and_can_be_tried_again(
    engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.fails = stop_at(engine, 4)
    assert compare("--target", target, "--lane", draft, *SMALL) == 130
    engine.fails = lambda _: None
    engine.refuses = frozenset({"big"})
    assert compare("--resume", "last") == 2
    told = capsys.readouterr()
    assert "It is broken." in told.err
    assert "The rest could not be measured. big.gguf could not be loaded." in told.out
    assert "--resume" in told.err
    engine.refuses = frozenset()
    assert compare("--resume", "last") == 0


@pytest.mark.parametrize("stopped_at", [2, 3, 4])
def test_what_was_stopped_is_valid_json_too(
    engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str], stopped_at: int
) -> None:
    engine.fails = stop_at(engine, stopped_at)
    assert compare("--target", target, "--lane", draft, *SMALL, "--json") == 130
    record = json.loads(capsys.readouterr().out)
    assert faults(record, schema()) == []
    assert (record["complete"], len(record["runs"])) == (False, stopped_at - 2)


@pytest.mark.parametrize("fails", ["every run", "speculation", "the draft", "the load"])
def test_what_failed_is_valid_json_too(
    engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str], fails: str
) -> None:
    def failure(request: GenerationRequest) -> str | None:
        # The first one tells how long it will take: nothing has begun.
        if fails == "the load":
            engine.refuses = frozenset({Path(target).stem})
        begun = len(engine.requests) > 1
        return "No room." if (fails == "every run" and begun) or (fails == "speculation" and request.sources) else None

    engine.fails = failure
    if fails == "the draft":
        engine.draft_problem = f"{draft} is broken."
    compare("--target", target, "--lane", draft, *SMALL, "--json")
    record = json.loads(capsys.readouterr().out)
    assert faults(record, schema()) == []
    told = [run["failure"] for run in record["runs"]] + [lane["problem"] for lane in record["lanes"]]
    assert any(told)
    assert not any(str(Path(draft).parent) in words for words in told if words)


def test_the_newest_unfinished_one_is_gone_on_with(engine: TimedEngine, target: str, draft: str) -> None:
    engine.fails = stop_at(engine, 3)
    assert compare("--target", target, "--lane", draft, *SMALL) == 130
    engine.fails = lambda _: None
    assert compare("--resume", "last") == 0
    assert compare("--resume", "last") == 2


def test_a_report_is_repeated_exactly(
    engine: TimedEngine, target: str, draft: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    lanes = ("--lane", f"{draft},length=3", "--lane", "prompt-lookup,temperature=0.7")
    settings = ("--tokens", "9", "--repeats", "2", "--suite", "qa", "stem", "--seed", "11", "--budget", "30")
    assert compare("--target", target, *lanes, *settings, "--report", str(first)) == 0
    asked = list(engine.requests[1:])
    # On another machine: nothing is kept there but the models.
    for path in (home / "data" / "comparisons").iterdir():
        path.unlink()
    engine.requests.clear()
    assert compare("--repeat", str(first), "--report", str(second)) == 0
    assert engine.requests[1:] == asked
    assert report_of(first)["plan"] == report_of(second)["plan"]
    Path(draft).write_bytes(Path(draft).read_bytes() + b"x")
    assert compare("--repeat", str(first)) == 2
    assert "another file here" in capsys.readouterr().err
    Path(draft).unlink()
    assert compare("--repeat", str(first)) == 2
    assert "not on this machine" in capsys.readouterr().err


LOAD_OPTIONS = {
    "context_length": ("--context", "99"),
    "reproducible": ("--reproducible",),
    "threads": ("--threads", "3"),
    "gpu_layers": ("--gpu-layers", "4"),
    "draft_gpu_layers": ("--draft-gpu-layers", "2"),
    "device": ("--device", "CPU"),
    "draft_device": ("--draft-device", "CPU"),
    "split": ("--split", "row"),
    "cache_type": ("--cache-type", "Q8_0"),
    "flash_attention": ("--flash-attention", "off"),
}


def test_every_load_setting_has_an_option() -> None:
    assert {*LOAD_OPTIONS, "context_length", "reproducible"} == {each.name for each in fields(LoadSettings)}


@pytest.mark.parametrize(
    "options",
    [
        *LOAD_OPTIONS.values(),
        ("--rule", "rejection"),
        ("--fresh",),
        ("--keep-prompt",),
        ("--seed", "18446744073709551615"),
        ("--temperature", "0.4"),
        ("--lane", "off,temperature=0.7"),
        ("--lane", "prompt-lookup+ngram-mod,length=7,temperature=1.25,name=Both"),
        ("--budget", "0.75"),
        ("--no-warm-up",),
        ("--prompt", "GET /models/list"),
    ],
    ids=" ".join,
)
def test_each_setting_is_repeated(
    engine: TimedEngine, target: str, draft: str, tmp_path: Path, home: Path, options: tuple[str, ...]
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    usual = ("--lane", draft, "--suite", "qa", "--each", "1", "--repeats", "1", "--tokens", "9", "--private")
    assert compare("--target", target, *usual, *options, "--report", str(first)) == 0
    loads, asked = list(engine.loads), list(engine.requests)
    for name, given in LOAD_OPTIONS.items():
        assert (getattr(loads[-1].settings, name) != getattr(LoadSettings(), name)) is (given == options)
    # As on another machine.
    for path in (home / "data" / "comparisons").iterdir():
        path.unlink()
    engine.loads.clear()
    engine.requests.clear()
    assert compare("--repeat", str(first), "--private", "--report", str(second)) == 0
    assert (engine.loads, engine.requests) == (loads, asked)
    for part in ("plan", "settings", "pairs", "models"):
        assert report_of(first)[part] == report_of(second)[part]


def test_models_that_were_moved_and_those_of_one_name_are_found_again(
    engine: TimedEngine, target: str, home: Path, tmp_path: Path
) -> None:
    folder = home / "models" / "small"
    folder.mkdir()
    draft = ModelFile(WORDS, entries={"general.author": "Another"}).write(folder / Path(target).name)
    report, again = tmp_path / "report.json", tmp_path / "again.json"
    assert compare("--target", target, "--lane", f"{draft},name=Small", *SMALL, "--report", str(report)) == 0
    assert [model["file"] for model in report_of(report)["models"]] == ["big.gguf", "big.gguf (2)"]
    assert faults(report_of(report), schema()) == []
    (home / "models" / "moved").mkdir()
    moved = draft.rename(home / "models" / "moved" / draft.name)
    for path in (*(home / "data" / "comparisons").iterdir(), None):
        assert compare("--repeat", str(report), "--report", str(again)) == 0
        assert (engine.loads[-1].target, engine.loads[-1].draft) == (Path(target), moved)
        assert report_of(again)["models"] == report_of(report)["models"]
        if path is not None:
            path.unlink()


def test_private_prompts_are_repeated_where_they_are_known(
    engine: TimedEngine, target: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    own = ("--prompt", "My secret question.", "--repeats", "1", "--tokens", "9")
    assert compare("--target", target, *own, "--report", str(report)) == 0
    engine.requests.clear()
    assert compare("--repeat", str(report)) == 0
    assert {request.messages[0].content for request in engine.requests} == {"My secret question."}
    for path in (home / "data" / "comparisons").iterdir():
        path.unlink()
    assert compare("--repeat", str(report)) == 2
    assert "private" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["json", "toml"])
def test_a_plan_from_a_file(engine: TimedEngine, target: str, draft: str, tmp_path: Path, kind: str) -> None:
    plan = tmp_path / f"plan.{kind}"
    if kind == "json":
        lanes = [{"name": "Small", "sources": ["draft-model"], "draft": draft, "draft_length": 2}]
        record = {"target": target, "lanes": lanes, "prompts": ["Hello."], "suites": ["qa"], "tokens": 9, "repeats": 1}
        plan.write_text(json.dumps(record), encoding="utf-8")
    else:
        plan.write_text(
            f'target = "{target}"\nprompts = ["Hello."]\nsuites = ["qa"]\ntokens = 9\nrepeats = 1\n'
            f'[[lanes]]\nname = "Small"\nsources = ["draft-model"]\ndraft = "{draft}"\ndraft_length = 2\n',
            encoding="utf-8",
        )
    assert compare("--plan", str(plan)) == 0
    ways = {(request.sources, request.draft_length) for request in engine.requests}
    assert ways == {((), None), ((Source.DRAFT_MODEL,), 2)}
    assert len({request.messages for request in engine.requests}) == 1 + 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[]", "no plan"),
        ('{"target": "x.gguf", "lanes": [], "prompts": ["a"]}', "a lane beside the target"),
        (
            '{"target": "x.gguf", "lanes": [{"name": "a", "sources": ["guess"]}], "prompts": ["a"]}',
            "A source must be one of",
        ),
        ('{"target": "x.gguf", "lanes": [{"name": "a"}], "prompts": ["a"], "repeat": 3}', "no 'repeat'"),
        ('{"lanes": [{"name": "a"}], "prompts": ["a"]}', "“target” is missing"),
    ],
)
def test_plans_that_are_none(
    engine: TimedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    assert compare("--plan", str(path)) == 2
    assert words in capsys.readouterr().err
    assert engine.loads == []


def test_the_list(engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare("--list") == 0
    assert "No comparison is kept yet." in capsys.readouterr().err
    assert compare("--target", target, "--lane", draft, *SMALL, "--name", "Evening try") == 0
    assert compare("--target", target, "--lane", "prompt-lookup", *SMALL) == 0
    capsys.readouterr()
    assert compare("--list") == 0
    printed = capsys.readouterr().out
    assert "Evening try" in printed
    assert "big: prompt lookup" in printed
    assert "complete, 4 of 4 runs" in printed
    assert compare("--list", "EVENING", "small", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["state"], found["done"]) == ("Evening try", "complete", 4)


def test_the_time_is_known_from_an_earlier_comparison(
    engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--target", target, "--lane", draft, *SMALL) == 0
    loads, runs = len(engine.loads), len(engine.requests)
    assert compare("--target", target, "--lane", draft, *SMALL) == 0
    assert len(engine.loads) - loads == 1
    assert len(engine.requests) - runs == 4
    assert capsys.readouterr().err.count("This will take") == 2


def test_another_vocabulary_is_seen_before_anybody_waits(
    engine: TimedEngine, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = str(ModelFile(["a", "x", "ab", "c"]).write(tmp_path / "stranger.gguf"))
    assert compare("--target", target, "--lane", stranger, *SMALL) == 2
    assert "stranger.gguf cannot draft for big.gguf." in capsys.readouterr().err
    assert engine.loads == []


def test_what_fails_is_told(engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]) -> None:
    engine.fails = lambda request: "The prompt is too long." if request.sources else None
    assert compare("--target", target, "--lane", draft, *SMALL) == 0
    printed = capsys.readouterr().out
    assert "2 runs failed. The prompt is too long." in printed
    assert "Nothing could be compared." in printed
