"""The pairing wizard without its looks: which step, which target and draft, what is known, what is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from forespeak.engines.engine import LoadRequest
from forespeak.errors import UserFacingError
from forespeak.models.library import LibraryItem
from forespeak.pairing.candidates import Candidate, CandidateKind, with_measurements
from forespeak.pairing.hub_offers import HubOffers
from forespeak.pairing.named_pair import NamedPair, PairSettings
from forespeak.pairing.quick_test import QuickResult, QuickTest
from forespeak.pairing.ranking import Measurement
from forespeak.speculation.trace import Source
from forespeak.ui.background import Worker
from forespeak.ui.draft_sources import in_order
from forespeak.ui.latest import Latest
from forespeak.ui.library_controller import LibraryController
from forespeak.ui.wizard_fetcher import Fetch, Fetcher, Wanted
from forespeak.ui.wizard_finder import Finder, Found
from forespeak.ui.wizard_maker import Maker
from forespeak.ui.wizard_pairs import PairsKeeper
from forespeak.ui.wizard_state import WizardFile, WizardState, WizardStep
from forespeak.ui.wizard_tester import Tester
from forespeak.ui.wizard_words import CandidateLine, key_of, line_of, usual_name

SAVE_MS = 400
LOOKUP_KEY = CandidateKind.LOOKUP.name.lower()


@dataclass(frozen=True, slots=True)
class HubStatus:
    """`problems`: what could not be asked, in words. `searched`: for the target at hand."""

    searching: bool = False
    searched: bool = False
    words: str = ""
    problems: tuple[str, ...] = ()
    count: int = 0


class WizardController(QObject):
    """`engine_name`: name and version of what computes a target, to be kept with measurements. `load_request`: how a
    pair would be loaded for a chat; it is tested on the same devices.
    """

    changed = Signal()
    """Of `state`"""
    foundChanged = Signal()
    """Of `found`, `lines` or `finding`"""
    hubChanged = Signal()
    problemFound = Signal(object)
    """UserFacingError: something on the way is not as it was"""
    useRequested = Signal(object)
    """NamedPair to chat with"""

    def __init__(
        self,
        library: LibraryController,
        finder: Finder,
        fetcher: Fetcher,
        maker: Maker,
        tester: Tester,
        keeper: PairsKeeper,
        file: WizardFile,
        worker: Worker,
        engine_name: Callable[[Path], str] = lambda _: "",
        parent: QObject | None = None,
        *,
        load_request: Callable[[Path, Path | None], LoadRequest] = LoadRequest,
    ) -> None:
        super().__init__(parent)
        self._load_request = load_request
        self._library, self._finder, self._file, self._worker = library, finder, file, worker
        self.fetcher, self.maker, self.tester, self.keeper = fetcher, maker, tester, keeper
        self._engine_name = engine_name
        self.state = file.read()
        self.found: Found | None = None
        self.finding = False
        self.lines: tuple[CandidateLine, ...] = ()
        self.hub = HubStatus()
        self._offers: HubOffers | None = None
        self._items: Sequence[LibraryItem] = ()
        self._measured: dict[str, Measurement] = {}
        """Of this target's candidates, what was tested and not kept yet."""
        self._awaited: Path | None = None
        """What has just been downloaded or made, and is the chosen draft."""
        self._use_kept = False
        self._finds = Latest("pair-find", self)
        self._searches = Latest("pair-hub", self)
        self._save_later = QTimer(self)
        self._save_later.setSingleShot(True)
        self._save_later.setInterval(SAVE_MS)
        self._save_later.timeout.connect(self._save)
        self._hub_told.connect(self._hub_words)
        library.changed.connect(self._library_changed)
        keeper.changed.connect(self._find_again)
        keeper.kept.connect(self._kept)
        fetcher.arrived.connect(self._arrived)
        maker.arrived.connect(self._made)
        tester.finished.connect(self._tested)

    _hub_told = Signal(str)

    def start(self) -> None:
        """Read the kept pairs, and go on where somebody was when the window was closed."""
        self.keeper.refresh()
        self._items = self._library.state.items
        if self.state.target is not None and self._library.state.read:
            self._find()

    def close(self) -> None:
        self._save_later.stop()
        self._save()
        self._finds.close()
        self._searches.close()
        self.fetcher.close()
        self.maker.close()
        self.tester.close()
        self.keeper.close()

    # -- where somebody is

    @property
    def targets(self) -> list[LibraryItem]:
        """Models on this computer that could be a target."""
        return [item for item in self._library.state.items if item.usable]

    @property
    def library_read(self) -> bool:
        return self._library.state.read

    @property
    def candidate(self) -> Candidate | None:
        return self.candidate_of(self.state.chosen)

    def candidate_of(self, key: str | None) -> Candidate | None:
        listed = () if self.found is None else self.found.candidates.listed
        return next((each for each in listed if key_of(each) == key), None)

    @property
    def line(self) -> CandidateLine | None:
        return next((each for each in self.lines if each.key == self.state.chosen), None)

    @property
    def pair(self) -> NamedPair | None:
        """The kept pair that is being tested again."""
        return None if self.state.pair_id is None else self.keeper.find(self.state.pair_id)

    def can_go(self, step: WizardStep) -> bool:
        """Whether what comes before a step is there."""
        if step is WizardStep.TARGET:
            return True
        if step is WizardStep.DRAFT:
            return self.state.target is not None
        line = self.line
        return line is not None and line.is_here and not line.problem

    def go(self, step: WizardStep) -> None:
        if step is not self.state.step and self.can_go(step):
            self._set(replace(self.state, step=step))

    def start_over(self) -> None:
        """A new pair from the beginning."""
        self._leave_target()
        self._set(WizardState(kind=self.state.kind))

    def choose_target(self, path: Path) -> None:
        """Another target; the same one goes on where it was."""
        if path == self.state.target and self.found is not None:
            self._set(replace(self.state, step=WizardStep.DRAFT, pair_id=None))
            return
        self._leave_target()
        self._set(WizardState(WizardStep.DRAFT, path, kind=self.state.kind))
        self._find()

    def choose(self, key: str) -> None:
        if key == self.state.chosen:
            return
        self.tester.reset()
        self._set(replace(self.state, chosen=key, pair_id=None, measurement=self._measured.get(key)))

    def set_kind(self, kind: str) -> None:
        if kind != self.state.kind:
            self.tester.reset()
            self._set(replace(self.state, kind=kind))

    def retest(self, pair: NamedPair) -> None:
        """Test a kept pair again, with its own settings."""
        target = pair.target.path
        chosen = LOOKUP_KEY if pair.draft is None else str(pair.draft.path)
        before = self.state
        self.tester.reset()
        if target != before.target or self.found is None:
            self._leave_target()
        kind = pair.measurement.by_kind[0][0] if pair.measurement and pair.measurement.by_kind else before.kind
        self._set(WizardState(WizardStep.TEST, target, chosen, kind, pair.id))
        self._find()

    def _leave_target(self) -> None:
        self._finds.cancel()
        self._searches.cancel()
        self.tester.reset()
        self.found, self.lines, self._offers = None, (), None
        self.finding = False
        self._measured = {}
        self._set_hub(HubStatus())
        self.foundChanged.emit()

    def _set(self, state: WizardState) -> None:
        if state != self.state:
            self.state = state
            self._save_later.start()
            self.changed.emit()

    @Slot()
    def _save(self) -> None:
        state, file = self.state, self._file
        self._worker.run(lambda: file.write(state))

    # -- candidates

    @Slot()
    def _library_changed(self) -> None:
        items = self._library.state.items
        if self._library.state.read and (items != self._items or (self.found is None and not self.finding)):
            self._items = items
            self._find_again()
        self.changed.emit()

    @Slot()
    def _find_again(self) -> None:
        if self.state.target is not None:
            self._find()

    def _find(self) -> None:
        target, items, offers = self.state.target, self._items, self._offers
        if target is None:
            return
        self.finding = True
        self.foundChanged.emit()
        self._finds.run(lambda _: self._finder.find(target, items, offers), self._came, self._not_found)

    def _came(self, found: Found) -> None:
        self.finding, self.found = False, found
        self._show_lines()
        self.maker.forget_all_but([line.key for line in self.lines])
        state, chosen = self.state, self.line
        if chosen is None and self._awaited is not None and str(self._awaited) == state.chosen:
            # Its files are here, and the library has not read them yet.
            pass
        elif chosen is None or chosen.problem:
            self._lost(chosen)
        elif state.measurement is not None:
            self._measured.setdefault(chosen.key, state.measurement)
            self._show_lines()
        self.foundChanged.emit()

    def _lost(self, line: CandidateLine | None) -> None:
        """What was chosen is not there or cannot draft any more; the best one takes its place."""
        state, usable = self.state, [each for each in self.lines if not each.problem]
        best = next((each for each in usable if each.is_here and each.key != LOOKUP_KEY), None)
        best = best or next((each for each in usable if each.is_here), None)
        was_here = state.chosen is not None and Path(state.chosen).is_absolute()
        if was_here or line is not None or state.pair_id is not None:
            self.tester.reset()
            name = Path(state.chosen or "").name if line is None else line.name
            why = self.tr("It was removed, moved or renamed.") if line is None else line.problem
            what = self.tr("“{name}” is not there any more.") if line is None else self.tr("“{name}” cannot draft.")
            self.problemFound.emit(
                UserFacingError(what.format(name=name), why, self.tr("Choose another draft for this target."))
            )
        step = min(state.step, WizardStep.DRAFT, key=lambda step: step.number)
        key = None if best is None else best.key
        self._set(replace(state, step=step, chosen=key, pair_id=None, measurement=self._measured.get(key or "")))

    def _not_found(self, error: Exception) -> None:
        self.finding = False
        if not isinstance(error, UserFacingError):
            self.foundChanged.emit()
            raise error
        # The target itself is not there, or cannot be read.
        self._leave_target()
        self._set(WizardState(kind=self.state.kind))
        self.problemFound.emit(error)

    def _show_lines(self) -> None:
        found = self.found
        if found is None:
            return
        candidates = with_measurements(found.candidates, lambda each: self._measured.get(key_of(each)))
        self.found = replace(found, candidates=candidates)
        self.lines = tuple(line_of(each, self.found) for each in candidates.listed)

    # -- the Hub

    def search_hub(self) -> None:
        """Look for drafts there; what comes joins the candidates."""
        target, items = self.state.target, self._items
        if target is None or self.hub.searching:
            return
        self._set_hub(HubStatus(searching=True, words=self.tr("Asking the Hub")))
        self._searches.run(
            lambda stop: self._finder.search(target, items, stop.is_set, self._hub_told.emit),
            self._hub_came,
            self._hub_failed,
        )

    def cancel_hub(self) -> None:
        if self.hub.searching:
            self._searches.cancel()
            self._set_hub(HubStatus())

    @Slot(str)
    def _hub_words(self, words: str) -> None:
        if self.hub.searching:
            self._set_hub(replace(self.hub, words=words))

    def _hub_came(self, offers: HubOffers) -> None:
        self._offers = offers
        self._set_hub(HubStatus(searched=True, problems=tuple(offers.problems), count=len(offers.offers)))
        self._find_again()

    def _hub_failed(self, error: Exception) -> None:
        problems = (str(error),) if isinstance(error, UserFacingError) else ()
        self._set_hub(HubStatus(searched=True, problems=problems))
        if not problems:
            raise error

    def _set_hub(self, status: HubStatus) -> None:
        if status != self.hub:
            self.hub = status
            self.hubChanged.emit()

    def fetch(self, key: str) -> None:
        """Download a candidate, or go on with it; or make it."""
        candidate = self.candidate_of(key)
        offer = None if candidate is None else candidate.offer
        if offer is not None and offer.making is not None:
            self.maker.make(key, offer.making)
        elif offer is not None and offer.path is None:
            self.fetcher.fetch(Wanted(offer.group, offer.good))

    def fetch_of(self, key: str) -> Fetch | None:
        return self.maker.fetch_of(key) or self.fetcher.fetch_of(key)

    @Slot(str)
    def cancel_fetch(self, key: str) -> None:
        self.maker.cancel(key)
        self.fetcher.cancel(key)

    @Slot(str, object)
    def _made(self, key: str, path: Path) -> None:
        self._arrived(key, path)
        self._library.rescan()

    @Slot(str, object)
    def _arrived(self, key: str, path: Path) -> None:
        """The same model under another key. The library reads it now, and is heard of again then."""
        if self._offers is not None:
            left = [each for each in self._offers.offers if Wanted(each.group, each.good).key != key]
            self._offers = replace(self._offers, offers=left)
        if key == self.state.chosen:
            self._awaited = path
            self._set(replace(self.state, chosen=str(path)))

    # -- test

    def quick_test(self) -> QuickTest | None:
        """What the test of the chosen pair is to be."""
        candidate, target = self.candidate, self.state.target
        if candidate is None or target is None:
            return None
        draft = None if candidate.offer is None else candidate.offer.path
        settings = self.settings
        # What is kept with a pair is what it brings in the usual setting.
        usual = replace(self._load_request(target, draft).settings, reproducible=False)
        return QuickTest(
            target,
            draft,
            settings.sources,
            self.state.kind,
            draft_length=settings.draft_length,
            load_settings=replace(usual, context_length=settings.context_length),
        )

    def start_test(self) -> None:
        test = self.quick_test()
        if test is not None:
            self.tester.start(test)

    def start_check(self) -> None:
        test = self.quick_test()
        if test is not None:
            self.tester.start_check(test)

    def look_for_parity(self) -> None:
        """What was found of this pair's words before."""
        test = self.quick_test()
        if test is not None:
            self.keeper.known_parity(test.target, test.draft, self.tester.know)

    @Slot(object)
    def _tested(self, result: QuickResult) -> None:
        measurement = result.measurement(self._engine_name(result.test.target))
        key = self.state.chosen
        if measurement is None or key is None:
            return
        self._measured[key] = measurement
        self._show_lines()
        self._set(replace(self.state, measurement=measurement))
        self.foundChanged.emit()

    # -- keep

    @property
    def usual_name(self) -> str:
        pair, line, found = self.pair, self.line, self.found
        if pair is not None:
            return pair.name
        if line is None or found is None:
            return ""
        candidate = self.candidate
        draft = None if candidate is None or candidate.offer is None else candidate.offer.name
        return usual_name(_bare(found.target.name), None if draft is None else _bare(draft))

    @property
    def is_default(self) -> bool:
        """Whether the pair is, or would be the first of its target and so may well become, its target's default."""
        pair = self.pair
        if pair is not None:
            return pair.is_default
        return not any(each.is_default and each.target.path == self.state.target for each in self.keeper.pairs)

    @property
    def settings(self) -> PairSettings:
        pair, candidate = self.pair, self.candidate
        if pair is not None:
            return pair.settings
        sources = () if candidate is None else candidate.sources
        # As chats draft: what is looked up costs next to nothing, and is asked first.
        return PairSettings(in_order([Source.PROMPT_LOOKUP, *sources]) if uses_model(sources) else sources)

    def tested_so(self, settings: PairSettings) -> bool:
        """Whether the measurement at hand was made with these settings."""
        test = self.quick_test()
        return test is not None and (settings.sources, settings.draft_length) == (test.sources, test.draft_length)

    def keep(self, name: str, settings: PairSettings, *, as_default: bool, use: bool) -> None:
        test, pair, measurement = self.quick_test(), self.pair, self.state.measurement
        if test is None:
            return
        self._use_kept = use
        parity, tested_so = self.tester.check.result, measurement is None or self.tested_so(settings)
        if pair is not None:
            self.keeper.update(pair, name, settings, measurement, parity, as_default=as_default, tested_so=tested_so)
        else:
            self.keeper.keep(
                name,
                test.target,
                test.draft,
                settings,
                measurement,
                parity,
                as_default=as_default,
                tested_so=tested_so,
            )

    @Slot(object)
    def _kept(self, pair: NamedPair) -> None:
        use, self._use_kept = self._use_kept, False
        self.start_over()
        if use:
            self.useRequested.emit(pair)


def uses_model(sources: Sequence[Source]) -> bool:
    return any(source.uses_model for source in sources)


def _bare(name: str) -> str:
    return name.removesuffix(".gguf")
