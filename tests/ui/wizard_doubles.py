"""The Pair page's surroundings as doubles: a library, a Hub and an engine that a test moves, and real candidates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from forespeak.engines.engine import EngineClient, EngineEvent, LoadRequest, NumberFormat
from forespeak.errors import UserFacingError
from forespeak.models.formats import ModelFormat
from forespeak.models.good_pairs import GoodModel
from forespeak.models.hub_files import HubFile, HubFileGroup
from forespeak.models.hub_results import HubModel, HubRepo
from forespeak.models.library import LibraryItem
from forespeak.models.memory import DeviceNeed, Fit, MemoryPlan
from forespeak.models.roots import own_root
from forespeak.pairing.candidates import Knowledge, find_candidates
from forespeak.pairing.hub_offers import HubOffers
from forespeak.pairing.machine_speed import MachineSpeed
from forespeak.pairing.making import _problem, made_path
from forespeak.pairing.model_shape import estimated_shape
from forespeak.pairing.offers import Making, Offer, Place, from_hub, from_library
from forespeak.pairing.pairs import NamedPairs
from forespeak.pairing.ranking import Measurement
from forespeak.pairing.verdict import Verdict, VerdictKind
from forespeak.ui.background import Worker
from forespeak.ui.downloads_controller import DownloadsController
from forespeak.ui.fit_words import fit_words
from forespeak.ui.library_controller import LibraryController
from forespeak.ui.pair_fetcher import AskRepo
from forespeak.ui.pair_page import PairPage
from forespeak.ui.wizard_controller import WizardController
from forespeak.ui.wizard_fetcher import Fetcher
from forespeak.ui.wizard_finder import Found
from forespeak.ui.wizard_maker import Maker
from forespeak.ui.wizard_pairs import PairsKeeper
from forespeak.ui.wizard_state import WizardFile, WizardStep
from forespeak.ui.wizard_tester import ChatWork, Room, RoomFound, Surroundings, Tester
from ui.fake_library import FakeLibrary, item
from ui.hub_doubles import FakeQueue
from ui.scripted_engine import Script, ScriptedEngine, scripted_steps

SPEED = MachineSpeed(gpu_bandwidth=200e9)
FREE = 22_100_000_000
COMMIT = "c" * 40
TEXT = " ".join(f"word{number}" for number in range(40))


def same(count: int = 128_256) -> Verdict:
    facts = {"target": {"tokens": count}, "draft": {"tokens": count}}
    return Verdict(VerdictKind.SAME, True, f"Both have the same {count:,} tokens.", facts)


def differs() -> Verdict:
    evidence = {
        "target": {"tokens": 128_256},
        "draft": {"tokens": 151_936},
        "first": {"id": 0, "target": "!", "draft": "<|begin_of_text|>"},
    }
    reason = "Token 0 is “!” in the target and “<|begin_of_text|>” in the draft. The target can write it."
    return Verdict(VerdictKind.DIFFERS, False, reason, evidence)


def other_tokenizer() -> Verdict:
    evidence = {"target": {"tokens": 128_256}, "draft": {"tokens": 49_152}, "first": None}
    reason = "The target's tokenizer is of another kind. It could draft only through re-tokenised drafts, not yet here."
    return Verdict(VerdictKind.OTHER_TOKENIZER, False, reason, evidence)


def some_models(own: Path) -> list[LibraryItem]:
    """A target, two drafts that suit it and two models that do not."""
    root = own_root(own)
    return [
        item("Llama-3.1-8B-Instruct-Q8_0", root, quantisation="Q8_0", size_bytes=8_540_000_000),
        item("Llama-3.2-1B-Instruct-Q4_0", root, parameters=1_240_000_000, size_bytes=770_000_000, quantisation="Q4_0"),
        item("Llama-3.2-3B-Instruct-Q4_K_M", root, parameters=3_210_000_000, size_bytes=2_020_000_000),
        item(
            "SmolLM2-135M-Instruct-Q4_1",
            root,
            parameters=134_000_000,
            size_bytes=98_000_000,
            quantisation="Q4_1",
            vocabulary_fingerprint="smol",
        ),
        item(
            "Qwen2.5-0.5B-Instruct-Q8_0",
            root,
            parameters=494_000_000,
            size_bytes=530_000_000,
            quantisation="Q8_0",
            vocabulary_fingerprint="qwen",
        ),
    ]


def hub_group(repo: str = "maker/Llama-3.2-3B-Instruct-GGUF", size: int = 2_020_000_000) -> HubFileGroup:
    name = repo.rpartition("/")[2].removesuffix("-GGUF")
    return HubFileGroup(repo, COMMIT, "Q5_K_M", ModelFormat.GGUF, (HubFile(f"{name}-Q5_K_M.gguf", size, "0" * 64),))


def made_from(target: Offer, folder: Path) -> list[Offer]:
    """As `making.made_offers`, for a target without a file to read."""
    assert target.path is not None
    offers = []
    for number_format, bits in ((NumberFormat.Q4_0, 4.6), (NumberFormat.Q2_K, 3.2)):
        size = round((target.shape.parameters if target.shape else 1e9) * bits / 8)
        offers.append(
            Offer(
                f"Made from {target.name} · {number_format.value}",
                Place.MADE,
                target.model_name,
                size,
                number_format.value,
                estimated_shape(size, number_format.value, 8_030_000_000),
                making=Making(target.path, made_path(folder, target.path, number_format), number_format),
                problem=_problem(target, number_format, size, None, folder),
            )
        )
    return offers


def plan(target: int, draft: int) -> MemoryPlan:
    needed = target + draft + 900_000_000
    fit = Fit.TOO_LARGE if needed > FREE else Fit.TIGHT if needed > 0.85 * FREE else Fit.FITS
    sentence = f"It needs {needed / 1e9:.1f} GB of the {FREE / 1e9:.1f} GB that are free."
    return MemoryPlan(fit, (), (DeviceNeed("main memory", needed, FREE, 32_000_000_000),), sentence, (), 8192)


@dataclass
class FakeFinder:
    """Judges by vocabulary names. `gate` holds answers; `hub` is what the Hub has, `hub_gate` holds it."""

    hub: Sequence[HubFileGroup] = ()
    problems: Sequence[str] = ()
    named: NamedPairs | None = None
    gate: threading.Event | None = None
    hub_gate: threading.Event | None = None
    gone: set[Path] = field(default_factory=set)
    error: Exception | None = None
    made: Callable[[Offer], list[Offer]] = lambda target: []
    """What could be made from the target"""
    finds: int = 0
    searches: int = 0

    def find(self, target: Path, items: Sequence[LibraryItem], hub: HubOffers | None) -> Found:
        self.finds += 1
        if self.gate is not None:
            self.gate.wait(5)
        found = next((each for each in items if each.path == target), None)
        if found is None or target in self.gone:
            raise UserFacingError(
                f"“{target.name}” is not there any more.", "It was removed.", "Choose another target."
            )
        offer = from_library(found)
        fingerprints = {each.path: each.vocabulary_fingerprint for each in items}

        def verdict(each: Offer) -> Verdict | None:
            if each.path is None:
                return same() if each.group is not None or each.making is not None else None
            other = fingerprints.get(each.path)
            if other == found.vocabulary_fingerprint:
                return same()
            return other_tokenizer() if other == "smol" else differs()

        def measurement(each: Offer | None) -> Measurement | None:
            if self.named is None or (each is not None and each.path is None):
                return None
            return self.named.measurement(target, None if each is None else each.path)

        knowledge = Knowledge(
            verdict=verdict,
            memory=lambda each: plan(offer.size_bytes, 0 if each is None else each.size_bytes),
            measurement=measurement,
        )
        offers = [from_library(each) for each in items] + (hub.offers if hub is not None else [])
        offers += self.made(offer)
        costs = SPEED.costs(offer.shape) if offer.shape is not None else None
        rate = None if costs is None else 1.0 / costs.seconds(1)
        return Found(offer, find_candidates(offer, offers, SPEED, knowledge), rate, False, FREE)

    def search(
        self, target: Path, items: Sequence[LibraryItem], cancelled: Callable[[], bool], tell: Callable[[str], None]
    ) -> HubOffers:
        self.searches += 1
        tell("Searching the Hub")
        while self.hub_gate is not None and not self.hub_gate.wait(0.01) and not cancelled():
            pass
        if self.error is not None:
            raise self.error
        return HubOffers([from_hub(group, 3_210_000_000) for group in self.hub], {}, list(self.problems))


@dataclass
class FakeChat(Surroundings):
    answer: RoomFound = field(default_factory=lambda: RoomFound(Room.BESIDE))
    work: ChatWork | None = None
    unloads: int = 0

    def room(self, request: LoadRequest) -> RoomFound:
        return self.answer

    def unload(self) -> None:
        self.unloads += 1

    @property
    def chat_work(self) -> ChatWork | None:
        return self.work


@dataclass
class Wizard:
    page: PairPage
    controller: WizardController
    library: FakeLibrary
    models: LibraryController
    finder: FakeFinder
    chat: FakeChat
    engines: list[ScriptedEngine]
    queue: FakeQueue
    named: NamedPairs
    folder: Path
    used: list[object]

    def step(self) -> WizardStep:
        return self.controller.state.step

    def download(self, number: int = -1) -> str:
        return self.queue.downloads()[number].id


@contextmanager
def wizard(
    folder: Path,
    items: Sequence[LibraryItem] | None = None,
    *,
    finder: FakeFinder | None = None,
    goods: Sequence[GoodModel] = (),
    prepare: Callable[[ScriptedEngine], None] = lambda engine: None,
    scripts: Callable[[], list[Script]] | None = None,
    ask_repo: AskRepo | None = None,
    before: Callable[[NamedPairs], object] = lambda named: None,
) -> Iterator[Wizard]:
    """The page with everything behind it, begun and not shown yet. The models' files are there, and empty.

    `before` keeps pairs before anything is read.
    """
    own = folder / "models"
    own.mkdir(parents=True, exist_ok=True)
    listed = some_models(own) if items is None else list(items)
    for entry in listed:
        entry.path.parent.mkdir(parents=True, exist_ok=True)
        entry.path.touch()
    library = FakeLibrary(own, list(listed))
    models = LibraryController(
        library, lambda each: fit_words(Fit.FITS, each.size_bytes), lambda *_: True, library.check
    )
    named = NamedPairs(folder / "named-pairs", lambda path: path.name if path.exists() else None)
    before(named)
    finder = finder or FakeFinder()
    finder.named = named
    engines: list[ScriptedEngine] = []
    queues: list[FakeQueue] = []

    def connect(listener: Callable[[EngineEvent], None]) -> EngineClient:
        made = scripts() if scripts is not None else [Script(scripted_steps(TEXT))]
        engine = ScriptedEngine(listener, made)
        prepare(engine)
        engines.append(engine)
        return engine

    def make_queue(listen: Callable[..., None]) -> FakeQueue:
        queues.append(FakeQueue(listen, own))
        return queues[-1]

    def no_repo(name: str, cancelled: Callable[[], bool]) -> HubRepo | None:
        group = hub_group(name)
        return HubRepo(HubModel(name), COMMIT, f"https://hub.example/{name}", group.files, (group,))

    downloads = DownloadsController(make_queue)
    downloads.start()
    fetcher = Fetcher(ask_repo or no_repo, downloads)
    downloads.changed.connect(fetcher.downloads_changed)
    downloads.finished.connect(models.rescan)
    chat = FakeChat()
    tester = Tester(connect, chat)
    maker = Maker(connect)
    keeper = PairsKeeper(named, lambda target, draft: None)
    worker = Worker("files")
    controller = WizardController(
        models,
        finder,
        fetcher,
        maker,
        tester,
        keeper,
        WizardFile(folder / "wizard.json"),
        worker,
        lambda _: "scripted 1",
    )
    page = PairPage(controller, goods)
    used: list[object] = []
    page.useRequested.connect(used.append)
    models.start()
    controller.start()
    while not queues:
        worker.run(lambda: None)
    try:
        yield Wizard(page, controller, library, models, finder, chat, engines, queues[0], named, folder, used)
    finally:
        for gate in (finder.gate, finder.hub_gate):
            if gate is not None:
                gate.set()
        controller.close()
        downloads.close()
        models.close()
        worker.close()
        page.close()
