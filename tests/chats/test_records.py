import json

from forespeak.chats.records import settings_from_json, stats_from_json, stats_to_json, storable
from forespeak.speculation.trace import GenerationStats, SpeculationState

STATS = GenerationStats(
    prompt_tokens=12,
    tokens_per_second=1 / 3,
    acceptance_rate=0.1 + 0.2,
    acceptance_rate_per_position=(0.9, 0.5),
    speculation=SpeculationState(True, "Drafting 4 tokens at a time, a fixed length.", 4),
)


def test_stats_come_back_as_they_were() -> None:
    assert stats_from_json(stats_to_json(STATS)) == STATS
    assert stats_from_json(stats_to_json(GenerationStats())) == GenerationStats()
    assert stats_from_json(stats_to_json(None)) is None


def test_stats_of_other_versions_are_read() -> None:
    values = json.loads(stats_to_json(STATS) or "")
    del values["decode_seconds"]
    values["counted_later"] = 1
    assert stats_from_json(json.dumps(values)) == STATS


def test_settings_are_plain_json() -> None:
    assert settings_from_json('{"draft": null, "stop": ["a"]}') == {"draft": None, "stop": ["a"]}


def test_half_characters_are_replaced_and_whole_ones_kept() -> None:
    assert storable("a\ud83db") == "a\N{REPLACEMENT CHARACTER}b"
    assert storable("\ud83d\ude00 人 é") == "😀 人 é"
