"""What the open window costs a reply: its tokens per second while it streams, against the command line's.

    QT_QPA_PLATFORM=offscreen python tests/benchmarks/bench_window_cost.py    or on a real display

The same prompt, greedy, 160 tokens, plain and with drafts of four; the two in turn, so that the machine's drift hits
both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

RUNS = 7
TOKENS = 160
PROMPT = "Explain how a bicycle stays upright, step by step."


def command_line(speculate: bool) -> float:
    arguments = [sys.executable, "-m", "forespeak", "chat", "-p", PROMPT, "--temperature", "0", "--json"]
    arguments += ["--max-tokens", str(TOKENS), "--draft-tokens", "4"]
    if not speculate:
        arguments.append("--no-speculation")
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["stats"]["tokens_per_second"])


def main() -> None:
    from forespeak.speculation.settings import SamplingSettings
    from forespeak.ui.preferences import Preferences
    from live_window import LiveWindow

    preferences = replace(Preferences(), sampling=SamplingSettings(temperature=0.0), max_tokens=TOKENS, draft_length=4)
    live = LiveWindow(preferences, (1440, 900))
    live.use_starter()

    def window(speculate: bool) -> float:
        live.session.set_preferences(replace(live.session.preferences, speculate=speculate))
        live.session.chats.new_chat()
        live.say(PROMPT)
        live.until_idle()
        stats = live.session.chats.items[-1].stats
        assert stats is not None
        return stats.tokens_per_second

    for speculate in (False, True):
        window(speculate)
        ratios: list[float] = []
        rates: list[tuple[float, float]] = []
        for _ in range(RUNS):
            # The order turns, so that neither is always the one that follows the other.
            if len(rates) % 2:
                there, here = command_line(speculate), window(speculate)
            else:
                here, there = window(speculate), command_line(speculate)
            rates.append((here, there))
            ratios.append(here / there)
        name = "drafts of 4" if speculate else "plain"
        shown = ", ".join(f"{here:.1f}/{there:.1f}" for here, there in rates)
        print(f"{name}: window / command line {statistics.median(ratios):.3f} (tokens/s {shown})", flush=True)
    live.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["FORESPEAK_HOME"] = home
        main()
