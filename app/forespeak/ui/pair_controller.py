"""Which pair is chosen and how far it is: unpacking, checking, loading, ready, or why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal, Slot

from forespeak.engines.engine import (
    CacheType,
    ConversionRequest,
    Converted,
    Died,
    EngineClient,
    EngineEvent,
    Failed,
    Loaded,
    LoadRequest,
    ModelSummary,
    Progress,
)
from forespeak.errors import UserFacingError
from forespeak.models.formats import model_stem
from forespeak.models.memory import Fit as MemoryFit
from forespeak.models.memory import MemoryPlan, Suggestion, SuggestionKind
from forespeak.models.on_disk import moved_path
from forespeak.ui.background import Worker
from forespeak.ui.engine_bridge import EngineBridge
from forespeak.ui.preferences import Preferences


class PairState(Enum):
    STARTING = "starting"
    """The stored choice is being looked at."""
    EMPTY = "empty"
    """Nothing chosen, and no starter pair to offer."""
    OFFERED = "offered"
    """Nothing chosen; the starter pair can be had."""
    UNPACKING = "unpacking"
    LOADING = "loading"
    TOO_LARGE = "too large"
    """Not loaded, because memory would not do; the user may have it loaded all the same."""
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Starter:
    """The pair that comes with the program. `conversion` makes the target; None once it is there."""

    name: str
    target: Path
    draft: Path
    target_name: str
    draft_name: str
    conversion: ConversionRequest | None
    size: str
    """What unpacking takes on disk, in words."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a draft model suits a target: in two or three words, and in full."""

    fits: bool
    short: str
    full: str


@dataclass(frozen=True, slots=True)
class PairStatus:
    """`fit` None: not known yet, or no draft. `draft_problem`: why there is no draft although one was chosen.

    `plan`: what the pair takes, as far as that could be told.
    """

    state: PairState
    target: Path | None = None
    draft: Path | None = None
    loaded: Loaded | None = None
    fit: Fit | None = None
    draft_problem: str | None = None
    progress: Progress | None = None
    problem: UserFacingError | Failed | Died | None = None
    plan: MemoryPlan | None = None

    @property
    def can_send(self) -> bool:
        """Whether a message may be sent; while it loads, the message waits."""
        return self.state in {PairState.STARTING, PairState.UNPACKING, PairState.LOADING, PairState.READY}


MemoryCheck = Callable[[LoadRequest, MemoryPlan | None], MemoryPlan | None]
"""(what is to be loaded, the plan of what is loaded now) -> its plan; None: cannot be told. Off the UI thread."""


UsualPair = Callable[[Path], object | None]
"""target -> the pair that was kept as its default, if there is one. Reads the disk: off the UI thread."""


class Models(Protocol):
    """What is asked of files. All methods read the disk and raise UserFacingError."""

    def starter(self) -> Starter | None:
        """None: this installation has none. Raises UserFacingError where it is there but cannot be used."""
        ...

    def name(self, path: Path) -> str:
        """What people call a model."""
        ...

    def fit(self, target: Path, draft: Path) -> Fit: ...


@dataclass(frozen=True, slots=True)
class _Looked:
    fit: Fit | None
    names: dict[Path, str]


class PairController(QObject):
    """The only one that loads. `changed` after each change of `status`; `preferencesChanged` with a new choice."""

    changed = Signal()
    preferencesChanged = Signal(object)
    problemFound = Signal(object)
    """UserFacingError about a file that was picked and is not taken."""
    usualPairFound = Signal(object)
    """What `usual_pair` gave for a target that was picked: whoever gave it takes it from here"""

    def __init__(
        self,
        models: Models,
        connect_engine: Callable[[], EngineClient],
        bridge: EngineBridge,
        worker: Worker,
        preferences: Preferences,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._models = models
        self._connect_engine = connect_engine
        self._client: EngineClient | None = None
        self._bridge = bridge
        self._worker = worker
        self._preferences = preferences
        self._starter: Starter | None = None
        self._names: dict[Path, str] = {}
        self._request: int | None = None
        self._choice = 0
        """Grows with each choice: what an older one finds out no longer counts."""
        self._cancelled = False
        self.check_memory: MemoryCheck | None = None
        self.usual_pair: UsualPair | None = None
        self._held: LoadRequest | None = None
        """What waits for the user's word, because it is too large."""
        self._loaded_plan: MemoryPlan | None = None
        self.status = PairStatus(PairState.STARTING)
        bridge.eventArrived.connect(self._on_event)

    # -- what others ask

    @property
    def client(self) -> EngineClient:
        """Made when first needed: starting an engine process takes time that the window's start has not got."""
        if self._client is None:
            self._client = self._connect_engine()
        return self._client

    @property
    def has_client(self) -> bool:
        return self._client is not None

    @property
    def engine_pid(self) -> int | None:
        """Of the engine's process while there is one; other engines have none of their own."""
        return getattr(self._client, "pid", None)

    @property
    def has_draft(self) -> bool:
        """Whether a draft model is chosen and, as far as is known by now, can serve the target."""
        return self._preferences.draft is not None and self.status.draft_problem is None

    @property
    def loaded_plan(self) -> MemoryPlan | None:
        """What the pair that is loaded was planned to take."""
        return self._loaded_plan

    @property
    def starter(self) -> Starter | None:
        return self._starter

    def name(self, path: Path | None) -> str:
        return "" if path is None else self._names.get(path, model_stem(path))

    def set_preferences(self, preferences: Preferences) -> None:
        self._preferences = preferences

    def follow_move(self, old: Path, new: Path) -> None:
        """The models folder `old` is `new` now: whatever is known of its files, by their place, is known of them there.

        Tell it before the preferences name the new places.
        """

        def now(path: Path) -> Path:
            return moved_path(path, old, new)

        def summary(model: ModelSummary) -> ModelSummary:
            return replace(model, path=now(model.path))

        self._names |= {now(path): name for path, name in self._names.items()}
        starter, held, status = self._starter, self._held, self.status
        if starter is not None:
            unpacking = starter.conversion
            if unpacking is not None:
                unpacking = replace(unpacking, destination=now(unpacking.destination))
            self._starter = replace(starter, target=now(starter.target), conversion=unpacking)
        if held is not None:
            draft = None if held.draft is None else now(held.draft)
            self._held = replace(held, target=now(held.target), draft=draft)
        loaded = status.loaded
        if loaded is not None:
            draft_model = None if loaded.draft is None else summary(loaded.draft)
            loaded = replace(loaded, target=summary(loaded.target), draft=draft_model)
        target = None if status.target is None else now(status.target)
        draft = None if status.draft is None else now(status.draft)
        self._set(replace(status, target=target, draft=draft, loaded=loaded))

    # -- what the user does

    def start(self) -> None:
        """Look for the starter pair, then load the stored choice, or offer the starter."""
        self._worker.run(self._models.starter, self._starter_found, self._starter_failed)

    def pick_target(self, path: Path) -> None:
        """With its usual pair, if it has one; else with the draft that is chosen now."""
        usual = self.usual_pair

        def take() -> None:
            if usual is None or path == self._preferences.target:
                self._take_pair(path, self._preferences.draft)
            else:
                self._worker.run(lambda: usual(path), found)

        def found(pair: object | None) -> None:
            if pair is None:
                self._take_pair(path, self._preferences.draft)
            else:
                self.usualPairFound.emit(pair)

        self._pick(path, take)

    def pick_pair(self, target: Path, draft: Path | None) -> None:
        """Both at once. `draft` None: only what needs no second model drafts."""

        def take() -> None:
            self._take_pair(target, draft)

        self._pick(target, take if draft is None else lambda: self._pick(draft, take))

    def pick_draft(self, path: Path | None) -> None:
        if path is None:
            self._take_pair(self._preferences.target, None)
        else:
            self._pick(path, lambda: self._take_pair(self._preferences.target, path))

    def use_starter(self) -> None:
        """Unpack the starter pair if that was not done before, then load it."""
        starter = self._starter
        if starter is None:
            self.start()
            return
        self._take_pair(starter.target, starter.draft)

    def cancel(self) -> None:
        """Give up what is being unpacked or loaded."""
        if self._request is not None:
            self._cancelled = True
            self.client.cancel(self._request)
        elif self.status.state is PairState.LOADING:
            # Its size is still being looked at.
            self._choice += 1
            self._choose_again()

    def load_anyway(self) -> None:
        """Load what was found too large."""
        if self._held is not None:
            self._set(replace(self.status, state=PairState.LOADING))
            self._load(self._held)

    def take_advice(self, suggestion: Suggestion) -> None:
        """Do what makes a pair fit that was found too large: it is kept as the user's own choice."""
        preferences, settings = self._preferences, suggestion.settings
        load = preferences.load_settings
        match suggestion.kind:
            case SuggestionKind.CONTEXT:
                load = replace(load, context_length=settings.context_length)
            case SuggestionKind.REPRODUCIBLE | SuggestionKind.CACHE_TYPE:
                # A cache that is no larger than advised stays as it was chosen.
                if load.cache_type is CacheType.F32:
                    load = load.with_cache(CacheType(settings.cache_type))
                load = replace(load, reproducible=False)
            case SuggestionKind.GPU_LAYERS:
                layers, of_draft = settings.gpu_layers, settings.draft_gpu_layers
                load = replace(load, gpu_layers=layers, draft_gpu_layers=of_draft)
            case SuggestionKind.NO_DRAFT:
                preferences = replace(preferences, draft=None)
            case _:
                return
        self._preferences = preferences = replace(preferences, load_settings=load)
        self.preferencesChanged.emit(preferences)
        self._begin()

    def retry(self) -> None:
        """After a failure: look at the disk again and load."""
        self.start()

    def reload(self) -> None:
        """Load the chosen pair again, with the settings of now."""
        if self._preferences.target is not None:
            self._begin()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    # -- inside

    def _set(self, status: PairStatus) -> None:
        self.status = status
        self.changed.emit()

    def _starter_found(self, starter: Starter | None) -> None:
        self._starter = starter
        if starter is not None:
            self._names[starter.target] = starter.target_name
            self._names[starter.draft] = starter.draft_name
        if self._preferences.target is not None:
            self._begin()
        else:
            self._set(PairStatus(PairState.EMPTY if starter is None else PairState.OFFERED))

    def _starter_failed(self, error: Exception) -> None:
        if not isinstance(error, UserFacingError):
            raise error
        if self._preferences.target is not None:
            self._begin()
        else:
            self._set(PairStatus(PairState.FAILED, problem=error))

    def _pick(self, path: Path, take: Callable[[], None]) -> None:
        """Only a file that is a model replaces the pair in use."""

        def named(name: str) -> None:
            self._names[path] = name
            take()

        def refused(error: Exception) -> None:
            if not isinstance(error, UserFacingError):
                raise error
            self.problemFound.emit(error)

        self._worker.run(lambda: self._models.name(path), named, refused)

    def _take_pair(self, target: Path | None, draft: Path | None) -> None:
        preferences = replace(self._preferences, target=target, draft=draft)
        for path in (draft, target):
            if path is not None:
                preferences = preferences.with_recent(path)
        self._preferences = preferences
        self.preferencesChanged.emit(preferences)
        if target is not None:
            self._begin()
        else:
            self.changed.emit()

    def _begin(self) -> None:
        """Unpack or load what the preferences name. An earlier attempt is given up."""
        if self._request is not None:
            self.client.cancel(self._request)
            self._end_request()
        self._choice += 1
        target, draft = self._preferences.target, self._preferences.draft
        assert target is not None
        starter = self._starter
        if starter is not None and target == starter.target and starter.conversion is not None:
            self._set(PairStatus(PairState.UNPACKING, target, draft, progress=Progress(0.0, "")))
            self._request = self.client.convert(starter.conversion)
            self._bridge.watch(self._request)
            return
        self._held = None
        self._set(PairStatus(PairState.LOADING, target, draft))
        request = self._preferences.load_request(target, draft)
        if self.check_memory is None:
            self._load(request)
        else:
            self._weigh(request, self.check_memory)
        self._look(target, draft)

    def _load(self, request: LoadRequest) -> None:
        self._held = None
        self._request = self.client.load(request)
        self._bridge.watch(self._request)

    def _weigh(self, request: LoadRequest, check: MemoryCheck) -> None:
        """Load what fits into memory; ask about what does not."""
        choice, before = self._choice, self._loaded_plan

        def weighed(plan: MemoryPlan | None) -> None:
            if choice != self._choice:
                return
            if plan is not None and plan.fit is MemoryFit.TOO_LARGE:
                self._held = request
                self._set(replace(self.status, state=PairState.TOO_LARGE, plan=plan))
                return
            self._set(replace(self.status, plan=plan))
            self._load(request)

        self._worker.run(lambda: check(request, before), weighed)

    def _look(self, target: Path, draft: Path | None) -> None:
        """Names and the verdict, which need only the files' headers and are there before the weights."""
        choice = self._choice

        def look() -> _Looked:
            names = {}
            for path in (target, draft):
                if path is not None and path not in self._names:
                    names[path] = self._models.name(path)
            return _Looked(None if draft is None else self._models.fit(target, draft), names)

        def looked(found: _Looked) -> None:
            self._names |= found.names
            if choice == self._choice:
                self._set(replace(self.status, fit=found.fit))

        def failed(error: Exception) -> None:
            # The engine meets the same file and tells the same story, once.
            if not isinstance(error, UserFacingError):
                raise error

        self._worker.run(look, looked, failed)

    @Slot(object)
    def _on_event(self, event: EngineEvent) -> None:
        if event.request != self._request or self._request is None:
            return
        match event.body:
            case Progress() as progress:
                self._set(replace(self.status, progress=progress))
            case Converted():
                self._end_request()
                if self._starter is not None:
                    self._starter = replace(self._starter, conversion=None)
                self._begin()
            case Loaded() as loaded:
                self._end_request()
                self._loaded_plan = self.status.plan
                self._set(
                    replace(
                        self.status,
                        state=PairState.READY,
                        loaded=loaded,
                        draft_problem=loaded.draft_problem,
                        progress=None,
                    )
                )
            case Failed() if self._cancelled:
                self._end_request()
                self._choose_again()
            case Failed() | Died() as problem:
                self._end_request()
                self._set(replace(self.status, state=PairState.FAILED, progress=None, problem=problem))
            case _:
                pass

    def _end_request(self) -> None:
        if self._request is not None:
            self._bridge.forget(self._request)
        self._request = None
        self._cancelled = False

    def _choose_again(self) -> None:
        """What was given up is not begun again by itself at the next start."""
        self._preferences = replace(self._preferences, target=None)
        self.preferencesChanged.emit(self._preferences)
        self._set(PairStatus(PairState.EMPTY if self._starter is None else PairState.OFFERED))
