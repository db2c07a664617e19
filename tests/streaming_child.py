"""An engine that writes Markdown at a steady pace, for the process that hosts it; what it wrote is a real reply's size.

In a module of its own: the child imports it by name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from forespeak.engines.engine import (
    ConversionRequest,
    Converted,
    GenerationRequest,
    Loaded,
    LoadRequest,
    ModelSummary,
    Notice,
    PairCheck,
    Progress,
)
from forespeak.speculation.events import Event, Finished
from forespeak.speculation.trace import (
    Alternative,
    DraftedToken,
    FinishReason,
    GenerationStats,
    Origin,
    Source,
    SpeculationState,
    Step,
    Token,
)

TOKENS_PER_SECOND = 30.0
_PARAGRAPH = (
    "A bicycle stays upright because it steers into the direction in which it falls: the wheels come back below the "
    "rider, and the contact points move under the centre of mass again. The faster it goes, the less one notices of it."
)
_REPLY = f"""## How it stays upright

{_PARAGRAPH}

{_PARAGRAPH} With a **fork** that leans back, the front wheel *trails* behind the steering axis, as `trail > 0` says.

- The lean makes the front wheel turn to the same side, by its weight and by its trail.
- The turn makes a force outwards, which lifts the bicycle up again, and more so at speed.
- The rider helps a little, mostly without knowing it.

```python
def lean(angle: float, speed: float, radius: float) -> float:
    # The force outwards against the weight.
    force = speed**2 / (9.81 * radius)
    return angle - force
```

{_PARAGRAPH}

1. Push off and look ahead.
2. Steer into every fall.
3. Let go of the rest.

"""


def _pieces(text: str) -> list[str]:
    """Words with the space before them, long ones in two, as tokenizers cut them."""
    pieces: list[str] = []
    for character in text:
        if not pieces or character in " \n" or len(pieces[-1]) >= 7:
            pieces.append(character)
        else:
            pieces[-1] += character
    return pieces


def _token(at: int, text: str, origin: Origin, source: Source | None, alternatives: int) -> Token:
    others = tuple(Alternative(9000 + n, f" other{n}", 0.3 / (n + 1.37)) for n in range(alternatives))
    accepted = 0.713 if origin is Origin.ACCEPTED else None
    return Token(700 + at, text, origin, source if accepted else None, 0.6241 + at % 7 / 31, accepted, others)


def steps_of(words: list[str], speculate: bool, alternatives: int) -> Iterator[Step]:
    """Steps without a draft, or with drafts of four of which two thirds are accepted, that add up to the words."""
    source = Source.DRAFT_MODEL if speculate else None
    at = index = 0
    while at < len(words):
        accepted = (4, 1, 3, 2, 4, 0, 4)[index % 7] if source is not None and index else 0
        accepted = min(accepted, len(words) - at - 1)
        rejected: tuple[DraftedToken, ...] = ()
        own = Origin.TARGET
        if source is not None and index:
            own = Origin.BONUS if accepted == 4 else Origin.CORRECTED
            rejected = tuple(
                DraftedToken(60 + n, " other", 0.21 if n == accepted else None, 0.5) for n in range(accepted, 4)
            )
        origins = [Origin.ACCEPTED] * accepted + [own]
        emitted = tuple(_token(at + n, words[at + n], origin, source, alternatives) for n, origin in enumerate(origins))
        at += len(emitted)
        yield Step(index, emitted, rejected, (), source if index else None, 0.0041, 0.0312, 40 + at)
        index += 1


class StreamingEngine:
    """Writes the same reply over and over, until it has as many tokens as were asked for."""

    def __init__(self, pair_check: PairCheck) -> None:
        self._rate = TOKENS_PER_SECOND

    def load(
        self, request: LoadRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Loaded | None:
        summary = ModelSummary(request.target, request.target.stem, "llama 135M", 134_515_008, 1, 49152, 2048, 2048)
        return Loaded(summary, None if request.draft is None else summary, devices=("CPU",), threads=2)

    def generate(self, request: GenerationRequest, cancelled: Callable[[], bool]) -> Iterator[Notice | Event]:
        wanted = request.max_tokens or 300
        words = _pieces(_REPLY)
        words = (words * (wanted // len(words) + 1))[:wanted]
        yield SpeculationState(bool(request.sources), "Scripted.", 4 if request.sources else 0)
        began, written = time.perf_counter(), 0
        for step in steps_of(words, bool(request.sources), request.alternatives):
            if cancelled():
                break
            written += len(step.emitted)
            time.sleep(max(began + written / self._rate - time.perf_counter(), 0.0))
            yield step
        seconds = time.perf_counter() - began
        stats = GenerationStats(
            generated_tokens=written, decode_seconds=seconds, tokens_per_second=written / max(seconds, 1e-9)
        )
        yield Finished(FinishReason.LENGTH, stats)

    def convert(
        self, request: ConversionRequest, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
    ) -> Converted | None:
        return Converted(request.destination)

    def close(self) -> None:
        pass


def streaming_engine(pair_check: PairCheck) -> StreamingEngine:
    return StreamingEngine(pair_check)
