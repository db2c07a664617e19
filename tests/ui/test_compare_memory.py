"""Which loads of a comparison memory would not hold, and how that is asked about."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from forespeak.compare.lanes import Lane, Plan
from forespeak.compare.plan import Prompt
from forespeak.engines.engine import LoadRequest, LoadSettings
from forespeak.models.memory import Fit, MemoryPlan, MemorySettings, Suggestion, SuggestionKind
from forespeak.speculation.trace import Source
from forespeak.ui.compare_memory import MemoryDialog, TooLarge, too_large
from ui.compare_doubles import DRAFT, TARGET

LARGE = DRAFT.with_name("large.gguf")
ADVICE = tuple(
    Suggestion(kind, words, MemorySettings(), 1)
    for kind, words in (
        (SuggestionKind.CONTEXT, "Use a context of 4,096 tokens."),
        (SuggestionKind.NO_DRAFT, "Leave the draft model out."),
    )
)
FITS = MemoryPlan(Fit.FITS, (), (), "It fits.")
TOO_MUCH = MemoryPlan(Fit.TOO_LARGE, (), (), "The pair needs 12 GB; 8 GB are free.", ADVICE)


def plan() -> Plan:
    lanes = (
        Lane("Off"),
        Lane("Small", (Source.DRAFT_MODEL,), DRAFT),
        Lane("Large", (Source.DRAFT_MODEL,), LARGE),
        Lane("Large, 4", (Source.DRAFT_MODEL,), LARGE, 4),
    )
    return Plan(TARGET, lanes, (Prompt("a", "b", "c"),), load_settings=LoadSettings(512))


def test_each_load_is_weighed_by_itself() -> None:
    asked: list[tuple[LoadRequest, MemoryPlan | None]] = []

    def check(request: LoadRequest, loaded: MemoryPlan | None) -> MemoryPlan | None:
        asked.append((request, loaded))
        return TOO_MUCH if request.draft == LARGE else FITS

    assert too_large(plan(), check, FITS) == (TooLarge(("Large", "Large, 4"), TOO_MUCH),)
    assert asked == [(LoadRequest(TARGET, draft, LoadSettings(512)), FITS) for draft in (DRAFT, LARGE)]
    # What cannot be told does not stand in the way: the engine says what is wrong.
    assert too_large(plan(), lambda *_: None, None) == ()


def test_the_words_say_what_is_needed_and_what_would_help(qtbot: QtBot) -> None:
    dialog = MemoryDialog((TooLarge(("Large",), TOO_MUCH),))
    qtbot.addWidget(dialog)
    # To chat without a draft would help there; here it is what is to be compared.
    assert [label.text() for label in dialog.words] == [
        "The pair needs 12 GB; 8 GB are free. Use a context of 4,096 tokens."
    ]
    several = MemoryDialog((TooLarge(("Large", "Large, 4"), TOO_MUCH), TooLarge(("Other",), TOO_MUCH)))
    qtbot.addWidget(several)
    assert several.words[0].text().startswith("Large, Large, 4: The pair needs")
    assert several.words[1].text().endswith("Leave these lanes out.")
    assert dialog.cancel_button.isDefault()
