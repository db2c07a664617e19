"""How a reply's models were loaded is kept with it, and speeds of unlike loads are not compared."""

from __future__ import annotations

from dataclasses import replace

from forespeak.engines.engine import CacheType, LoadSettings, Split
from forespeak.ui.chat_records import ReplySettings
from forespeak.ui.kept_load_settings import entries_of, load_settings_of
from forespeak.ui.preferences import Preferences

CHOSEN = LoadSettings(512, True, 3, 20, 0, "CUDA1", "CPU", Split.NONE, CacheType.Q4_0, flash_attention=True)


def test_what_is_kept_comes_back() -> None:
    for settings in (LoadSettings(), CHOSEN):
        assert load_settings_of(entries_of(settings)) == settings
    kept = entries_of(CHOSEN)
    assert set(kept) == {"context_length", "reproducible", "threads", "hardware"}
    assert load_settings_of(kept | {"hardware": "GPU"}) == LoadSettings(512, True, 3)
    assert load_settings_of({}) == LoadSettings()


def test_speeds_of_other_loads_are_not_compared() -> None:
    """“Plain 35” beside a reply would be a lie if the plain one was written on a GPU."""

    def reply(settings: LoadSettings) -> ReplySettings:
        return ReplySettings.of(replace(Preferences(), load_settings=settings), has_draft=True)

    key = reply(LoadSettings()).plain_key
    for changed in (LoadSettings(gpu_layers=0), LoadSettings(threads=1), LoadSettings(reproducible=True)):
        assert reply(changed).plain_key != key
    for alike in (LoadSettings(draft_gpu_layers=0), LoadSettings(512)):
        assert reply(alike).plain_key == key
    assert reply(CHOSEN).record(None).items() >= entries_of(CHOSEN).items()
