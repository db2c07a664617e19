"""A process that compares, slowly, until it is killed: it tells its comparison's id, then each finished run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from compare.lane_plans import measured, plan
from compare.timed_engine import TimedEngine, prompts
from forespeak.compare.runner import Happening, Ran
from forespeak.engines.engine import GenerationRequest


def tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def main() -> int:
    folder = Path(sys.argv[1])
    told = False

    def listen(happening: Happening) -> None:
        nonlocal told
        if not told:
            told = True
            tell(next(folder.glob("*.jsonl")).stem)
        if isinstance(happening, Ran):
            tell("ran", happening.run.task.way.name.replace(" ", "-"))

    def slowly(_: GenerationRequest) -> str | None:
        time.sleep(0.05)
        return None

    measured(plan(prompts=prompts("code", "prose", each=3)), folder, TimedEngine(fails=slowly), listen=listen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
