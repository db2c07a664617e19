"""Replies on their way: the engine's events become growing replies, and every reply gets its ending."""

from __future__ import annotations

import time
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.chats.records import MessageState
from forespeak.engines.engine import Died, EngineEvent, Failed, Notice
from forespeak.speculation.events import Finished, PromptProgress
from forespeak.speculation.trace import FinishReason, SpeculationState, Step
from forespeak.ui.engine_bridge import EngineBridge
from forespeak.ui.live_reply import Ending, LiveReply, ReplySaver
from forespeak.ui.pair_controller import PairController, PairState


class ReplyController(QObject):
    """Any number of replies, which the engine takes one after the other. Those without a model wait for it."""

    grew = Signal(object, object)
    """LiveReply, tuple of the Steps that came"""
    progressed = Signal(object)
    """LiveReply whose prompt or speculation got on"""
    ended = Signal(object)
    """LiveReply with its ending, which may not be on disk yet"""
    noticed = Signal(str)
    """Something the engine wants known about a reply, beside its text"""
    stored = Signal(object)
    """LiveReply that is over and wholly on disk"""

    def __init__(
        self, pair: PairController, bridge: EngineBridge, saver: ReplySaver, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._pair = pair
        self._bridge = bridge
        self._saver = saver
        self._live: list[LiveReply] = []
        self._plain_rates: dict[tuple[object, ...], float] = {}
        saver.stored.connect(self._stored)
        bridge.stepsArrived.connect(self._on_steps)
        bridge.eventArrived.connect(self._on_event)
        pair.changed.connect(self._pair_changed)

    # -- what others ask

    def of_message(self, message: int) -> LiveReply | None:
        return next((reply for reply in self._live if reply.message == message), None)

    def writing_in(self, chat: int) -> LiveReply | None:
        """The reply that is being written there, or waits to be."""
        return next((reply for reply in self._live if reply.chat == chat and reply.ending is None), None)

    @property
    def busy_chats(self) -> set[int]:
        return {reply.chat for reply in self._live if reply.ending is None}

    def plain_rate(self, key: tuple[object, ...]) -> float | None:
        """Tokens per second measured without speculation, the last time, under these conditions."""
        return self._plain_rates.get(key)

    # -- what is asked of it

    def start(self, reply: LiveReply) -> None:
        self._live.append(reply)
        self._saver.track(reply)
        if self._pair.status.state is PairState.READY:
            self._send(reply)

    def stop(self, reply: LiveReply) -> None:
        """End early. What has been written stays."""
        if reply.ending is not None:
            return
        if reply.number is None:
            self._end(reply, Ending(MessageState.STOPPED, self.tr("Stopped before the model was ready.")))
        else:
            self._pair.client.cancel(reply.number)

    def close(self) -> None:
        """The window closes: whatever is still being written ends here and is saved as far as it came."""
        for reply in self._live:
            if reply.ending is None:
                if reply.number is not None:
                    self._bridge.forget(reply.number)
                    self._pair.client.cancel(reply.number)
                reply.ending = Ending(MessageState.STOPPED, self.tr("Stopped when the window was closed."))
        self._saver.save_last()

    # -- inside

    def _send(self, reply: LiveReply) -> None:
        reply.sent_at = time.perf_counter()
        reply.number = self._pair.client.generate(reply.request)
        self._bridge.watch(reply.number)

    def _of_number(self, number: int) -> LiveReply | None:
        return next((reply for reply in self._live if reply.number == number and reply.ending is None), None)

    @Slot()
    def _pair_changed(self) -> None:
        status = self._pair.status
        waiting = [reply for reply in self._live if reply.number is None and reply.ending is None]
        if status.state is PairState.READY:
            for reply in waiting:
                self._send(reply)
        elif status.state in {PairState.FAILED, PairState.EMPTY, PairState.OFFERED}:
            problem = status.problem
            note = self.tr("No model is loaded.") if problem is None else f"{problem.what} {problem.why}".strip()
            for reply in waiting:
                self._end(reply, Ending(MessageState.FAILED, note))

    @Slot(object, object)
    def _on_steps(self, number: int, steps: Sequence[Step]) -> None:
        reply = self._of_number(number)
        if reply is None:
            return
        reply.add(steps)
        self.grew.emit(reply, steps)

    @Slot(object)
    def _on_event(self, event: EngineEvent) -> None:
        reply = self._of_number(event.request)
        if reply is None:
            return
        match event.body:
            case PromptProgress(done, total):
                reply.prompt = (done, total)
                self.progressed.emit(reply)
            case SpeculationState() as state:
                reply.speculation = state
                self.progressed.emit(reply)
            case Notice(text):
                self.noticed.emit(text)
            case Finished(reason, stats):
                if not reply.request.sources and stats.tokens_per_second > 0:
                    self._plain_rates[reply.plain_key] = stats.tokens_per_second
                state_after = MessageState.STOPPED if reason is FinishReason.CANCELLED else MessageState.COMPLETE
                self._end(reply, Ending(state_after, self._note(reason), "", stats, reason))
            case Failed() as problem:
                words = " ".join(part for part in (problem.what, problem.why, problem.remedy) if part)
                self._end(reply, Ending(MessageState.FAILED, words, problem.details))
            case Died() as death:
                words = " ".join(part for part in (death.what, death.why, death.remedy) if part)
                self._end(reply, Ending(MessageState.INTERRUPTED, words, death.details))
            case _:
                pass

    def _note(self, reason: FinishReason) -> str:
        if reason is FinishReason.CONTEXT_FULL:
            return self.tr("The model's context is full. A new chat, or a longer context in Settings, goes on.")
        if reason is FinishReason.LENGTH:
            return self.tr("The reply reached the length set in Settings.")
        return ""

    def _end(self, reply: LiveReply, ending: Ending) -> None:
        reply.ending = ending
        if reply.number is not None:
            self._bridge.forget(reply.number)
        self._saver.end(reply)
        self.ended.emit(reply)

    @Slot(object)
    def _stored(self, reply: LiveReply) -> None:
        self._live.remove(reply)
        self.stored.emit(reply)
