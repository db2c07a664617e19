"""An engine client that plays a script from a thread: fast or slow, failing, dying, cancellable."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from forespeak.engines.engine import (
    Body,
    ConversionRequest,
    Converted,
    Died,
    EngineEvent,
    Failed,
    GenerationRequest,
    Loaded,
    LoadRequest,
    ModelSummary,
    Notice,
    Progress,
)
from forespeak.engines.parity_result import ParityRequest, ParityResult
from forespeak.speculation.events import Finished, PromptProgress
from forespeak.speculation.trace import (
    Alternative,
    DraftedToken,
    FinishReason,
    Origin,
    Source,
    SpeculationState,
    Step,
    StepCounter,
    Token,
)

Request = LoadRequest | GenerationRequest | ConversionRequest | ParityRequest


def pieces(text: str) -> list[str]:
    """Words with the space before them, as most tokenizers cut them."""
    out: list[str] = []
    for char in text:
        if not out or char in " \n":
            out.append(char)
        else:
            out[-1] += char
    return out


def scripted_steps(text: str, source: Source | None = Source.DRAFT_MODEL, draft_length: int = 4) -> list[Step]:
    """Steps that add up to `text`, with every origin among them where there is a source."""
    tokens = pieces(text)
    steps: list[Step] = []
    at, cache = 0, 40
    while at < len(tokens):
        index = len(steps)
        accepted = 0 if source is None or index == 0 else (index * 7 + 3) % (draft_length + 1)
        accepted = min(accepted, len(tokens) - at - 1)
        own = Origin.TARGET
        rejected: tuple[DraftedToken, ...] = ()
        if source is not None and index > 0:
            own = Origin.BONUS if accepted == draft_length else Origin.CORRECTED
            rejected = tuple(
                DraftedToken(900 + n, " other", 0.21 if n == accepted else None, 0.5)
                for n in range(accepted, draft_length)
            )
        emitted = [
            Token(
                at + n,
                tokens[at + n],
                Origin.ACCEPTED if n < accepted else own,
                source if n < accepted else None,
                0.62,
                0.7 if n < accepted else None,
                (
                    Alternative(at + n, tokens[at + n], 0.62),
                    Alternative(5, " other", 0.21),
                    Alternative(6, " or", 0.06),
                ),
            )
            for n in range(accepted + 1)
        ]
        cache += len(emitted)
        steps.append(Step(index, tuple(emitted), rejected, (), source if index else None, 0.002, 0.02, cache))
        at += len(emitted)
    return steps


def summary(path: Path, parameters: int = 134_515_008) -> ModelSummary:
    return ModelSummary(path, path.stem, "llama 135M", parameters, 98_362_432, 49152, 2048, 2048)


@dataclass
class Script:
    """What the next generation does. `rate` is tokens per second, None for as fast as it goes."""

    steps: Sequence[Step]
    rate: float | None = None
    ending: Body | None = None
    """In place of Finished: Failed or Died."""
    after: int | None = None
    """Steps before `ending`; all of them when None."""
    before: Sequence[Body] = ()
    hold: threading.Event | None = None
    """The first step waits for it."""
    prompt_tokens: int = 40


@dataclass
class ScriptedEngine:
    """Serves one request after the other, as EngineClient promises."""

    listener: Callable[[EngineEvent], None]
    scripts: list[Script] = field(default_factory=list)
    """Used up one by one; the last one stays."""
    load_answer: Callable[[LoadRequest], Body] | None = None
    convert_answer: Callable[[ConversionRequest], Body] | None = None
    load_gate: threading.Event | None = None
    check_answer: ParityResult | Failed | Died | None = None
    check_gate: threading.Event | None = None
    computes_on_cpu: bool = True
    load_stages: Sequence[Progress] = (Progress(0.5, "Reading the target"),)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._queue: queue.Queue[tuple[int, Request] | None] = queue.Queue()
        self._cancelled: set[int] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="scripted-engine", daemon=True)
        self._thread.start()

    # -- EngineClient

    def load(self, request: LoadRequest) -> int:
        return self._add(request)

    def generate(self, request: GenerationRequest) -> int:
        return self._add(request)

    def convert(self, request: ConversionRequest) -> int:
        return self._add(request)

    def check(self, request: ParityRequest) -> int:
        return self._add(request)

    def cancel(self, request: int) -> None:
        self._cancelled.add(request)

    def close(self) -> None:
        self._closed = True
        if self.load_gate is not None:
            self.load_gate.set()
        for script in self.scripts:
            if script.hold is not None:
                script.hold.set()
        self._queue.put(None)
        self._thread.join(2.0)
        assert not self._thread.is_alive()

    # -- what tests ask

    @property
    def generations(self) -> list[GenerationRequest]:
        return [request for request in self.requests if isinstance(request, GenerationRequest)]

    @property
    def loads(self) -> list[LoadRequest]:
        return [request for request in self.requests if isinstance(request, LoadRequest)]

    # -- the thread

    def _add(self, request: Request) -> int:
        number = next(self._numbers)
        self.requests.append(request)
        self._queue.put((number, request))
        return number

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            number, request = item
            match request:
                case LoadRequest():
                    self._load(number, request)
                case ConversionRequest():
                    self._convert(number, request)
                case ParityRequest():
                    self._check(number)
                case GenerationRequest():
                    self._generate(number, request)

    def _tell(self, number: int, body: Body) -> None:
        self.listener(EngineEvent(number, body))

    def _stopped(self, number: int) -> bool:
        return number in self._cancelled or self._closed

    def _load(self, number: int, request: LoadRequest) -> None:
        for stage in self.load_stages:
            self._tell(number, stage)
        while self.load_gate is not None and not self.load_gate.wait(0.01) and not self._stopped(number):
            pass
        if self._stopped(number):
            self._tell(number, Failed("The model was not loaded.", "It was cancelled."))
        elif self.load_answer is not None:
            self._tell(number, self.load_answer(request))
        else:
            draft = None if request.draft is None else summary(request.draft)
            self._tell(number, Loaded(summary(request.target), draft, None, None, ("CPU",), 2, self.computes_on_cpu))

    def _check(self, number: int) -> None:
        """Waits between cases; stopped, it gives those that are done."""
        assert self.check_answer is not None
        answer, done = self.check_answer, 0
        if isinstance(answer, ParityResult):
            for done, case in enumerate(answer.cases):
                self._tell(number, Progress(done / answer.planned, f"{case.prompt}, greedy"))
                while self.check_gate is not None and not self.check_gate.wait(0.01) and not self._stopped(number):
                    pass
                if self._stopped(number):
                    answer = replace(answer, cases=answer.cases[:done])
                    break
        self._tell(number, answer)

    def _convert(self, number: int, request: ConversionRequest) -> None:
        for percent in range(0, 100, 10):
            if self._stopped(number):
                self._tell(number, Failed("The starter model was not unpacked.", "It was cancelled."))
                return
            self._tell(number, Progress(percent / 100, "Unpacking"))
            time.sleep(0.005)
        if self.convert_answer is not None:
            self._tell(number, self.convert_answer(request))
            return
        request.destination.parent.mkdir(parents=True, exist_ok=True)
        request.destination.write_bytes(b"GGUF")
        self._tell(number, Converted(request.destination))

    def _generate(self, number: int, request: GenerationRequest) -> None:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        counter = StepCounter()
        began = time.perf_counter()
        self._tell(number, PromptProgress(script.prompt_tokens // 2, script.prompt_tokens, 0))
        for body in script.before:
            self._tell(number, body)
        while script.hold is not None and not script.hold.wait(0.01) and not self._stopped(number):
            pass
        self._tell(number, PromptProgress(script.prompt_tokens, script.prompt_tokens, 0))
        active = bool(request.sources)
        reason = "Drafting 4 tokens at a time, a fixed length." if active else "No draft source is in use."
        state = SpeculationState(active, reason, 4 if active else 0)
        self._tell(number, state)
        first = time.perf_counter()
        ending = FinishReason.STOP
        for index, step in enumerate(script.steps):
            if self._stopped(number):
                ending = FinishReason.CANCELLED
                break
            if script.ending is not None and script.after is not None and index >= script.after:
                break
            if script.rate is not None:
                wait = first + counter.generated / script.rate - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
            counter.add(step)
            self._tell(number, step)
        if script.ending is not None and ending is not FinishReason.CANCELLED:
            self._tell(number, script.ending)
            return
        now = time.perf_counter()
        stats = counter.summary(
            prompt_tokens=script.prompt_tokens,
            reused_prompt_tokens=0,
            time_to_first_token_seconds=first - began,
            decode_seconds=now - first,
            speculation=state,
        )
        self._tell(number, Finished(ending, stats))


__all__ = ["Died", "Failed", "Notice", "Script", "ScriptedEngine", "pieces", "scripted_steps", "summary"]
