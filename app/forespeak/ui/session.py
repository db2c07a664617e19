"""What a running window is made of: store, engine, controllers and parts, put together here and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from forespeak.chats.records import Chat, MessageState
from forespeak.chats.store import ChatStore
from forespeak.engines.engine import Died, EngineClient, EngineEvent, Failed
from forespeak.errors import UserFacingError
from forespeak.speculation.trace import Source, SpeculationState
from forespeak.ui.background import Worker
from forespeak.ui.chat_controller import ChatController
from forespeak.ui.chat_list import ChatEntry
from forespeak.ui.dialogs import ErrorDialog, Problem
from forespeak.ui.engine_bridge import EngineBridge
from forespeak.ui.live_reply import LiveReply, ReplySaver
from forespeak.ui.main_window import MainWindow
from forespeak.ui.memory_use import MemoryUse
from forespeak.ui.model_picker import Choice, Place
from forespeak.ui.pair_controller import Models, PairController, PairState
from forespeak.ui.pair_view import show_card
from forespeak.ui.preferences import Preferences, PreferencesFile
from forespeak.ui.reply_controller import ReplyController
from forespeak.ui.settings_dialog import SAMPLING_PAGE, SettingsDialog

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
    ) -> None:
        super().__init__(window)
        self.window = window
        self.preferences = preferences
        self._file = preferences_file
        self._store = store
        self._closed = False
        self._unsent: dict[int | None, str] = {}
        """Texts begun in other chats, by chat."""
        self._banner_problem: Problem | None = None
        self._last_refusal = ""
        self._context_used: int | None = None
        self._settings: SettingsDialog | None = None
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
        self.memory = MemoryUse(self.file_worker, self._engine_pid, self)
        self._entries: tuple[Chat, ...] = ()
        self._write_later = QTimer(self)
        self._write_later.setSingleShot(True)
        self._write_later.setInterval(400)
        self._write_later.timeout.connect(self._write_preferences)
        self._connect()

    def start(self) -> None:
        self.window.set_choices(self._choices)
        self._show_pair()
        self.chats.refresh()
        last = self.preferences.last_chat
        if last is None:
            self.chats.new_chat()
        else:
            self.chats.open_chat(last, otherwise=self.chats.new_chat)
        self.pair.start()
        self.memory.start()
        self.window.composer.setFocus()

    def close(self) -> None:
        """Stop what is being written, save it, end the engine. Takes no more than two seconds."""
        if self._closed:
            return
        self._closed = True
        self.memory.stop()
        self._write_later.stop()
        if self._settings is not None:
            self._settings.close()
        self.replies.close()
        # The engine's end and the disk wait for each other's time, not for each other.
        ending = threading.Thread(target=self.pair.close, name="engine-end", daemon=True)
        ending.start()
        saved = self.chat_worker.close(CLOSE_SECONDS)
        ending.join(CLOSE_SECONDS)
        self.file_worker.close(0.2)
        self._remember_window()
        self._write_preferences()
        if saved:
            self._store.close()

    # -- wiring

    def _connect(self) -> None:
        window, composer, view = self.window, self.window.composer, self.window.conversation
        window.newChatRequested.connect(self.new_chat)
        window.settingsRequested.connect(self.open_settings)
        window.veil.fileDropped.connect(self._dropped)
        window.chats.chatSelected.connect(self._select_chat)
        window.chats.renameRequested.connect(self.chats.rename)
        window.chats.deleteRequested.connect(self.chats.delete)
        window.chats.searchChanged.connect(self.chats.search)
        window.top.target.picked.connect(self.pair.pick_target)
        window.top.draft.picked.connect(self._draft_picked)
        window.top.draft.lookupPicked.connect(self._lookup_picked)
        window.top.target.browseRequested.connect(self._browse_target)
        window.top.draft.browseRequested.connect(self._browse_draft)
        window.top.speculation.changed.connect(self._speculation_changed)
        window.card.primaryRequested.connect(self._card_primary)
        window.card.secondaryRequested.connect(self._card_secondary)
        window.card.detailsRequested.connect(self._card_details)
        window.banner.actionRequested.connect(self._banner_action)
        composer.sendRequested.connect(self.chats.send)
        composer.stopRequested.connect(self.chats.stop)
        composer.editLastRequested.connect(self.edit_last)
        composer.editCancelled.connect(self._cancel_edit)
        composer.settingsRequested.connect(self._open_sampling)
        view.regenerateRequested.connect(self.chats.regenerate)
        view.editRequested.connect(self._edit)
        view.copyRequested.connect(self._copy)
        view.versionRequested.connect(self.chats.show_version)
        self.pair.changed.connect(self._show_pair)
        self.pair.preferencesChanged.connect(self.set_preferences)
        self.pair.problemFound.connect(self._show_error)
        self.chats.chatsChanged.connect(self._show_chats)
        self.chats.chatOpened.connect(self._chat_opened)
        self.chats.busyChanged.connect(self._show_busy)
        self.chats.messageTaken.connect(self._message_taken)
        self.chats.contextChanged.connect(self._show_context)
        self.chats.chatDeleted.connect(self._chat_deleted)
        self.chats.problemFound.connect(self._show_error)
        self.replies.ended.connect(self._reply_ended)
        self.saver.failed.connect(self._saving_failed)
        self.saver.recovered.connect(self.window.banner.dismiss)
        self.memory.measured.connect(window.top.set_memory)

    # -- preferences

    @Slot(object)
    def set_preferences(self, preferences: Preferences) -> None:
        """From whoever changed them to everyone who uses them, and to disk a little later."""
        if preferences == self.preferences:
            return
        self.preferences = preferences
        self.pair.set_preferences(preferences)
        self.chats.set_preferences(preferences)
        if self._settings is not None:
            self._settings.set_preferences(preferences)
        self._show_pair()
        self.preferencesChanged.emit(preferences)
        self._write_later.start()

    @Slot()
    def _write_preferences(self) -> None:
        try:
            self._file.write(self.preferences)
        except OSError as error:
            self._show_banner(
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
        )

    @Slot()
    def open_settings(self) -> None:
        self._open_settings_at(0)

    @Slot()
    def _open_sampling(self) -> None:
        self._open_settings_at(SAMPLING_PAGE)

    def _open_settings_at(self, page: int) -> None:
        if self._settings is None:
            self._settings = SettingsDialog(self.preferences, self.window)
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
        before, now = self._before_settings, self.preferences
        needs_loading = (before.context_length, before.threads, before.reproducible) != (
            now.context_length,
            now.threads,
            now.reproducible,
        )
        if needs_loading and not self._closed:
            self.pair.reload()

    # -- the pair

    def _choices(self) -> Sequence[Choice]:
        """The starter pair always, then what was used last."""
        starter = self.pair.starter
        paths: list[Path] = [] if starter is None else [starter.target, starter.draft]
        paths += [path for path in self.preferences.recent if path not in paths and path.is_file()]
        return [Choice(path, self.pair.name(path)) for path in paths]

    @Slot(object)
    def _draft_picked(self, path: Path | None) -> None:
        self.set_preferences(replace(self.preferences, source=Source.DRAFT_MODEL))
        self.pair.pick_draft(path)

    @Slot()
    def _lookup_picked(self) -> None:
        self.set_preferences(replace(self.preferences, source=Source.PROMPT_LOOKUP, speculate=True))

    @Slot(bool, object)
    def _speculation_changed(self, on: bool, source: Source) -> None:
        self.set_preferences(replace(self.preferences, speculate=on, source=source))

    @Slot(object, object)
    def _dropped(self, place: Place, path: Path) -> None:
        if place is Place.TARGET:
            self.pair.pick_target(path)
        else:
            self._draft_picked(path)

    @Slot()
    def _browse_target(self) -> None:
        self._browse(self.tr("Choose a target"), self.pair.pick_target)

    @Slot()
    def _browse_draft(self) -> None:
        self._browse(self.tr("Choose a draft model"), self._draft_picked)

    def _browse(self, title: str, take: Callable[[Path], None]) -> None:
        near = self.preferences.target.parent if self.preferences.target is not None else Path.home()
        words = self.tr("Models (*.gguf);;All files (*)")
        name, _ = QFileDialog.getOpenFileName(self.window, title, str(near), words)
        if name:
            take(Path(name))

    @Slot()
    def _show_pair(self) -> None:
        status = self.pair.status
        self.window.top.show_pair(status, self.preferences, self.pair.name)
        show_card(self.window.card, status, self.pair.starter, self.pair.name(status.target))
        composer = self.window.composer
        composer.set_blocked(None if status.can_send else self.tr("Choose a model first."))
        waits = status.can_send and status.state is not PairState.READY
        composer.set_hint(self.tr("Will be answered when the model is ready.") if waits else "")
        sampling = self.preferences.sampling
        composer.set_settings_summary(self.tr("T {value:g}").format(value=sampling.temperature))
        self._show_context(self._context_used)
        if not self.chats.busy:
            self.window.panel.set_state(self._speculation_ahead())
        fit = status.fit
        if fit is not None and not fit.fits and fit.full != self._last_refusal:
            self._last_refusal = fit.full
            self._show_banner(
                UserFacingError("This draft cannot serve the target.", fit.full, "The target answers without it.")
            )

    def _speculation_ahead(self) -> SpeculationState | None:
        """What the next message has to expect, as far as that is known before it is sent."""
        preferences = self.preferences
        if not preferences.speculate:
            return SpeculationState(False, self.tr("Speculation is switched off."))
        if preferences.source is Source.DRAFT_MODEL:
            if preferences.draft is None and preferences.target is not None:
                return SpeculationState(False, self.tr("No draft is chosen."))
            if self.pair.status.draft_problem is not None:
                return SpeculationState(False, self.pair.status.draft_problem)
        return None

    @Slot()
    def _card_primary(self) -> None:
        state = self.pair.status.state
        if state is PairState.OFFERED:
            self.pair.use_starter()
        elif state is PairState.FAILED:
            self.pair.retry()
        elif state is PairState.EMPTY:
            self._browse_target()

    @Slot()
    def _card_secondary(self) -> None:
        if self.pair.status.state in {PairState.UNPACKING, PairState.LOADING}:
            self.pair.cancel()
        else:
            self._browse_target()

    @Slot()
    def _card_details(self) -> None:
        if self.pair.status.problem is not None:
            self._show_error(self.pair.status.problem)

    def _engine_pid(self) -> int | None:
        # Other engines have no process of their own.
        return getattr(self.pair.client, "pid", None) if self.pair.has_client else None

    # -- chats

    @Slot()
    def new_chat(self) -> None:
        self._keep_text()
        self.chats.new_chat()
        self.window.composer.setFocus()

    @Slot(int)
    def _select_chat(self, chat: int) -> None:
        self._keep_text()
        self.chats.open_chat(chat)

    def _keep_text(self) -> None:
        if self.chats.editing is None:
            chat = self.chats.chat
            self._unsent[None if chat is None else chat.id] = self.window.composer.text()

    @Slot(object)
    def _show_chats(self, chats: tuple[Chat, ...]) -> None:
        self._entries = chats
        busy = self.replies.busy_chats
        open_chat = self.chats.chat
        entries = [
            ChatEntry(
                chat.id,
                chat.title or self.tr("Untitled"),
                datetime.fromtimestamp(chat.updated_at).astimezone(),
                chat.id in busy,
            )
            for chat in chats
        ]
        now = datetime.now().astimezone()
        self.window.chats.set_entries(entries, None if open_chat is None else open_chat.id, now)

    @Slot(object)
    def _chat_opened(self, chat: Chat | None) -> None:
        self.window.chats.set_current(None if chat is None else chat.id)
        self.window.setWindowTitle("Forespeak" if chat is None else f"{chat.title} – Forespeak")
        self.window.composer.set_editing(False)
        text = self._unsent.pop(None if chat is None else chat.id, "")
        if text != self.window.composer.text():
            self.window.composer.set_text(text)
        if self._settings is not None:
            self._settings.set_chat_prompt(None if chat is None else chat.system_prompt)

    @Slot()
    def _show_busy(self) -> None:
        self.window.composer.set_generating(self.chats.busy)

    @Slot()
    def _message_taken(self) -> None:
        chat = self.chats.chat
        self._unsent.pop(None if chat is None else chat.id, None)
        self.window.composer.set_text("")
        self.window.composer.set_editing(False)

    @Slot(object)
    def _show_context(self, used: int | None) -> None:
        self._context_used = used
        loaded = self.pair.status.loaded
        self.window.composer.set_context(used, 0 if loaded is None else loaded.target.context_length)

    @Slot(object)
    def _chat_deleted(self, chat: Chat) -> None:
        title = chat.title if len(chat.title) <= 40 else f"{chat.title[:39]}…"
        words = self.tr("Deleted “{title}”").format(title=title)
        self.window.toast.offer(words, self.tr("Undo"), lambda: self.chats.restore(chat.id))

    @Slot()
    def edit_last(self) -> None:
        self._begin_edit(self.chats.edit())

    @Slot(int)
    def _edit(self, message: int) -> None:
        self._begin_edit(self.chats.edit(message))

    def _begin_edit(self, text: str | None) -> None:
        if text is not None:
            composer = self.window.composer
            composer.set_text(text)
            composer.set_editing(True)
            composer.setFocus()

    @Slot()
    def _cancel_edit(self) -> None:
        self.chats.cancel_edit()
        self.window.composer.set_text("")

    @Slot(int)
    def _copy(self, message: int) -> None:
        QGuiApplication.clipboard().setText(self.chats.text_of(message))

    @Slot()
    def copy_last_reply(self) -> None:
        last = self.chats.last_reply()
        if last is not None:
            self._copy(last)

    # -- problems

    @Slot(object)
    def _reply_ended(self, reply: LiveReply) -> None:
        ending = reply.ending
        if ending is not None and ending.details and ending.state in {MessageState.INTERRUPTED, MessageState.FAILED}:
            self._show_banner(Failed(ending.note, details=ending.details))

    @Slot(object)
    def _saving_failed(self, error: UserFacingError) -> None:
        self._show_banner(error, self.tr("Try again"))

    def _show_banner(self, problem: Problem, action: str = "") -> None:
        self._banner_problem = problem
        has_details = not isinstance(problem, UserFacingError) and bool(problem.details)
        words = " ".join(part for part in (problem.what, problem.why, problem.remedy) if part)
        self.window.banner.show_message(words, action or (self.tr("Details") if has_details else ""))

    @Slot()
    def _banner_action(self) -> None:
        if isinstance(self._banner_problem, Failed | Died):
            self._show_error(self._banner_problem)
        else:
            self.saver.retry()

    @Slot(object)
    def _show_error(self, problem: Problem) -> None:
        dialog = ErrorDialog(problem, self.window)
        dialog.setModal(True)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()
