"""The chat as the wizard's tests see it: what its pair takes, and whether it is at work."""

from __future__ import annotations

from forespeak.engines.engine import LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.memory import Fit
from forespeak.pairing.load_plan import machine_now, plan_load
from forespeak.ui.memory_use import machine_without
from forespeak.ui.pair_controller import PairState
from forespeak.ui.parity_controller import ParityState
from forespeak.ui.session import Session
from forespeak.ui.wizard_tester import ChatWork, Room, RoomFound, Surroundings


class ChatSurroundings(Surroundings):
    def __init__(self, session: Session) -> None:
        self._session = session

    def room(self, request: LoadRequest) -> RoomFound:
        try:
            beside = plan_load(request, machine_now())
            if beside.fit is not Fit.TOO_LARGE:
                return RoomFound(Room.BESIDE)
            engine = self._session.pair.engine_pid
            if engine is None:
                return RoomFound(Room.NONE, beside.sentence)
            alone = plan_load(request, machine_without(engine, self._session.pair.status.plan))
        except UserFacingError:
            # The engine meets the same file and tells what is wrong with it.
            return RoomFound(Room.BESIDE)
        if alone.fit is Fit.TOO_LARGE:
            return RoomFound(Room.NONE, alone.sentence)
        return RoomFound(Room.ALONE, beside.sentence)

    def unload(self) -> None:
        if self._session.pair.has_client:
            self._session.pair.client.close()

    @property
    def chat_work(self) -> ChatWork | None:
        session = self._session
        if session.replies.busy_chats:
            return ChatWork.REPLY
        if session.pair.status.state in {PairState.LOADING, PairState.UNPACKING}:
            return ChatWork.LOADING
        return ChatWork.CHECK if session.parity.status.state is ParityState.RUNNING else None
