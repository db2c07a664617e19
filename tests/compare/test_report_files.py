"""Reports of lanes, of every kind: what they hold, what they keep to themselves, and that they stand alone."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from compare.lane_plans import FOUR, LOOKUP, OFF, SMALL, measured, plan
from compare.timed_engine import TimedEngine
from compare.timed_engine import measured as bench
from forespeak.compare.charts import acceptance_chart, drafting_chart, rates_chart
from forespeak.compare.lane_results import ComparisonResult
from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.model_files import model_records
from forespeak.compare.plan import Prompt
from forespeak.compare.plan_record import plan_from, plan_record
from forespeak.compare.report import Record
from forespeak.compare.report_files import KINDS, report_of
from forespeak.engines.engine import CacheType, ChatMessage, LoadSettings, Role, Split, Start, TextSourceSettings
from forespeak.errors import UserFacingError
from forespeak.models.shards import MOST_PARTS
from forespeak.resource_files import resource_path
from forespeak.speculation.settings import NgramModSettings, Rule, SamplingSettings
from json_schema import faults
from models.gguf_writer import ModelFile

SECRET = Prompt(
    "chat",
    "mine",
    "A secret | question.",
    messages=(ChatMessage(Role.SYSTEM, "A secret rule."), ChatMessage(Role.USER, "A secret | question.")),
    private=True,
)
OPEN = Prompt("code", "open", "Write ```code``` <b>now</b>.")


def schema() -> Any:
    return json.loads(resource_path("schemas", "comparison.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> ComparisonResult:
    engine = TimedEngine(parts_at=5, fails=lambda request: "Too long." if request.draft_length == 4 else None)
    wanted = plan(OFF, SMALL, FOUR, LOOKUP, prompts=(SECRET, OPEN), repeats=3)
    return measured(wanted, tmp_path_factory.mktemp("kept"), engine)[0]


def everything(tmp_path: Path) -> Plan:
    """A plan in which no setting is as usual."""
    return Plan(
        tmp_path / "big.gguf",
        (
            Lane("a", (SMALL.sources[0],), tmp_path / "small.gguf", 3, 0.5, "pair"),
            Lane("b", LOOKUP.sources, temperature=0.9),
        ),
        (SECRET, OPEN, replace(OPEN, name="other", language="zh-Hant", answer="short")),
        repeats=7,
        tokens=33,
        budget_seconds=12.5,
        sampling=SamplingSettings(
            temperature=0.4, seed=2**64 - 1, dry_breakers=((1, 2), (3,)), logit_bias=((5, float("-inf")), (6, 1.5))
        ),
        rule=Rule.REJECTION,
        start=Start.WARM,
        warm_up=False,
        load_settings=LoadSettings(512, True, 3, 4, 0, "CUDA1", "CPU", Split.ROW, CacheType.Q8_0, True),
        text_sources=TextSourceSettings(ngram_mod=NgramModSettings(n_match=20), shared=True),
    )


def test_a_plan_survives_being_written_down(tmp_path: Path) -> None:
    wanted = everything(tmp_path)
    kept = json.loads(json.dumps(plan_record(wanted), allow_nan=False))
    assert plan_from(kept) == wanted
    shared = plan_record(wanted, folders=False)
    assert str(tmp_path) not in json.dumps(shared)
    assert plan_from(shared, lambda name: tmp_path / name) == wanted
    for wrong in ({"flash_attention": "on"}, {"device": 3}, {"cache_type": "Q3_K"}, {"split": None}):
        with pytest.raises(UserFacingError):
            plan_from(kept | wrong)
    # What was kept before there were such settings is still read.
    for each in fields(LoadSettings):
        del kept[each.name]
    assert plan_from(kept) == replace(wanted, load_settings=LoadSettings())


def test_the_schema_holds_for_comparisons_and_benchmarks(result: ComparisonResult, tmp_path: Path) -> None:
    for private in (False, True):
        record = json.loads(report_of("json", result, model_records(result.plan, None), private=private))
        assert faults(record, schema()) == []
        assert {"plan", "lanes", "models"} <= set(record)
    assert faults(json.loads(Record(bench()).json_text()), schema()) == []
    wide = measured(replace(everything(tmp_path), repeats=1, rule=Rule.COUPLED), tmp_path)[0]
    assert faults(json.loads(report_of("json", wide, model_records(wide.plan, None))), schema()) == []


def test_the_schema_sees_what_is_wrong(result: ComparisonResult) -> None:
    record = json.loads(report_of("json", result, model_records(result.plan, None)))
    for change in (
        {"version": 2},
        {"complete": "yes"},
        {"stranger": 1},
        {"runs": [{**record["runs"][0], "seed": "7"}]},
        {"plan": {**record["plan"], "rule": "other"}},
        {"plan": {**record["plan"], "cache_type": "Q3_K"}},
        {"lanes": [{**record["lanes"][0], "base": 3}]},
    ):
        assert faults(record | change, schema()) != []
    del record["lanes"]
    assert faults(record, schema()) == ["$: lanes is missing beside plan"]


@pytest.mark.parametrize("kind", KINDS)
def test_private_words_stay_out_unless_they_are_wanted(result: ComparisonResult, kind: str) -> None:
    text = report_of(kind, result, model_records(result.plan, None))
    assert "secret" not in text
    if kind != "csv":
        assert "code" in text
        assert "secret" in report_of(kind, result, model_records(result.plan, None), private=True)
    record = json.loads(report_of("json", result, []))
    assert {run["text"] for run in record["runs"] if run["category"] == "chat" and not run["failure"]} == {None}
    assert [prompt["text"] for prompt in record["prompts"]] == [None, OPEN.text]
    assert record["plan"]["prompts"][0]["messages"][0]["content"] is None


def test_models_are_named_with_their_hashes_and_without_folders(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    target = ModelFile(["a", "b", "ab", "c"]).write(tmp_path / "private" / "big.gguf")
    engine = TimedEngine(fails=lambda request: f"{target} is broken." if request.sources else None)
    wanted = replace(plan(OFF, LOOKUP), target=target)
    found = measured(wanted, tmp_path, engine)[0]
    models = model_records(wanted, lambda path: "ab" * 32 if path == target else None)
    assert models[0]["parts"] == [{"file": "big.gguf", "sha256": "ab" * 32}]
    assert models[0]["size_bytes"] == target.stat().st_size
    for kind in KINDS:
        text = report_of(kind, found, models)
        assert str(tmp_path) not in text
        assert "big.gguf is broken." in text
        assert kind == "csv" or "ab" * 32 in text


def test_parts_of_split_models_and_folders(tmp_path: Path) -> None:
    def broken(_: Path) -> str:
        raise OSError

    first = tmp_path / "m-00001-of-00002.gguf"
    split = replace(plan(OFF, LOOKUP), target=first)
    assert [part["file"] for part in model_records(split, broken)[0]["parts"]] == [first.name, "m-00002-of-00002.gguf"]
    assert {part["sha256"] for part in model_records(split, broken)[0]["parts"]} == {None}
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "config.json").write_text("{}", encoding="utf-8")
    folder = replace(plan(OFF, LOOKUP), target=tmp_path / "mlx")
    assert [part["file"] for part in model_records(folder, None)[0]["parts"]] == ["config.json"]


def test_a_name_may_claim_any_number_of_parts(result: ComparisonResult, tmp_path: Path) -> None:
    claimed = replace(result.plan, target=tmp_path / "m-00001-of-1000000.gguf")
    assert len(model_records(claimed, None)[0]["parts"]) == MOST_PARTS


def test_markdown(result: ComparisonResult) -> None:
    text = report_of("md", result, model_records(result.plan, None), name="My *try*")
    assert text.startswith(
        "# My \\*try\\*\n\nOf 2 lanes the fastest: Small is 2.00 times as fast as the target alone.\n"
    )
    assert "| Small | 20.0 | 2.00× (2.00–2.00) | 250 ms | 50 % | 2.00 | 0 |" in text
    assert "6 runs failed. Too long." in text
    assert "Small: the same words in 0 of 6 runs." in text
    assert "Differs from token 6 on" in text
    # Longer than any fence within.
    assert f"````text\n{OPEN.text}\n````" in text
    assert "1 prompt is private and left out." in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_strangers_words_mean_nothing_to_what_reads_them(tmp_path: Path) -> None:
    formula, tag, chinese = (
        '=HYPERLINK("http://x.example";"y")',
        "1. <script>x</script> | ~~a~~ $b$ &lt;",
        "自動 · 起草長度" * 9,
    )
    lanes = (
        OFF,
        replace(SMALL, name=formula),
        replace(LOOKUP, name=tag),
        replace(LOOKUP, name=chinese, draft_length=3),
    )
    prompts = (Prompt("-1+2", "@x", "=1+1\n</pre><script>x</script>"), Prompt("الكتابة", "+y", "اكتب قصة"))
    engine = TimedEngine(fails=lambda request: "=1+1" if request.draft_length == 3 else None)
    found = measured(plan(*lanes, prompts=prompts, repeats=1), tmp_path, engine)[0]
    rows = list(csv.DictReader(io.StringIO(report_of("csv", found, []))))
    assert {row["lane"] for row in rows} == {"Off", f"'{formula}", tag, chinese}
    assert {(row["category"], row["prompt"]) for row in rows} == {("'-1+2", "'@x"), ("الكتابة", "'+y")}
    assert {row["failure"] for row in rows} == {"", "'=1+1"}
    markdown = report_of("md", found, [])
    assert r"1\. \<script\>x\</script\> \| \~\~a\~\~ \$b\$ \&lt;" in markdown
    assert r"http\://x.example" in markdown
    outside = re.sub(r"```text\n.*?\n```", "", markdown, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<", outside)
    page = _Page()
    page.feed(report_of("html", found, []))
    page.close()
    assert page.open == []
    assert "script" not in {kind for kind, _ in page.seen}
    # Words of another direction stand by themselves.
    assert {attributes.get("dir") for kind, attributes in page.seen if kind in {"td", "pre", "summary"}} == {"auto"}


def test_names_that_have_no_room_in_a_chart_lose_their_middle(tmp_path: Path) -> None:
    names = [f"{'A very long name of a draft model ' * 4}· {length}" for length in ("Auto", "4 tokens")]
    found = measured(plan(OFF, *(replace(LOOKUP, name=name) for name in names)), tmp_path)[0]
    for chart in (rates_chart(found), acceptance_chart(found), drafting_chart(found)):
        texts = [each for each in ET.fromstring(chart).iter() if each.tag.endswith("text")]
        cut = [each for each in texts if each.text is not None and "…" in each.text]
        assert [each.text.rpartition("· ")[2] for each in cut if each.text] == ["Auto", "4 tokens"]
        assert [each[0].text for each in cut] == names


def test_folders_leave_errors_and_nothing_else(tmp_path: Path) -> None:
    target = Path("/models/big.gguf")
    words = "GET /models/list in /models-of-others, see /models."
    engine = TimedEngine(fails=lambda _: "/models/big.gguf in /models is not /models-of-others/big.gguf")
    wanted = replace(plan(OFF, LOOKUP, prompts=(Prompt("code", "a", words),)), target=target)
    found = measured(wanted, tmp_path, engine)[0]
    record = json.loads(report_of("json", found, []))
    assert record["plan"]["prompts"][0]["text"] == record["prompts"][0]["text"] == words
    expected = "big.gguf in … is not /models-of-others/big.gguf"
    assert {run["failure"] for run in record["runs"]} == {expected}
    assert expected in record["notes"][0]
    assert expected in report_of("csv", found, [])


def test_a_report_tells_how_models_were_loaded(tmp_path: Path) -> None:
    usual = report_of("md", measured(plan(OFF, LOOKUP), tmp_path)[0], [])
    assert "split layer, cache F16, flash attention auto." in usual
    assert "More settings" not in usual
    wide = everything(tmp_path)
    settings = replace(wide.load_settings, reproducible=False)
    wide = replace(wide, load_settings=settings, rule=Rule.COUPLED, repeats=1)
    text = report_of("md", measured(wide, tmp_path)[0], [])
    for words in (
        "a context of 512 tokens, threads 3, device CUDA1, draft’s device CPU, layers on GPUs 4, draft’s 0",
        "split row, cache Q8\\_0, flash attention on.",
        "dry breakers 2 entries, logit bias 2 entries, ngram mod set otherwise than usual",
    ):
        assert words in text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_stands_alone(result: ComparisonResult) -> None:
    text = report_of("html", result, model_records(result.plan, None))
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    tags = [tag for tag, _ in page.seen]
    assert tags.count("svg") == 3
    assert not {"script", "link", "img", "iframe", "object", "b"} & set(tags)
    for _, attributes in page.seen:
        assert not {"src", "href", "onclick"} & set(attributes)
    assert "&lt;b&gt;now&lt;/b&gt;" in text
    assert "default-src 'none'" in text


def shades(svg: str) -> list[float]:
    """The lightness (0 to 1) of the bars, each once, in their order."""
    root = ET.fromstring(svg)
    colours = [each.get("fill", "") for each in root.iter() if each.tag.endswith("rect")]
    found = dict.fromkeys(colour for colour in colours if colour.startswith("#"))
    return [
        (0.2126 * int(colour[1:3], 16) + 0.7152 * int(colour[3:5], 16) + 0.0722 * int(colour[5:7], 16)) / 255
        for colour in found
    ]


def test_charts_can_be_told_apart_in_grey(result: ComparisonResult) -> None:
    lightness = shades(rates_chart(result))
    # The lane that failed has no bar.
    assert len(lightness) == 3
    neighbours = itertools.pairwise(lightness)
    assert all(abs(one - other) > 0.2 for one, other in neighbours)
    hatches = set(re.findall(r"url\(#(\w+)\)", rates_chart(result)))
    assert len(hatches) == 3
    dashes = re.findall(r'stroke-dasharray="([^"]*)"', acceptance_chart(result))
    # Each line, and its sign in the legend.
    assert (len(dashes), len(set(dashes))) == (4, 2)


def test_lanes_without_drafts_are_all_grey_and_can_be_told_apart(tmp_path: Path) -> None:
    warm = replace(OFF, name="Off, warm", temperature=0.8)
    found = measured(plan(OFF, SMALL, warm, replace(SMALL, name="Small, warm", temperature=0.8)), tmp_path)[0]
    root = ET.fromstring(rates_chart(found))
    bars = [each.get("fill", "") for each in root.iter() if each.tag.endswith("rect")]
    looks = dict.fromkeys(zip(bars[::2], bars[1::2], strict=True))
    plain = [look for look in looks if look[0] == "#d0d0d0"]
    assert (len(looks), len(plain), len(set(plain))) == (4, 2, 2)
    assert len({fill for fill, _ in looks}) == 3
    # The pattern of the second one is seen on its ground.
    assert re.search(r'<pattern id="dark2"[^>]*><path [^>]*stroke="#4a4a4a"', rates_chart(found))
    assert ("#d0d0d0", "url(#dark2)") in looks


def test_charts_show_the_figures(result: ComparisonResult) -> None:
    root = ET.fromstring(rates_chart(result))
    words = [each.text for each in root.iter() if each.tag.endswith("text")]
    assert words.count("20.0") == 4
    assert {"chat", "code", "Off", "Small", "Lookup"} <= set(words)
    assert "25 %" in drafting_chart(result)


def test_nothing_measured_has_no_charts(tmp_path: Path) -> None:
    nothing = measured(plan(), tmp_path, TimedEngine(fails=lambda _: "No."))[0]
    assert (rates_chart(nothing), acceptance_chart(nothing), drafting_chart(nothing)) == ("", "", "")
    for kind in KINDS:
        assert "No." in report_of(kind, nothing, [])
