"""Takes the pictures in resources/screenshots of the real window: real models, real replies.

QT_QPA_PLATFORM=offscreen python tests/screenshots.py          all of them
QT_QPA_PLATFORM=offscreen python tests/screenshots.py --one NAME
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

PICTURES = Path(__file__).resolve().parents[1] / "resources" / "screenshots"

RECIPE = "How do I make a good cup of tea? Answer in four numbered steps."
BREAD = (
    "Write a short table of contents for a book about bread. Number each chapter and begin each chapter with the "
    "words: How to bake"
)
CODE = "Write a Python function that checks whether a word is a palindrome, and show how to use it."


@dataclass(frozen=True)
class Picture:
    prompts: tuple[str, ...] = (RECIPE, CODE)
    dark: bool = False
    marks: str = "strong"
    size: tuple[int, int] = (1440, 900)
    scale: str = "1"
    titles: tuple[str, ...] = (
        "旅行計畫:京都三日 🍁",
        "Refactor the parser tests",
        "Regex for ISO dates",
        "Letter to the landlord",
    )
    card: bool = True
    sources: tuple[str, ...] = ("prompt-lookup", "draft-model")
    draft_length: int | None = None
    tokens: int = 170
    slow_draft: bool = False
    """The starter pair the wrong way round: its draft costs more than its target."""


PICTURE = {
    "chat-light": Picture(),
    "chat-dark": Picture(dark=True),
    "chat-narrow": Picture(size=(720, 860), card=False),
    "chat-150": Picture(size=(900, 660), scale="1.5", marks="subtle"),
    "chat-chain": Picture(
        prompts=(BREAD,),
        sources=("prompt-lookup", "ngram-cache", "draft-model"),
        # Not as many as pay: what the picture shows must not depend on how busy the machine is.
        draft_length=4,
        tokens=64,
        size=(1280, 860),
    ),
    "chat-paused": Picture(prompts=(RECIPE,), sources=("draft-model",), slow_draft=True, size=(1280, 860), card=False),
    "chat-cjk": Picture(
        prompts=("用中文介紹京都的三個景點,並加上表情符號。🍁", "日本の四季について短く説明してください。")
    ),
}


def take(name: str, target: Path) -> None:
    """Open the window, chat, and save what it shows. Runs in a process of its own: scale and home are its own."""
    from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
    from PySide6.QtGui import QMouseEvent
    from PySide6.QtTest import QTest

    from forespeak.chats.store import ChatStore
    from forespeak.engines.engine import Role
    from forespeak.models.folders import folders
    from forespeak.speculation.settings import SamplingSettings
    from forespeak.speculation.trace import Source
    from forespeak.ui.preferences import Appearance, Preferences
    from live_window import LiveWindow

    picture = PICTURE[name]
    folders().create()
    with ChatStore(folders().chats) as store:
        for title in reversed(picture.titles):
            chat = store.create_chat(title)
            store.add_message(chat.id, None, Role.USER, title)
    preferences = replace(
        Preferences(),
        appearance=Appearance.DARK if picture.dark else Appearance.LIGHT,
        marks=picture.marks,
        sampling=SamplingSettings(temperature=0.7, seed=5),
        random_seed=False,
        draft_length=picture.draft_length,
        max_tokens=picture.tokens,
    )
    live = LiveWindow(preferences, picture.size)
    live.use_starter()
    # A plain reply first: the speed that the others are compared with.
    live.session.set_preferences(
        replace(
            preferences, speculate=False, target=live.session.preferences.target, draft=live.session.preferences.draft
        )
    )
    live.say("Name five rivers.")
    live.until_idle()
    if picture.slow_draft:
        pair, preferences = live.session.pair, live.session.preferences
        live.session.set_preferences(replace(preferences, target=preferences.draft, draft=preferences.target))
        pair.reload()
        live.until(lambda: pair.status.loaded is not None, "the pair is loaded the other way round")
    sources = tuple(Source(name) for name in picture.sources)
    live.session.set_preferences(replace(live.session.preferences, speculate=True, sources=sources))
    live.session.chats.new_chat()
    for prompt in picture.prompts:
        live.say(prompt)
        live.until_idle()
    for _ in range(60):
        live.application.processEvents()
        QTest.qWait(10)
    if picture.card:
        # Wander over the reply until a token's card opens.
        area = live.window.conversation._scroll.viewport()
        for y, x in ((y, x) for y in range(area.height() - 300, 120, -13) for x in (240, 330, 420, 510)):
            spot = QPoint((area.width() - 760) // 2 + x, y)
            widget = area.childAt(spot) or area
            local = widget.mapFrom(area, spot)
            move = QMouseEvent(
                QEvent.Type.MouseMove,
                QPointF(local),
                QPointF(widget.mapToGlobal(local)),
                Qt.MouseButton.NoButton,
                Qt.MouseButton.NoButton,
                Qt.KeyboardModifier.NoModifier,
            )
            live.application.sendEvent(widget, move)
            QTest.qWait(330)
            card = live.window.conversation._card
            if card.isVisible() and "proposed" in card._story.text():
                break
    # The smallest file: 0 asks zlib for all it can.
    live.window.grab().save(str(target), "PNG", 0)
    live.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", choices=sorted(PICTURE))
    parser.add_argument("--take", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.take:
        take(arguments.take[0], Path(arguments.take[1]))
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    kept = Path(tempfile.mkdtemp())
    for name in [arguments.one] if arguments.one else list(PICTURE):
        home = kept / name
        # The unpacked model is the same for all.
        models = kept / "models"
        if models.exists():
            home.mkdir()
            (home / "models").symlink_to(models)
        environment = os.environ | {"FORESPEAK_HOME": str(home), "QT_SCALE_FACTOR": PICTURE[name].scale}
        target = PICTURES / f"{name}.png"
        subprocess.run([sys.executable, __file__, "--take", name, str(target)], env=environment, check=True)
        if not models.exists():
            shutil.move(home / "models", models)
        print(target.name, f"{target.stat().st_size // 1024} KiB")
    shutil.rmtree(kept)


if __name__ == "__main__":
    main()
