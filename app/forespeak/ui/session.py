"""What a running window is made of: store, engine, controllers and parts, put together here and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from forespeak.chats.records import Chat
from forespeak.chats.store import ChatStore
from forespeak.engines.engine import EngineClient, EngineEvent, LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.memory import MemoryPlan
from forespeak.ui.background import Worker
from forespeak.ui.chat_controller import ChatController
from forespeak.ui.chat_view import ChatView
from forespeak.ui.engine_bridge import EngineBridge
from forespeak.ui.hardware_controller import HardwareController, ask_engine
from forespeak.ui.live_reply import ReplySaver
from forespeak.ui.main_window import MainWindow
from forespeak.ui.memory_use import MemoryUse, plan_beside
from forespeak.ui.pair_controller import Models, PairController
from forespeak.ui.pair_view import PairView
from forespeak.ui.parity_controller import KeptResults, ParityController
from forespeak.ui.preferences import Preferences, PreferencesFile
from forespeak.ui.problem_view import ProblemView
from forespeak.ui.reply_controller import ReplyController
from forespeak.ui.settings_dialog import HUB_PAGE, SAMPLING_PAGE, STRUCTURED_PAGE, SettingsDialog

CLOSE_SECONDS = 1.6
"""What saving may take when the window closes; it must be gone within two seconds."""


class Session(QObject):
    """Everything behind one window. `start` begins to read; `close` saves and ends all of it."""

    preferencesChanged = Signal(object)

    def __init__(
        self,
        window: MainWindow,
        store: ChatStore,
        preferences: Preferences,
        preferences_file: PreferencesFile,
        models: Models,
        connect_engine: Callable[[Callable[[EngineEvent], None]], EngineClient],
        kept: KeptResults | None = None,
    ) -> None:
        super().__init__(window)
        self.window = window
        self.preferences = preferences
        self._file = preferences_file
        self._store = store
        self._closed = False
        self._settings: SettingsDialog | None = None
        self.closers: list[Callable[[], None]] = []
        """What ends the parts of pages that were made later"""
        self.settings_pages: list[tuple[str, Callable[[], QWidget]]] = []
        """Title and maker of the pages that others add to the settings"""
        self.chat_worker = Worker("chats", self)
        self.file_worker = Worker("files", self)
        self.bridge = EngineBridge(self)
        self.pair = PairController(
            models, lambda: connect_engine(self.bridge.listen), self.bridge, self.file_worker, preferences, self
        )
        self.saver = ReplySaver(store, self.chat_worker, self)
        self.replies = ReplyController(self.pair, self.bridge, self.saver, self)
        self.chats = ChatController(
            store, self.chat_worker, self.pair, self.replies, window.conversation, window.panel, preferences, self
        )
        self.parity = ParityController(self.pair, self.bridge, self.file_worker, kept, lambda: self.preferences, self)
        self.memory = MemoryUse(self.file_worker, lambda: self.pair.engine_pid, self)
        self.hardware = HardwareController(self)
        self.problems = ProblemView(window, self)
        self.pair_view = PairView(window, self.pair, self.chats, self.problems, preferences, self)
        self.chat_view = ChatView(window, self.chats, self.replies, self)
        self._write_later = QTimer(self)
        self._write_later.setSingleShot(True)
        self._write_later.setInterval(400)
        self._write_later.timeout.connect(self._write_preferences)
        self._connect()

    def start(self) -> None:
        self.pair_view.show()
        self.window.composer.set_output(self.preferences.output)
        self.chats.refresh()
        last = self.preferences.last_chat
        if last is None:
            self.chats.new_chat()
        else:
            self.chats.open_chat(last, otherwise=self.chats.new_chat)
        self.pair.start()
        self.memory.start()
        self.window.show_page(self.preferences.page)

    def close(self) -> None:
        """Stop what is being written, save it, end the engine. Takes no more than two seconds."""
        if self._closed:
            return
        self._closed = True
        self.memory.stop()
        self.hardware.close()
        self._write_later.stop()
        if self._settings is not None:
            self._settings.close()
        self.replies.close()
        # The engine's end and the disk wait for each other's time, not for each other.
        ending = threading.Thread(target=self.pair.close, name="engine-end", daemon=True)
        ending.start()
        for close in self.closers:
            close()
        saved = self.chat_worker.close(CLOSE_SECONDS)
        ending.join(CLOSE_SECONDS)
        self.file_worker.close(0.2)
        self._remember_window()
        self._write_preferences()
        if saved:
            self._store.close()

    # -- wiring

    def _connect(self) -> None:
        window = self.window
        window.settingsRequested.connect(self.open_settings)
        window.composer.settingsRequested.connect(self._open_sampling)
        window.composer.chip.opened.connect(self._open_structured)
        window.composer.chip.switchedOff.connect(self._output_off)
        self.pair.preferencesChanged.connect(self.set_preferences)
        self.pair_view.preferencesChanged.connect(self.set_preferences)
        self.chats.chatOpened.connect(self._chat_opened)
        self.chats.problemFound.connect(self.problems.show_dialog)
        self.replies.ended.connect(self.problems.reply_ended)
        self.replies.noticed.connect(self.problems.show_notice)
        self.bridge.eventArrived.connect(self.problems.engine_event)
        self.saver.failed.connect(self.problems.saving_failed)
        self.saver.recovered.connect(self.problems.saving_recovered)
        self.problems.retryRequested.connect(self.saver.retry)
        self.memory.measured.connect(window.top.set_memory)
        window.panel.parity.checkRequested.connect(self.parity.start)
        window.panel.parity.stopRequested.connect(self.parity.stop)
        self.parity.changed.connect(self._show_parity)
        self.chats.busyChanged.connect(self._reply_first)
        self.pair.changed.connect(self._show_used)

    # -- preferences

    @Slot(object)
    def load_request(self, target: Path, draft: Path | None = None) -> LoadRequest:
        """How a pair would be loaded now."""
        return self.preferences.load_request(target, draft)

    def set_preferences(self, preferences: Preferences) -> None:
        """From whoever changed them to everyone who uses them, and to disk a little later."""
        if preferences == self.preferences:
            return
        self.preferences = preferences
        self.pair.set_preferences(preferences)
        self.chats.set_preferences(preferences)
        self.pair_view.set_preferences(preferences)
        self.window.composer.set_output(preferences.output)
        if self._settings is not None:
            self._settings.set_preferences(preferences)
        self.preferencesChanged.emit(preferences)
        self._write_later.start()

    @Slot()
    def _write_preferences(self) -> None:
        try:
            self._file.write(self.preferences)
        except OSError as error:
            self.problems.show_banner(
                UserFacingError(
                    "The settings could not be saved.",
                    f"{error.strerror or error}.",
                    "They hold until the window is closed.",
                )
            )

    def _remember_window(self) -> None:
        chat = self.chats.chat
        self.preferences = replace(
            self.preferences,
            sidebar_open=self.window.sidebar_open,
            panel_open=self.window.panel_open,
            window_size=(self.window.width(), self.window.height()),
            last_chat=None if chat is None else chat.id,
            page=self.window.page,
        )

    @Slot()
    def open_settings(self) -> None:
        self._open_settings_at(0)

    @Slot()
    def open_hub_settings(self) -> None:
        self._open_settings_at(HUB_PAGE)

    @Slot()
    def _open_sampling(self) -> None:
        self._open_settings_at(SAMPLING_PAGE)

    @Slot()
    def _open_structured(self) -> None:
        self._open_settings_at(STRUCTURED_PAGE)

    @Slot()
    def _output_off(self) -> None:
        output = replace(self.preferences.output, on=False)
        self.set_preferences(replace(self.preferences, output=output))

    def _open_settings_at(self, page: int) -> None:
        if self._settings is None:
            self._settings = SettingsDialog(self.preferences, self.window, self.file_worker, self.hardware)
            self._settings.hardware.show_loaded(self.pair.status.loaded)
            for title, make in self.settings_pages:
                self._settings.add_page(make(), title)
            self._settings.preferencesChanged.connect(self.set_preferences)
            self._settings.chatPromptChanged.connect(self.chats.set_system_prompt)
            self._settings.finished.connect(self._settings_closed)
            self._before_settings = self.preferences
        chat = self.chats.chat
        self._settings.set_chat_prompt(None if chat is None else chat.system_prompt)
        self._settings.tabs.setCurrentIndex(page)
        self._settings.show()
        self._settings.raise_()
        self._settings.activateWindow()

    @Slot()
    def _settings_closed(self) -> None:
        if self._settings is not None:
            self._settings.deleteLater()
            self._settings = None
        if self.preferences.load_settings != self._before_settings.load_settings and not self._closed:
            self.pair.reload()

    @Slot(object)
    def _chat_opened(self, chat: Chat | None) -> None:
        if self._settings is not None:
            self._settings.set_chat_prompt(None if chat is None else chat.system_prompt)

    @Slot()
    def _show_parity(self) -> None:
        self.window.panel.parity.show_status(self.parity.status)

    @Slot()
    def _show_used(self) -> None:
        if self._settings is not None:
            self._settings.hardware.show_loaded(self.pair.status.loaded)

    @Slot()
    def _reply_first(self) -> None:
        """A message does not wait for a check of the pair."""
        if self.replies.busy_chats:
            self.parity.stop()

    # -- the engine

    def watch_machine(self) -> None:
        """From now on, what does not fit into this machine's memory is asked about before it is loaded.

        The settings know which devices there are, and what would fit.
        """

        def check(request: LoadRequest, loaded: MemoryPlan | None) -> MemoryPlan | None:
            return plan_beside(self.pair.engine_pid, request, loaded)

        self.pair.check_memory = check
        self.hardware.ask = ask_engine
        self.hardware.weigh = lambda request: check(request, self.pair.loaded_plan)
