"""The pair on the window: its chips, its card, its pickers, and what the next message may expect of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot
from PySide6.QtWidgets import QFileDialog

from forespeak.errors import UserFacingError
from forespeak.models.formats import on_apple_silicon
from forespeak.models.memory import MemoryPlan, Suggestion, SuggestionKind
from forespeak.speculation.trace import Source, SpeculationState
from forespeak.ui.chat_controller import ChatController
from forespeak.ui.draft_sources import chain_words, in_order
from forespeak.ui.main_window import MainWindow
from forespeak.ui.model_picker import Choice, Place
from forespeak.ui.navigation import CHAT_PAGE
from forespeak.ui.notices import ModelCard
from forespeak.ui.pair_controller import PairController, PairState, PairStatus, Starter
from forespeak.ui.preferences import Preferences
from forespeak.ui.problem_view import ProblemView
from forespeak.ui.speculation_panel import is_paused


class PairView(QObject):
    preferencesChanged = Signal(object)

    def __init__(
        self,
        window: MainWindow,
        pair: PairController,
        chats: ChatController,
        problems: ProblemView,
        preferences: Preferences,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._pair = pair
        self._chats = chats
        self._problems = problems
        self._preferences = preferences
        self._last_told = ""
        self._context_used: int | None = None
        window.set_choices(self._choices)
        window.veil.fileDropped.connect(self._dropped)
        target, draft, card = window.top.target, window.top.draft, window.card
        target.picked.connect(pair.pick_target)
        target.browseRequested.connect(self._browse_target)
        draft.picked.connect(self._draft_picked)
        draft.browseRequested.connect(self._browse_draft)
        window.top.speculation.switched.connect(self._switched)
        window.top.speculation.sourcesChosen.connect(self._sources_chosen)
        card.primaryRequested.connect(self._card_primary)
        card.secondaryRequested.connect(self._card_secondary)
        card.detailsRequested.connect(self._card_details)
        pair.changed.connect(self.show)
        pair.problemFound.connect(problems.show_dialog)
        chats.contextChanged.connect(self.show_context)
        # The panel was filled with the chat's last reply: what the next one has to expect comes first.
        chats.chatOpened.connect(self.show)

    def set_preferences(self, preferences: Preferences) -> None:
        self._preferences = preferences
        self.show()

    def _choices(self) -> Sequence[Choice]:
        """The starter pair always, then what was used last."""
        starter = self._pair.starter
        paths: list[Path] = [] if starter is None else [starter.target, starter.draft]
        paths += [path for path in self._preferences.recent if path not in paths and path.exists()]
        return [Choice(path, self._pair.name(path)) for path in paths]

    def pick_pair(self, target: Path, draft: Path) -> None:
        """Both as they were named, whatever the target is usually paired with."""
        self._draft_with_model()
        self._pair.pick_pair(target, draft)

    @Slot(object)
    def _draft_picked(self, path: Path | None) -> None:
        if path is not None:
            self._draft_with_model()
        self._pair.pick_draft(path)

    def _draft_with_model(self) -> None:
        self._choose(replace(self._preferences, sources=in_order((*self._preferences.sources, Source.DRAFT_MODEL))))

    @Slot(bool)
    def _switched(self, on: bool) -> None:
        self._choose(replace(self._preferences, speculate=on))

    @Slot(object)
    def _sources_chosen(self, sources: tuple[Source, ...]) -> None:
        before = self._preferences
        if not self._pair.has_draft:
            # The draft model could not be unticked: it is asked again once there is one.
            sources = in_order((*sources, *(source for source in before.sources if source.uses_model)))
        self._choose(replace(before, speculate=True, sources=sources))

    def _choose(self, preferences: Preferences) -> None:
        if preferences != self._preferences:
            self.preferencesChanged.emit(preferences)

    def open_model(self, path: Path) -> None:
        """From the system: a file that was opened with this program."""
        self._window.show_page(CHAT_PAGE)
        self._pair.pick_target(path)

    @Slot(object, object)
    def _dropped(self, place: Place, dropped: Path) -> None:
        path = model_of(dropped)
        if place is Place.TARGET:
            self._pair.pick_target(path)
        else:
            self._draft_picked(path)

    @Slot()
    def _browse_target(self) -> None:
        self._browse(self.tr("Choose a target"), self._pair.pick_target)

    @Slot()
    def _browse_draft(self) -> None:
        self._browse(self.tr("Choose a draft model"), self._draft_picked)

    def _browse(self, title: str, take: Callable[[Path], None]) -> None:
        near = self._preferences.target.parent if self._preferences.target is not None else Path.home()
        words = self.tr("Models (*.gguf config.json);;All files (*)")
        name, _ = QFileDialog.getOpenFileName(self._window, title, str(near), words)
        if name:
            take(model_of(Path(name)))

    @Slot()
    def show(self) -> None:
        status = self._pair.status
        self._window.top.show_pair(status, self._preferences, self._pair.name)
        self._window.top.set_plan(status.plan if status.state is PairState.READY else None)
        show_card(self._window.card, status, self._pair.starter, self._pair.name(status.target))
        composer = self._window.composer
        composer.set_blocked(None if status.can_send else self.tr("Choose a model first."))
        waits = status.can_send and status.state is not PairState.READY
        composer.set_hint(self.tr("Will be answered when the model is ready.") if waits else "")
        sampling = self._preferences.sampling
        composer.set_settings_summary(self.tr("T {value:g}").format(value=sampling.temperature))
        self.show_context(self._context_used)
        if not self._chats.busy:
            last = self._chats.last_speculation()
            drafting = self._preferences.drafting_if(self._pair.has_draft)
            self._window.panel.set_sources(drafting if self._preferences.speculate else ())
            told = last if last is not None and (last.active or is_paused(last)) else None
            self._window.panel.set_state(self._speculation_ahead() or told)
        fit = status.fit
        if fit is not None and not fit.fits:
            self._tell_once(
                UserFacingError(
                    self.tr("This draft cannot serve the target."),
                    fit.full,
                    self.tr("The target answers without it."),
                )
            )
        elif status.loaded is not None and status.loaded.template_problem is not None:
            self._tell_once(UserFacingError(status.loaded.template_problem))

    def _tell_once(self, problem: UserFacingError) -> None:
        """Not again each time that something else changes."""
        if str(problem) != self._last_told:
            self._last_told = str(problem)
            self._problems.show_banner(problem)

    def _speculation_ahead(self) -> SpeculationState | None:
        """What the next message has to expect, as far as that is known before it is sent."""
        preferences = self._preferences
        if not preferences.speculate:
            return SpeculationState(False, self.tr("Speculation is switched off."))
        problem = self._pair.status.draft_problem
        if problem is not None and Source.DRAFT_MODEL in preferences.drafting:
            stands_in = self.tr("{sources} drafts in its place.")
            words = stands_in.format(sources=chain_words(preferences.drafting_if(False)))
            return SpeculationState(True, f"{problem} {words}")
        return None

    @Slot()
    def _card_primary(self) -> None:
        state = self._pair.status.state
        if state is PairState.OFFERED:
            self._pair.use_starter()
        elif state is PairState.FAILED:
            self._pair.retry()
        elif state is PairState.EMPTY:
            self._browse_target()
        elif state is PairState.TOO_LARGE and (advice := best_advice(self._pair.status.plan)) is not None:
            self._pair.take_advice(advice)
        elif state is PairState.TOO_LARGE:
            self._browse_target()

    @Slot()
    def _card_secondary(self) -> None:
        if self._pair.status.state in {PairState.UNPACKING, PairState.LOADING}:
            self._pair.cancel()
        elif self._pair.status.state is PairState.TOO_LARGE:
            self._pair.load_anyway()
        else:
            self._browse_target()

    @Slot()
    def _card_details(self) -> None:
        status = self._pair.status
        if status.problem is not None:
            self._problems.show_dialog(status.problem)
        elif status.plan is not None:
            self._problems.show_dialog(plan_words(status.plan))

    @Slot(object)
    def show_context(self, used: int | None) -> None:
        self._context_used = used
        loaded = self._pair.status.loaded
        self._window.composer.set_context(used, 0 if loaded is None else loaded.target.context_length)


def model_of(path: Path) -> Path:
    """What is loaded where somebody points at a file: of a model in the MLX format, the folder that it lies in."""
    return path.parent if path.name == "config.json" or path.suffix.lower() == ".safetensors" else path


def _tr(words: str) -> str:
    return QCoreApplication.translate("ModelCard", words)


def best_advice(plan: MemoryPlan | None) -> Suggestion | None:
    """What the window can do by itself to make a pair fit, the best first."""
    can = set(SuggestionKind) - {SuggestionKind.SMALLER_FILE}
    return next((each for each in (() if plan is None else plan.suggestions) if each.kind in can), None)


def plan_words(plan: MemoryPlan) -> UserFacingError:
    """All of a plan, for a dialog."""
    advice = " ".join(each.words for each in plan.suggestions)
    return UserFacingError(
        plan.sentence,
        "\n".join(f"{part}: {size}" for part, size in plan.rows()),
        advice or _tr("Choose a smaller model."),
    )


def show_card(card: ModelCard, status: PairStatus, starter: Starter | None, name: str) -> None:
    """Hidden while there is nothing to say: a ready pair speaks for itself."""
    progress = status.progress
    match status.state:
        case PairState.STARTING | PairState.READY:
            card.setVisible(False)
        case PairState.EMPTY:
            card.show_card(
                _tr("Choose a model to start"),
                _tr(
                    "Forespeak runs {formats} models on this computer. Choose a file, or drop one on the window."
                ).format(formats=_tr("GGUF and MLX") if on_apple_silicon() else "GGUF"),
                primary=_tr("Choose a model file…"),
            )
        case PairState.OFFERED:
            assert starter is not None
            text = _tr("A very small model that drafts for a larger copy of itself: it shows speculation at once.")
            if starter.conversion is not None:
                text += " " + _tr("Unpacking it takes {size} on disk and a few seconds, once.").format(
                    size=starter.size
                )
            card.show_card(
                _tr("Start with the {name}").format(name=starter.name),
                text,
                primary=_tr("Start"),
                secondary=_tr("Choose a model file…"),
            )
        case PairState.UNPACKING:
            card.show_card(
                _tr("Unpacking {name}").format(name=name),
                "" if progress is None else progress.doing,
                secondary=_tr("Cancel"),
                fraction=0.0 if progress is None else progress.fraction,
            )
        case PairState.LOADING:
            card.show_card(
                _tr("Loading {name}").format(name=name),
                "" if progress is None else progress.doing,
                secondary=_tr("Cancel"),
                fraction=0.0 if progress is None else progress.fraction,
            )
        case PairState.TOO_LARGE:
            assert status.plan is not None
            advice = best_advice(status.plan)
            others = " ".join(each.words for each in status.plan.suggestions if each is not advice)
            also = _tr("Also possible: {advice}").format(advice=others[:1].lower() + others[1:]) if others else ""
            card.show_card(
                _tr("This does not fit into memory"),
                f"{status.plan.sentence} {also}".strip(),
                primary=_tr("Choose a model file…") if advice is None else advice.words.removesuffix("."),
                secondary=_tr("Load anyway"),
                details=True,
            )
        case PairState.FAILED:
            problem = status.problem
            what = _tr("The model is not loaded.") if problem is None else problem.what
            rest = "" if problem is None else " ".join(part for part in (problem.why, problem.remedy) if part)
            details = problem is not None and not isinstance(problem, UserFacingError) and bool(problem.details)
            card.show_card(what, rest, primary=_tr("Try again"), secondary=_tr("Choose a model file…"), details=details)
