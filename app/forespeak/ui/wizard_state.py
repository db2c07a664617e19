"""Where in the pairing wizard somebody is, and how that is kept between runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from forespeak.pairing.named_pair import measurement_from, measurement_record
from forespeak.pairing.quick_prompts import KINDS_OF_WORK
from forespeak.pairing.ranking import Measurement
from forespeak.whole_file import write_durably

FORMAT = 1
_MOST_BYTES = 100_000


class WizardStep(Enum):
    TARGET = "target"
    DRAFT = "draft"
    TEST = "test"
    KEEP = "keep"

    @property
    def number(self) -> int:
        return list(WizardStep).index(self) + 1


@dataclass(frozen=True, slots=True)
class WizardState:
    """`chosen` is the key of a candidate (`wizard_words.key_of`), `kind` the user's kind of work.

    `pair_id`: a kept pair that is being tested again. `measurement`: what the test of `chosen` has shown.
    """

    step: WizardStep = WizardStep.TARGET
    target: Path | None = None
    chosen: str | None = None
    kind: str = KINDS_OF_WORK[0]
    pair_id: str | None = None
    measurement: Measurement | None = None


class WizardFile:
    """One small JSON file. A damaged or foreign one is the beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> WizardState:
        try:
            if self._path.stat().st_size > _MOST_BYTES:
                return WizardState()
            return _state(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return WizardState()

    def write(self, state: WizardState) -> None:
        """What cannot be written is lost at the end of the program, and nothing else."""
        kept = {
            "format": FORMAT,
            "step": state.step.value,
            "target": None if state.target is None else str(state.target),
            "chosen": state.chosen,
            "kind": state.kind,
            "pair": state.pair_id,
            "measurement": None if state.measurement is None else measurement_record(state.measurement),
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(self._path, json.dumps(kept, indent=1))
        except OSError:
            return


def _state(kept: dict[str, Any]) -> WizardState:
    if kept["format"] != FORMAT or kept["kind"] not in KINDS_OF_WORK:
        return WizardState()
    state = WizardState(
        WizardStep(kept["step"]),
        None if kept["target"] is None else Path(str(kept["target"])),
        None if kept["chosen"] is None else str(kept["chosen"]),
        str(kept["kind"]),
        None if kept["pair"] is None else str(kept["pair"]),
        measurement_from(kept["measurement"]),
    )
    return state if state.target is not None else WizardState(kind=state.kind)
