"""The Compare page joined with the rest of the window: what is set up becomes a plan, what was found is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFileDialog

from forespeak.compare.lanes import Plan
from forespeak.compare.prompts import suite_prompts
from forespeak.engines.engine import Role
from forespeak.errors import UserFacingError
from forespeak.models.formats import model_stem
from forespeak.models.library_item import LibraryItem
from forespeak.pairing.pairs import FOLDER, NamedPairs
from forespeak.ui.appearance import mark_style
from forespeak.ui.background import Worker
from forespeak.ui.compare_choices import LaneChoices, ScanLibrary
from forespeak.ui.compare_conditions import ChosenConditions
from forespeak.ui.compare_controller import CompareController, CompareState, Desk, KeptComparison, Removed
from forespeak.ui.compare_entry import COMPARE_PAGE
from forespeak.ui.compare_export import Exporter
from forespeak.ui.compare_lanes_edit import LaneOption
from forespeak.ui.compare_memory import MemoryGate
from forespeak.ui.compare_page import COMPARE_TAB, HISTORY_TAB, RESULT_TAB, ComparePage
from forespeak.ui.compare_planning import forecast_of, history_until, plan_of
from forespeak.ui.compare_values import Forecast, HistoryRow, Setup
from forespeak.ui.message_parts import plain_rate_of
from forespeak.ui.pair_controller import Models, PairState
from forespeak.ui.preferences import Preferences
from forespeak.ui.session import Session


def no_library(_: Callable[[], bool]) -> Sequence[LibraryItem]:
    return ()


class CompareView(QObject):
    """`data` is the folder in which the kept pairs lie; `library` lists the models on this computer."""

    def __init__(
        self, session: Session, desk: Desk, data: Path, models: Models, library: ScanLibrary = no_library
    ) -> None:
        super().__init__(session)
        self._session, self._desk = session, desk
        self._pairs_folder = data / FOLDER
        self._choices = LaneChoices(session, models, self._pairs_folder, library, self)
        self._shown_target: Path | None = None
        """Of which the lanes are"""
        self._suite = suite_prompts()
        self._worker = Worker("comparisons", self)
        self.controller = CompareController(desk, self._put_chat_away, self)
        self._page: ComparePage | None = None
        self._exporter: Exporter | None = None
        self._query = ""
        self._opened: KeptComparison | None = None
        self._put_away = False
        self._asked = 0
        """Grows with each question about a set-up: older answers no longer count."""

    @property
    def page(self) -> ComparePage | None:
        return self._page

    def close(self) -> None:
        self.controller.close()
        self._choices.close()
        if self._exporter is not None:
            self._exporter.close()
        self._worker.close(0.5)

    def make_page(self) -> ComparePage:
        counts = Counter(prompt.category for prompt in self._suite)
        self._page = page = ComparePage(list(counts.items()))
        self._exporter = Exporter(page, self._desk.export, self._failed)
        session = self._session
        self._gate = MemoryGate(page, self._worker, lambda: session.pair.check_memory, lambda: session.pair.status.plan)
        self._conditions = ChosenConditions(session, page.setup)
        self._conditions.changed.connect(self._estimate)
        self._choices.found.connect(self._show_choices)
        self._choices.failed.connect(self._failed)
        self._choices.picked.connect(page.setup.lanes.add_option)
        page.setup.lanes.fileRequested.connect(self._choose_draft)
        setup, running, result, history = page.setup, page.running, page.result, page.history
        setup.startRequested.connect(self.start)
        setup.changed.connect(self._estimate)
        setup.modelsRequested.connect(self._to_models)
        running.pauseRequested.connect(self.controller.pause)
        running.goOnRequested.connect(self.controller.go_on)
        running.stopRequested.connect(self.controller.stop)
        result.exportRequested.connect(self._export)
        result.againRequested.connect(self._again)
        result.resumeRequested.connect(self._resume)
        history.openRequested.connect(self._open)
        history.renameRequested.connect(self._rename)
        history.deleteRequested.connect(self._delete)
        history.searchChanged.connect(self._search)
        history.twoRequested.connect(self._open_two)
        history.newRequested.connect(self._new)
        page.toast.changed.connect(session.window.undoChanged)
        page.tabs.currentChanged.connect(self._tab_shown)
        controller = self.controller
        controller.changed.connect(self._show_status)
        controller.runBegan.connect(running.begin_run)
        controller.stepsCame.connect(running.add_steps)
        controller.runEnded.connect(running.end_run)
        controller.finished.connect(self._finished)
        controller.failed.connect(self._nothing_kept)
        session.pair.changed.connect(self._show_pair)
        session.chats.chatOpened.connect(self._show_chat)
        session.chats.busyChanged.connect(self._chat_busy)
        session.preferencesChanged.connect(self._show_preferences)
        session.window.pageShown.connect(self._page_shown)
        self._show_preferences(session.preferences)
        self._show_chat()
        self._search("")
        return page

    # -- what is set up

    @Slot(object)
    def _show_preferences(self, preferences: Preferences) -> None:
        if self._page is not None:
            self._page.set_mark_style(mark_style(preferences.marks))
            self._show_pair()

    @Slot()
    def _show_pair(self) -> None:
        """The chat's target and what its lanes can be."""
        page, pair = self._page, self._session.pair
        if page is None:
            return
        target = self._session.preferences.target
        page.setup.set_target(pair.name(target))
        self._conditions.show()
        self._show_obstacle()
        if not self.controller.busy:
            self._choices.show_pair()

    @Slot(object, object)
    def _show_choices(self, target: Path, options: tuple[LaneOption, ...]) -> None:
        if target != self._session.preferences.target or self._page is None:
            return
        lanes = self._page.setup.lanes
        if target != self._shown_target:
            lanes.forget_added()
        self._shown_target = target
        self._page.setup.set_options(options)

    @Slot()
    def _choose_draft(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self._page, self.tr("Choose a draft model"), "", self.tr("GGUF models (*.gguf);;All files (*)")
        )
        if name:
            self._choices.pick(Path(name))

    def _show_obstacle(self) -> None:
        page = self._page
        if page is None or self._session.preferences.target is None:
            return
        obstacle = self._obstacle()
        page.setup.set_obstacle("" if obstacle is None else f"{obstacle.what} {obstacle.remedy}")

    def _obstacle(self) -> UserFacingError | None:
        """Why the chat's engine cannot give way now."""
        if self._session.pair.status.state in {PairState.UNPACKING, PairState.LOADING}:
            return UserFacingError(
                self.tr("The chat’s model is being loaded."),
                self.tr("A comparison would end that."),
                self.tr("Wait until it is ready."),
            )
        if self._session.replies.busy_chats:
            words = self.tr("A reply is being written.")
            return UserFacingError(words, self.tr("Both would be slow."), self.tr("Wait for it, or stop it first."))
        return None

    @Slot()
    def _show_chat(self, *_: object) -> None:
        """The last message of the open chat, with what stands before it."""
        if self._page is not None:
            items = [(item.role, item.text) for item in self._session.chats.items]
            self._page.setup.set_chat(history_until(self._system_prompt, items))

    @property
    def _system_prompt(self) -> str:
        chat = self._session.chats.chat
        return "" if chat is None else chat.system_prompt

    def compare_reply(self, message: int) -> None:
        """Set up on what that reply of the open chat answers."""
        page = self._page
        if page is None:
            return
        items = self._session.chats.items
        place = next((number for number, item in enumerate(items) if item.id == message), None)
        if place is None:
            return
        before = [(item.role, item.text) for item in items[:place] if item.role is not Role.SYSTEM]
        page.show_tab(COMPARE_TAB)
        if not self.controller.busy:
            page.show_setup()
            self._conditions.forget()
            page.setup.choose_chat_prompt(history_until(self._system_prompt, before))
            page.setup.take_focus()

    @Slot()
    def _chat_busy(self) -> None:
        self._show_obstacle()
        chatting = bool(self._session.replies.busy_chats)
        self.controller.set_chatting(chatting)
        if not chatting:
            self._show_chat()
        self._show_trouble()

    def _show_trouble(self) -> None:
        """What failed and is recorded, and what disturbs at the moment."""
        if self._page is None or not self.controller.busy:
            return
        words = [self.controller.status.problem]
        if self._session.replies.busy_chats:
            words.append(self.tr("A message is being answered meanwhile, which disturbs what is measured now."))
        self._page.running.show_problem("\n".join(part for part in words if part))

    @Slot()
    def _to_models(self) -> None:
        self._session.window.show_page("models")

    @Slot()
    def _estimate(self) -> None:
        """Runs and time of what is set up, by the speed that was measured of this target here."""
        page, target = self._page, self._session.preferences.target
        if page is None or target is None or not page.setup.can_start:
            return
        self._asked += 1
        asked, plan = self._asked, self._planning(page.setup.setup, target)
        rate, pairs = self._plain_rate(), NamedPairs(self._pairs_folder)

        def reckon() -> Forecast | None:
            try:
                planned = plan()
            except (UserFacingError, ValueError):
                return None
            kept = [each.current_measurement for each in pairs.of_target(target)]
            measured = rate or next((each.plain for each in kept if each is not None), None)
            words = "" if not measured else self.tr("By {0} tokens/s without speculation, measured here.")
            return forecast_of(planned, measured, words.format(f"{measured:.1f}" if measured else ""))

        def reckoned(forecast: Forecast | None) -> None:
            if asked == self._asked and self._page is not None:
                self._page.setup.set_forecast(forecast)

        self._worker.run(reckon, reckoned, self._failed)

    def _planning(self, setup: Setup, target: Path) -> Callable[[], Plan]:
        """Makes the plan, off the UI thread: it reads the file of prompts."""
        conditions = self._conditions.current
        return lambda: plan_of(setup, target, conditions, self._suite, self._desk.read_prompts)

    def _plain_rate(self) -> float | None:
        """Of the target, as the chat has measured it or an opened comparison."""
        rates = [plain_rate_of(item) for item in reversed(self._session.chats.items)]
        known = next((rate for rate in rates if rate), None)
        opened = self._opened
        if known is None and opened is not None and opened.plan.target == self._session.preferences.target:
            plain = [rate.value for lane in opened.values.lanes if lane.is_plain for rate in lane.rates]
            known = sum(plain) / len(plain) if plain else None
        return known

    # -- measuring

    @Slot(object)
    def start(self, setup: Setup) -> None:
        target = self._session.preferences.target
        if target is None or self.controller.busy or self._gate.asking:
            return

        def planned(plan: Plan) -> None:
            self._begin_if_it_fits(lambda: self.controller.start(plan, ""), plan)

        self._worker.run(self._planning(setup, target), planned, self._failed)

    @Slot()
    def _resume(self) -> None:
        opened = self._opened
        if opened is not None and not self.controller.busy and not self._gate.asking:
            self._begin_if_it_fits(lambda: self.controller.resume(opened.values.id, opened.plan), opened.plan)

    def _begin_if_it_fits(self, begin: Callable[[], None], plan: Plan) -> None:
        self._gate.pass_by(plan, lambda: self._begin(begin, plan))

    def _begin(self, begin: Callable[[], None], plan: Plan) -> None:
        """The chat's engine gives way: not while it writes or loads."""
        page = self._page
        if page is None or self.controller.busy:
            return
        obstacle = self._obstacle()
        if obstacle is not None:
            self._failed(obstacle)
            return
        self._session.parity.stop()
        lanes, bases = plan.all_lanes, set(plan.bases.values())
        page.running.begin(
            [lane.name for lane in lanes],
            [number for number, lane in enumerate(lanes) if lane in bases],
            [number for number, lane in enumerate(lanes) if lane.is_off],
        )
        page.show_running()
        page.show_tab(COMPARE_TAB)
        self._take_focus()
        begin()

    def _put_chat_away(self) -> None:
        """On the comparison's thread: what the chat's engine holds is wanted for the lanes."""
        pair = self._session.pair
        if pair.engine_pid is not None:
            pair.client.close()
            self._put_away = True

    def _bring_chat_back(self) -> None:
        pair = self._session.pair
        if self._put_away and pair.engine_pid is None and pair.status.state is PairState.READY:
            pair.reload()
        self._put_away = False

    @Slot()
    def _show_status(self) -> None:
        page, status = self._page, self.controller.status
        if page is None:
            return
        button = self._session.window.navigation.button(COMPARE_PAGE)
        if status.state is CompareState.IDLE:
            button.setText(self.tr("Compare"))
            page.running.set_stopping(False)
            return
        running = page.running
        running.set_paused(
            status.state in {CompareState.PAUSING, CompareState.PAUSED}, waiting=status.state is CompareState.PAUSING
        )
        running.set_stopping(status.state is CompareState.STOPPING)
        if status.state is CompareState.RUNNING and status.doing:
            running.show_doing(status.doing)
        running.show_progress(status.done, status.total, status.seconds_left)
        self._show_trouble()
        share = f"{100 * status.done // status.total} %" if status.total else ""
        page.show_running(share, paused=status.state is CompareState.PAUSED)
        button.setText(self.tr("Compare ({0})").format(share) if share else self.tr("Compare"))

    @Slot(str)
    def _finished(self, comparison: str) -> None:
        self._bring_chat_back()
        page = self._page
        if page is None:
            return
        watched = page.tabs.currentIndex() == COMPARE_TAB
        page.show_setup()
        self._show_pair()
        self._search(self._query)
        if comparison:
            self._open(comparison, show=watched)
        else:
            page.setup.set_note(self.tr("Ended before anything was measured."))

    @Slot(object)
    def _nothing_kept(self, error: UserFacingError) -> None:
        self._bring_chat_back()
        if self._page is not None:
            self._page.show_setup()
        self._search(self._query)
        self._failed(error)

    # -- what is kept

    @Slot(str)
    def _open(self, comparison: str, *, show: bool = True) -> None:
        def opened(found: KeptComparison) -> None:
            if self._page is None:
                return
            self._opened = found
            self._page.show_result(found.values)
            if show:
                self._page.show_tab(RESULT_TAB)
                self._take_focus()

        self._worker.run(lambda: self._desk.open(comparison), opened, self._failed)

    @Slot(str, str)
    def _open_two(self, first: str, second: str) -> None:
        def opened(found: tuple[KeptComparison, KeptComparison]) -> None:
            if self._page is not None:
                self._page.show_two(found[0].values, found[1].values)

        self._worker.run(lambda: (self._desk.open(first), self._desk.open(second)), opened, self._failed)

    @Slot(str)
    def _search(self, query: str) -> None:
        self._query = query

        def found(rows: tuple[HistoryRow, ...]) -> None:
            if query == self._query and self._page is not None:
                self._page.show_history(rows, query)

        self._worker.run(lambda: self._desk.rows(query), found, self._failed)

    @Slot(str, str)
    def _rename(self, comparison: str, name: str) -> None:
        def renamed(_: None) -> None:
            self._search(self._query)
            if self._opened is not None and self._opened.values.id == comparison and self._page is not None:
                self._page.result.set_name(name)

        self._worker.run(lambda: self._desk.rename(comparison, name), renamed, self._failed)

    @Slot(object)
    def _delete(self, comparisons: tuple[str, ...]) -> None:
        def removed(found: Removed) -> None:
            self._search(self._query)
            page = self._page
            if page is None:
                return
            if self._opened is not None and self._opened.values.id in comparisons:
                self._opened = None
                page.hide_result()
            count = len(comparisons)
            words = self.tr("Comparison deleted") if count == 1 else self.tr("{0} comparisons deleted").format(count)
            page.toast.offer(words, self.tr("Undo"), lambda: self._restore(found))

        self._worker.run(lambda: self._desk.remove(comparisons), removed, self._failed)

    def _restore(self, removed: Removed) -> None:
        self._worker.run(removed.undo, lambda _: self._search(self._query), self._failed)

    @Slot(int)
    def _tab_shown(self, tab: int) -> None:
        if tab == HISTORY_TAB:
            # The command line measures and keeps, too.
            self._search(self._query)

    @Slot()
    def _new(self) -> None:
        if self._page is not None:
            self._page.show_tab(COMPARE_TAB)
            self._page.take_focus()

    @Slot()
    def _again(self) -> None:
        page, opened = self._page, self._opened
        if page is None or opened is None:
            return
        page.show_tab(COMPARE_TAB)
        if not self.controller.busy:
            page.setup.take_plan(opened.plan)
            self._conditions.take(opened.plan)
            page.setup.take_focus()
            if self._session.preferences.target != opened.plan.target:
                page.setup.set_former_target(model_stem(opened.plan.target))

    @Slot(str)
    def _export(self, kind: str) -> None:
        opened = self._opened
        if opened is not None and self._exporter is not None:
            private = any(prompt.private for prompt in opened.plan.prompts)
            self._exporter.ask(opened.values.id, opened.values.name, kind, has_private=private)

    # -- inside

    @Slot(str)
    def _page_shown(self, name: str) -> None:
        if name == COMPARE_PAGE:
            self._show_chat()
            if not self.controller.busy:
                # To look through folders and headers would disturb it.
                self._choices.look()
            self._search(self._query)
        elif self._page is not None:
            self._page.result.replay.player.pause()

    def _take_focus(self) -> None:
        """What is shown now gets the keyboard, unless that is on another page by then."""
        if self._page is not None and self._page.isVisible():
            self._page.take_focus()

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        self._session.problems.show_dialog(error)
