"""The draft sources in words for people, and the order in which a chain asks them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QCoreApplication

from forespeak.speculation.trace import Source

NAMES = {
    Source.DRAFT_MODEL: "Draft model",
    Source.PROMPT_LOOKUP: "Prompt lookup",
    Source.NGRAM_SIMPLE: "n-gram simple",
    Source.NGRAM_MAP_K: "n-gram map-k",
    Source.NGRAM_MAP_K4V: "n-gram map-k4v",
    Source.NGRAM_MOD: "n-gram mod",
    Source.NGRAM_CACHE: "n-gram cache",
}
"""As headings and menu entries."""


def short_name(source: Source) -> str:
    """Inside a sentence."""
    return NAMES[source].lower()


def what_it_does(source: Source) -> str:
    """What a source does and when that helps, in one plain sentence."""
    match source:
        case Source.DRAFT_MODEL:
            return _tr("A smaller model guesses ahead. Helps with any kind of text.")
        case Source.PROMPT_LOOKUP:
            return _tr("Repeats what followed the last few words. Helps with quoting and rewriting.")
        case Source.NGRAM_SIMPLE:
            return _tr("Looks for long matches only. Few guesses, but sure ones: for long quotations.")
        case Source.NGRAM_MAP_K:
            return _tr("Learns how far each long match holds. Helps where a text repeats with changes.")
        case Source.NGRAM_MAP_K4V:
            return _tr("Weighs what followed each match before. Helps with lists, tables and forms.")
        case Source.NGRAM_MOD:
            return _tr("Chains look-ups in one table. Helps with long copies, and can learn across chats.")
        case Source.NGRAM_CACHE:
            return _tr("Counts what follows short runs of words. Helps with set phrases.")


def in_order(sources: Iterable[Source]) -> tuple[Source, ...]:
    """As a chain asks them: those that look the text up, which cost next to nothing, and the draft model last."""
    wanted = set(sources)
    return tuple(sorted((source for source in Source if source in wanted), key=lambda source: source.uses_model))


def chain_words(sources: Sequence[Source]) -> str:
    """“Prompt lookup, then the draft model”: what is asked, one after the other."""
    names = [NAMES[source] if number == 0 else short_name(source) for number, source in enumerate(sources)]
    if len(names) > 1 and sources[-1].uses_model:
        return _tr("{first}, then the {last}").format(first=", ".join(names[:-1]), last=names[-1])
    if len(names) > 1:
        return _tr("{first}, then {last}").format(first=", ".join(names[:-1]), last=names[-1])
    return "".join(names)


def button_words(sources: Sequence[Source]) -> str:
    """What drafts, in a few words: “Draft model”, “Lookup + draft model”, “Chain of 3”."""
    if len(sources) > 2:
        return _tr("Chain of {0}").format(len(sources))
    if len(sources) < 2:
        return "".join(NAMES[source] for source in sources)
    first, last = sources
    name = _tr("Lookup") if first is Source.PROMPT_LOOKUP else NAMES[first]
    return f"{name} + {short_name(last)}"


def reason_lines(reason: str) -> str:
    """Why drafting does what it does, each source of a chain on a line of its own."""
    for source in Source:
        named = re.escape(f"{source.label[:1].upper()}{source.label[1:]}: ")
        paused = _tr("{source}, paused").format(source=NAMES[source])
        reason = re.sub(rf"(^|\s){named}paused: ", f"\n{paused}: ", reason)
        reason = re.sub(rf"(^|\s){named}", f"\n{NAMES[source]}: ", reason)
    reason = reason.strip()
    # “n-gram” stays as it is.
    return reason if reason.startswith("n-gram") else reason[:1].upper() + reason[1:]


def _tr(words: str) -> str:
    return QCoreApplication.translate("DraftSources", words)
