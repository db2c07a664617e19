"""Preferences come back as they were, and damage costs no more than it must."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from forespeak.engines.engine import CacheType, LoadRequest, LoadSettings, Split, TextSourceSettings
from forespeak.speculation.settings import (
    NgramCacheSettings,
    NgramMapSettings,
    NgramSimpleSettings,
    Rule,
    SamplingSettings,
)
from forespeak.speculation.trace import Source
from forespeak.ui.preferences import RECENT_MODELS, Appearance, Preferences, PreferencesFile
from forespeak.ui.structured_output import OutputKind, StructuredOutput

OTHER = Preferences(
    appearance=Appearance.DARK,
    colour_blind=True,
    marks="strong",
    target=Path("/models/模型.gguf"),
    draft=Path("/models/draft.gguf"),
    recent=(Path("/models/a.gguf"), Path("/models/b.gguf")),
    speculate=False,
    sources=(Source.PROMPT_LOOKUP, Source.NGRAM_MOD, Source.DRAFT_MODEL),
    text_sources=TextSourceSettings(
        ngram_simple=NgramSimpleSettings(size_n=8),
        ngram_cache=NgramCacheSettings(n_max=4, context_min_samples=(3, 2, 2, 1)),
        shared=True,
    ),
    rule=Rule.REJECTION,
    draft_length=7,
    sampling=SamplingSettings(temperature=0.0, top_k=3, seed=2**63, logit_bias=((5, 2.5), (6, -math.inf))),
    output=StructuredOutput(True, OutputKind.GRAMMAR, "{}", 'root ::= "ä"'),
    random_seed=False,
    max_tokens=100,
    system_prompt="Be “brief”.\n再見",
    load_settings=LoadSettings(4096, True, 3, 12, 0, "Vulkan0", "CPU", Split.ROW, CacheType.Q8_0, True),
    sidebar_open=False,
    panel_open=False,
    window_size=(900, 700),
    last_chat=12,
)


@pytest.mark.parametrize("preferences", [Preferences(), OTHER])
def test_they_come_back(tmp_path: Path, preferences: Preferences) -> None:
    file = PreferencesFile(tmp_path / "deep" / "preferences.json")
    file.write(preferences)
    assert file.read() == preferences
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["preferences.json"]


def test_no_file_and_a_broken_one_give_the_defaults(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path / "preferences.json")
    assert file.read() == Preferences()
    for text in ("", "{", "[]", "null", '"x"', "\0\0"):
        (tmp_path / "preferences.json").write_text(text)
        assert file.read() == Preferences()
    (tmp_path / "preferences.json").write_bytes(b"\xff\xfe\x00")
    assert file.read() == Preferences()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appearance", "purple"),
        ("marks", 5),
        ("target", 5),
        ("recent", "x"),
        ("recent", [1]),
        ("speculate", 1),
        ("sources", "prompt-lookup"),
        ("sources", []),
        ("sources", ["magic"]),
        ("text_sources", [1]),
        ("rule", None),
        ("draft_length", 1000),
        ("draft_length", True),
        ("sampling", []),
        ("max_tokens", 0),
        ("window_size", [1]),
        ("window_size", [10, 10]),
        ("last_chat", -1),
    ],
)
def test_one_bad_value_costs_itself_only(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "preferences.json"
    PreferencesFile(path).write(OTHER)
    stored = json.loads(path.read_text("utf-8"))
    stored[name] = value
    stored["from_a_newer_version"] = 1
    path.write_text(json.dumps(stored))
    assert PreferencesFile(path).read() == replace(OTHER, **{name: getattr(Preferences(), name)})


@pytest.mark.parametrize(
    ("stored", "sources"),
    [
        ({"source": "prompt-lookup"}, (Source.PROMPT_LOOKUP,)),
        ({"source": "draft-model"}, (Source.DRAFT_MODEL,)),
        ({"source": "magic"}, Preferences().sources),
        ({"source": 5}, Preferences().sources),
        ({"source": "draft-model", "sources": ["ngram-mod"]}, (Source.NGRAM_MOD,)),
        ({"sources": ["draft-model", "from-a-newer-version", "ngram-mod"]}, (Source.NGRAM_MOD, Source.DRAFT_MODEL)),
    ],
)
def test_sources_of_other_versions(tmp_path: Path, stored: object, sources: tuple[Source, ...]) -> None:
    path = tmp_path / "preferences.json"
    path.write_text(json.dumps(stored))
    assert PreferencesFile(path).read().sources == sources


def test_one_bad_text_source_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "preferences.json"
    stored = {
        "ngram_simple": {"size_n": 0},
        "ngram_map_k": {"size_n": 5, "from_a_newer_version": 1},
        "ngram_map_k4v": {"size_n": "x"},
        "ngram_mod": {"n_match": 7.5},
        "ngram_cache": {"context_min_samples": [1]},
        "prompt_lookup": 3,
        "shared": 1,
    }
    path.write_text(json.dumps({"text_sources": stored}))
    read = PreferencesFile(path).read().text_sources
    assert read == TextSourceSettings(ngram_map_k=NgramMapSettings(size_n=5))


@pytest.mark.parametrize("draft", [None, Path("draft.gguf")])
def test_what_drafts_is_in_order_and_needs_no_download(draft: Path | None) -> None:
    every = replace(Preferences(), draft=draft, sources=tuple(Source))
    assert every.drafting == (*tuple(Source)[1:], *([] if draft is None else [Source.DRAFT_MODEL]))
    wanted = replace(Preferences(), draft=draft, sources=(Source.DRAFT_MODEL,))
    assert wanted.drafting == ((Source.PROMPT_LOOKUP,) if draft is None else (Source.DRAFT_MODEL,))
    assert replace(wanted, sources=(Source.NGRAM_MOD,)).drafting == (Source.NGRAM_MOD,)


def test_one_bad_sampling_value_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "preferences.json"
    path.write_text(json.dumps({"sampling": {"temperature": -1, "top_k": 7, "top_p": "x", "min_p": 1, "seed": 1e400}}))
    assert PreferencesFile(path).read().sampling == SamplingSettings(top_k=7, min_p=1.0)


def test_the_newest_models_come_first_and_once() -> None:
    preferences = Preferences()
    for number in range(RECENT_MODELS + 3):
        preferences = preferences.with_recent(Path(f"{number}.gguf"))
    preferences = preferences.with_recent(Path("5.gguf"))
    assert preferences.recent[0] == Path("5.gguf")
    assert len(preferences.recent) == len(set(preferences.recent)) == RECENT_MODELS


def test_a_pair_is_loaded_as_they_say() -> None:
    target, draft = Path("t.gguf"), Path("d.gguf")
    assert OTHER.load_request(target, draft) == LoadRequest(target, draft, OTHER.load_settings)
    assert Preferences().load_request(target) == LoadRequest(target)


def test_the_form_of_files_that_are_there_already(tmp_path: Path) -> None:
    path = tmp_path / "preferences.json"
    kept = {
        "context_length": 4096,
        "reproducible": True,
        "threads": 3,
        "hardware": {
            "device": "Vulkan0",
            "gpu_layers": 12,
            "draft_device": "CPU",
            "draft_gpu_layers": 0,
            "split": "row",
            "cache_type": "Q8_0",
            "flash_attention": True,
        },
    }
    path.write_text(json.dumps(kept))
    assert PreferencesFile(path).read() == replace(Preferences(), load_settings=OTHER.load_settings)
    PreferencesFile(path).write(OTHER)
    assert json.loads(path.read_text("utf-8")).items() >= kept.items()
    # Of before there was a choice of hardware.
    path.write_text(json.dumps({"threads": 2, "hardware": "GPU"}))
    assert PreferencesFile(path).read().load_settings == LoadSettings(threads=2)


def test_one_bad_load_setting_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "preferences.json"
    PreferencesFile(path).write(OTHER)
    stored = json.loads(path.read_text("utf-8"))
    stored["context_length"] = 0
    stored["hardware"] |= {"split": "columns", "threads": 9, "of a newer version": 1}
    path.write_text(json.dumps(stored))
    usual = replace(OTHER.load_settings, context_length=None, split=Split.LAYER)
    assert PreferencesFile(path).read() == replace(OTHER, load_settings=usual)
