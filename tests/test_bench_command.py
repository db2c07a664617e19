"""`forespeak bench`: its arguments, its outputs, what stops it; and one small measurement of the real starter pair."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from compare.timed_engine import TimedEngine
from forespeak import bench_command, cli
from forespeak.bench_command import pair_names, time_left
from forespeak.compare.prompts import CATEGORIES
from forespeak.engines.drafting import MAX_DRAFT_LENGTH
from forespeak.engines.engine import GenerationRequest, Start
from forespeak.speculation.trace import Source
from models.gguf_writer import ModelFile

WORDS: list[str | bytes] = ["a", "b", "ab", "c"]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> TimedEngine:
    engine = TimedEngine()
    monkeypatch.setattr(cli, "_engine", lambda: engine)
    return engine


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(ModelFile(WORDS).write(tmp_path / "big.gguf"))


@pytest.fixture
def draft(tmp_path: Path) -> str:
    return str(ModelFile(WORDS).write(tmp_path / "small.gguf"))


SMALL = ("--tokens", "9", "--runs", "2", "--category", "code", "--temperature", "0")


class TestArguments:
    @pytest.mark.parametrize(
        ("named", "pairs"),
        [
            ("", ["starter+starter"]),
            ("t:A", ["A+none"]),
            ("t:starter", ["starter+starter"]),
            ("d:X", ["starter+X"]),
            ("t:A d:X d:Y", ["A+X", "A+Y"]),
            ("t:A t:B d:X", ["A+X", "B+X"]),
            ("t:A d:X d:Y t:B d:Z", ["A+X", "A+Y", "B+Z"]),
            ("t:A d:X t:B", ["A+X", "B+none"]),
            ("t:A d:none d:X", ["A+none", "A+X"]),
            ("t:A d:X d:X", ["A+X"]),
        ],
    )
    def test_a_draft_belongs_to_the_targets_before_it(self, named: str, pairs: list[str]) -> None:
        options = {"t": "target", "d": "draft"}
        found = pair_names([(options[word[0]], word[2:]) for word in named.split()])
        assert [f"{target}+{draft}" for target, draft in found] == pairs

    def test_what_is_measured_by_default(self, engine: TimedEngine, target: str, draft: str) -> None:
        assert cli.run(["bench", "--target", target, "--draft", draft, "--no-warm-up"]) == 0
        ways = {(request.sources, request.draft_length) for request in engine.requests}
        assert ways == {((), None), ((Source.DRAFT_MODEL,), None), ((Source.DRAFT_MODEL,), 4)}
        assert {request.sampling.temperature for request in engine.requests} == {0.0, 0.8}
        assert {request.max_tokens for request in engine.requests} == {128}
        assert {request.start for request in engine.requests} == {Start.COLD}
        assert len(engine.requests) == 3 * 3 * 2 * 2 * len(CATEGORIES)
        assert engine.closed

    def test_without_a_draft_the_text_is_looked_up(self, engine: TimedEngine, target: str) -> None:
        assert cli.run(["bench", "--target", target, *SMALL]) == 0
        assert {request.sources for request in engine.requests} == {(), (Source.PROMPT_LOOKUP,)}

    def test_settings_reach_the_engine(self, engine: TimedEngine, target: str, draft: str, tmp_path: Path) -> None:
        own = tmp_path / "own.txt"
        own.write_text("From a file. 檔案", encoding="utf-8")
        code = cli.run(
            [
                *("bench", "--target", target, "--draft", draft, "--source", "prompt-lookup+draft-model", "ngram-mod"),
                *("--length", "0", "3", "auto", "--temperature", "0.5", "0.5", "--tokens", "5", "--runs", "1"),
                *("--seed", "7", "--top-k", "9", "--top-p", "0.5", "--min-p", "0.1", "--rule", "rejection", "--fresh"),
                *("--prompt", "As it stands.", str(own), "--threads", "3", "--context", "99", "--reproducible"),
                "--no-warm-up",
            ]
        )
        assert code == 0
        (load,) = engine.loads
        assert (load.settings.threads, load.settings.context_length, load.settings.reproducible) == (3, 99, True)
        assert {request.messages[0].content for request in engine.requests} == {"As it stands.", "From a file. 檔案"}
        chain = (Source.PROMPT_LOOKUP, Source.DRAFT_MODEL)
        assert {(request.sources, request.draft_length) for request in engine.requests} == {
            ((), None),
            (chain, 3),
            (chain, None),
            ((Source.NGRAM_MOD,), 3),
            ((Source.NGRAM_MOD,), None),
        }
        request = engine.requests[0]
        sampling = request.sampling
        assert (sampling.temperature, sampling.seed, sampling.top_k) == (0.5, 7, 9)
        assert (sampling.top_p, sampling.min_p) == (0.5, 0.1)
        assert (request.rule.value, request.start, request.max_tokens) == ("rejection", Start.FRESH, 5)

    def test_a_target_stays_while_its_drafts_are_swapped(
        self, engine: TimedEngine, target: str, draft: str, tmp_path: Path
    ) -> None:
        other = str(ModelFile(WORDS).write(tmp_path / "other.gguf"))
        assert cli.run(["bench", "--target", target, "--draft", draft, other, *SMALL]) == 0
        assert [(load.target, load.draft) for load in engine.loads] == [
            (Path(target), Path(draft)),
            (Path(target), Path(other)),
        ]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--length", "many"], f"neither auto nor a number from 0 to {MAX_DRAFT_LENGTH}"),
            (["--length", str(MAX_DRAFT_LENGTH + 1)], "neither auto nor a number from 0"),
            (["--length", "0"], "nothing to compare with"),
            (["--source", "guesses"], "'guesses' is not made of these"),
            (["--source", "draft-model+prompt-lookup"], "would ever be asked"),
            (["--source", "ngram-mod+ngram-mod"], "twice"),
            (["--category", "poems"], "invalid choice"),
            (["--temperature", "-1"], "temperature must lie between"),
            (["--top-p", "2"], "--top-p must lie between"),
            (["--tokens", "1"], "whole number from 2 on"),
            (["--runs", "0"], "whole number from 1 on"),
            (["--fresh", "--keep-prompt"], "not allowed with"),
            (["--prompt", "  "], "The prompt is empty."),
            (["--prompt", "\udcff"], "not UTF-8"),
        ],
    )
    def test_arguments_that_make_no_sense(
        self, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cli, "_engine", lambda: pytest.fail("no engine is needed to see that"))
        assert cli.run(["bench", *arguments]) == 2
        printed = capsys.readouterr()
        assert words in printed.err
        assert printed.out == ""

    def test_a_prompt_file_that_is_no_text(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cli, "_engine", lambda: pytest.fail("no engine is needed to see that"))
        (tmp_path / "prompt.txt").write_bytes(b"\xff\xfe")
        assert cli.run(["bench", "--prompt", str(tmp_path / "prompt.txt")]) == 2
        assert "not UTF-8" in capsys.readouterr().err


class TestFilesThatCannotServe:
    """Seen before anything is measured: nobody waits an hour for a wrong name."""

    def failure(self, capsys: pytest.CaptureFixture[str], engine: TimedEngine, *arguments: str) -> str:
        assert cli.run(["bench", *arguments, *SMALL]) == 2
        assert engine.loads == []
        assert engine.closed
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    def test_missing(
        self, capsys: pytest.CaptureFixture[str], engine: TimedEngine, target: str, draft: str, tmp_path: Path
    ) -> None:
        gone = str(tmp_path / "gone.gguf")
        assert "gone.gguf" in self.failure(capsys, engine, "--target", target, "--draft", draft, gone)
        assert "gone.gguf" in self.failure(capsys, engine, "--target", target, gone, "--draft", draft)

    def test_another_vocabulary(
        self, capsys: pytest.CaptureFixture[str], engine: TimedEngine, target: str, tmp_path: Path
    ) -> None:
        stranger = str(ModelFile(["a", "x", "ab", "c"]).write(tmp_path / "stranger.gguf"))
        words = self.failure(capsys, engine, "--target", target, "--draft", stranger)
        assert "stranger.gguf cannot draft for big.gguf." in words

    def test_no_draft_for_ways_that_need_one(
        self, capsys: pytest.CaptureFixture[str], engine: TimedEngine, target: str
    ) -> None:
        words = self.failure(capsys, engine, "--target", target, "--source", "draft-model")
        assert "There is no draft model for big.gguf." in words

    def test_results_that_cannot_be_written(
        self, capsys: pytest.CaptureFixture[str], engine: TimedEngine, target: str, tmp_path: Path
    ) -> None:
        place = str(tmp_path / "no folder" / "results.json")
        assert "could not be written" in self.failure(capsys, engine, "--target", target, "--json", place)


class TestOutput:
    def test_the_table_is_on_stdout_and_progress_beside_it(
        self, engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL]) == 0
        printed = capsys.readouterr()
        assert printed.out.startswith("big + small, temperature 0\n")
        assert "Auto: 2.00× (2.00–2.00). Faster than plain in all 4 runs." in printed.out
        assert printed.err.splitlines() == [
            "Loading",
            "big + small, warm-up",
            "big + small, repetition 1 of 2",
            "big + small, repetition 2 of 2, less than a minute left",
        ]

    def test_json_takes_the_place_of_the_table(
        self, engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL, "--json", "-"]) == 0
        printed = capsys.readouterr()
        assert len(json.loads(printed.out)["runs"]) == 2 * 2 * 3
        assert "Faster than plain in all 4 runs." in printed.err

    def test_files(self, engine: TimedEngine, target: str, draft: str, tmp_path: Path) -> None:
        results, lines = tmp_path / "r.json", tmp_path / "r.csv"
        seen: list[int] = []

        def look(request: GenerationRequest) -> str | None:
            seen.append(len(json.loads(results.read_text(encoding="utf-8"))["runs"]))
            return None

        engine.fails = look
        files = ("--json", str(results), "--csv", str(lines))
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL, "--no-warm-up", *files]) == 0
        # Written again after each visit, so that nothing is lost.
        assert seen == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]
        record = json.loads(results.read_text(encoding="utf-8"))
        assert record["complete"] is True
        assert len(record["runs"]) == 12
        assert lines.read_bytes().startswith(b"\xef\xbb\xbf")
        with lines.open(encoding="utf-8-sig", newline="") as file:
            assert len(list(csv.DictReader(file))) == 12

    def test_ctrl_c_shows_what_is_there(
        self, engine: TimedEngine, target: str, draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupt(request: GenerationRequest) -> str | None:
            if len(engine.requests) == 5:
                signal.raise_signal(signal.SIGINT)
            return None

        engine.fails = interrupt
        results = tmp_path / "r.json"
        arguments = ("--target", target, "--draft", draft, *SMALL, "--no-warm-up", "--json", str(results))
        assert cli.run(["bench", *arguments]) == 130
        printed = capsys.readouterr().out
        assert "Auto: 2.00×" in printed
        assert "Stopped early" in printed
        record = json.loads(results.read_text(encoding="utf-8"))
        assert (record["complete"], len(record["runs"])) == (False, 4)
        assert engine.closed

    def test_ctrl_c_at_once(
        self, engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def interrupt(_: GenerationRequest) -> str | None:
            signal.raise_signal(signal.SIGINT)
            return None

        engine.fails = interrupt
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL]) == 130
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "Stopped before anything was measured." in printed.err

    def test_a_pair_that_fails_is_told_and_the_others_are_measured(
        self, engine: TimedEngine, target: str, draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        broken = str(ModelFile(WORDS).write(tmp_path / "broken.gguf"))
        engine.refuses = frozenset({"broken"})
        assert cli.run(["bench", "--target", broken, target, "--draft", draft, *SMALL]) == 2
        printed = capsys.readouterr().out
        assert "broken + small could not be measured" in printed
        assert "Auto: 2.00×" in printed

    def test_nothing_that_can_be_loaded(
        self, engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        engine.refuses = frozenset({"big"})
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "big + small could not be measured: big.gguf could not be loaded." in printed.err

    def test_a_disk_that_fills_up_does_not_cost_the_figures(
        self, engine: TimedEngine, target: str, draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        results = tmp_path / "r.json"

        def block(_: GenerationRequest) -> str | None:
            if results.is_file():
                results.unlink()
                results.mkdir()
            return None

        engine.fails = block
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL, "--json", str(results)]) == 2
        printed = capsys.readouterr()
        assert "Auto: 2.00×" in printed.out
        assert "could not be written" in printed.err

    def test_nothing_but_failures(
        self, engine: TimedEngine, target: str, draft: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        engine.fails = lambda _: "The prompt is too long."
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL]) == 2
        assert "12 runs failed. The prompt is too long." in capsys.readouterr().out

    def test_a_terminal_gets_a_bar(
        self,
        engine: TimedEngine,
        target: str,
        draft: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "70")
        assert cli.run(["bench", "--target", target, "--draft", draft, *SMALL]) == 0
        shown = [line.removesuffix("\x1b[K") for line in capsys.readouterr().err.split("\r")]
        assert any(
            line.startswith("██████████░░░░░░░░░░ code, ") and line.endswith(", less than a minute left  50 %")
            for line in shown
        )
        assert max(map(len, shown)) <= 70
        assert shown[-1] == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (59.0, ", less than a minute left"),
        (250.0, ", about 4 min left"),
        (7500.0, ", about 2 h 5 min left"),
    ],
)
def test_time_left_in_words(seconds: float | None, words: str) -> None:
    assert time_left(seconds) == words


def test_the_real_starter_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "r.json"
    measure = ("--prompt", "Name five rivers.", "--tokens", "8", "--runs", "1", "--temperature", "0", "--length", "4")
    assert cli.run(["bench", *measure, "--reproducible", "--no-warm-up", "--json", str(results)]) == 0
    assert "4 tokens: " in capsys.readouterr().out
    record: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    plain, four = record["runs"]
    assert (plain["way"], four["way"]) == ("plain", "draft-model 4")
    for run in (plain, four):
        assert run["stats"]["generated_tokens"] == 8
        assert run["stats"]["reused_prompt_tokens"] == 0  # the caches were empty before each run
        assert run["stats"]["tokens_per_second"] > 0
        assert len(run["text"]) > 10
    assert four["identical"] is True
    assert four["text"] == plain["text"]
    assert four["stats"]["accepted_draft_tokens_count"] > 0
    assert record["pairs"][0]["target"]["quantisation"] == "F32"
    assert plain["category"] == bench_command.OWN_CATEGORY
