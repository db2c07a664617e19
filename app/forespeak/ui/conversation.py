"""The conversation: messages one below the other, built when they come near the view."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPixmap, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QWidget

from forespeak.engines.engine import Role
from forespeak.speculation.trace import Step
from forespeak.ui.block_boxes import reply_font
from forespeak.ui.code_colours import load_lexers
from forespeak.ui.empty_conversation import EmptyConversation
from forespeak.ui.icons import icon
from forespeak.ui.markdown_blocks import parser
from forespeak.ui.message_parts import MessageItem, estimated_height
from forespeak.ui.message_view import BUBBLE_SHARE, MessageView, ReplyView, UserView
from forespeak.ui.provenance import TokenRef
from forespeak.ui.rich_text import RichText, Style, StyleRun
from forespeak.ui.text_flow import TextFlow
from forespeak.ui.text_look import Look
from forespeak.ui.theme import LIGHT, REPLY_WIDTH, MarkStyle, Theme
from forespeak.ui.token_card import TokenCard
from forespeak.ui.web_page import open_web_page

__all__ = ["ConversationView", "MessageItem", "column_of"]

_NEAR = 500
"""Pixels beyond the view that are built already."""
_GAP = 22
_TOP_MARGIN = 26
_BOTTOM_MARGIN = 24
_AT_BOTTOM = 30
"""Pixels from the end that count as being there."""


def column_of(width: int) -> tuple[int, int]:
    """Left edge and width of the column of text in a conversation that is `width` pixels wide."""
    margin = 56 if width >= 720 else 24
    column = max(min(width - 2 * margin, REPLY_WIDTH + 4), 120)
    return (width - column) // 2, column


@dataclass(slots=True, eq=False)
class _Entry:
    """A message and its place. It has a widget from when it first comes near the view."""

    item: MessageItem
    view: MessageView | None = None
    top: int = 0
    estimate: float = 0.0

    @property
    def height(self) -> float:
        return self.estimate if self.view is None else self.view.content_height()


class ConversationView(QWidget):
    """Shows messages, follows the newest one while it grows, and tells what the user asks for."""

    regenerateRequested = Signal(int)
    compareRequested = Signal(int)
    editRequested = Signal(int)
    copyRequested = Signal(int)
    versionRequested = Signal(int, int)
    tokenSelected = Signal(object)
    """A TokenRef: what the user chose with a click or the keyboard."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = Look(LIGHT)
        self._entries: list[_Entry] = []
        self._by_id: dict[int, _Entry] = {}
        self._sticks = True
        self._moving = False
        self._warm = False
        self._width = 0
        self._value = 0
        self._scroll = QScrollArea(self)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._canvas = _Canvas()
        self._scroll.setWidget(self._canvas)
        self._scroll.verticalScrollBar().valueChanged.connect(self._scrolled)
        self._jump = QPushButton(self.tr("Jump to newest"), self)
        self._jump.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._jump.clicked.connect(self.jump_to_newest)
        self._jump.hide()
        self._empty = EmptyConversation(self)
        self._card = TokenCard(self)
        self._card.hide()
        self.setAccessibleName(self.tr("Conversation"))
        self.set_theme(LIGHT)

    # What is shown

    def set_theme(self, theme: Theme) -> None:
        self._set_look(Look(theme, self._look.marks))
        self._card.set_theme(theme)
        self._empty.set_theme(theme)
        self._jump.setIcon(icon("down", theme.ink))
        self._canvas.colour = QColor(theme.window)
        self._canvas.update()
        self._scroll.setStyleSheet(f"QScrollArea {{ background: {theme.window}; border: none; }}")

    def set_mark_style(self, style: MarkStyle) -> None:
        self._set_look(Look(self._look.theme, style))

    def _set_look(self, look: Look) -> None:
        self._look = look
        for view in self._views():
            view.set_look(look)
        self._settle()

    def _views(self) -> Iterator[MessageView]:
        for entry in self._entries:
            if entry.view is not None:
                yield entry.view

    def clear(self) -> None:
        self._card.hide()
        for view in self._views():
            view.hide()
            view.deleteLater()
        self._entries.clear()
        self._by_id.clear()
        self._sticks = True
        self._settle()

    def set_messages(self, items: Sequence[MessageItem]) -> None:
        """Show these messages instead, scrolled to the end."""
        self.clear()
        for item in items:
            self._add(item)
        self._settle()

    def add_message(self, item: MessageItem) -> None:
        """A new message at the end. One's own message always brings the end into view."""
        self._add(item)
        if item.role is Role.USER:
            self._sticks = True
        self._settle()

    def _add(self, item: MessageItem) -> None:
        if item.role is Role.SYSTEM:
            return
        entry = _Entry(item)
        self._estimate(entry, self._column()[1])
        self._entries.append(entry)
        self._by_id[item.id] = entry

    @staticmethod
    def _estimate(entry: _Entry, width: float) -> None:
        share = 1.0 if entry.item.role is Role.ASSISTANT else BUBBLE_SHARE
        entry.estimate = float(round(estimated_height(entry.item.text, width * share) + 30))

    def _view_of(self, entry: _Entry) -> MessageView:
        """The widget of a message, made if need be."""
        if entry.view is not None:
            return entry.view
        view: MessageView
        width = self._column()[1]
        if entry.item.role is Role.ASSISTANT:
            reply = ReplyView(entry.item, self._look, width, self._canvas)
            reply.regenerateRequested.connect(self.regenerateRequested)
            reply.compareRequested.connect(self.compareRequested)
            reply.body.tokenPointed.connect(self._show_card)
            reply.body.tokenSelected.connect(self.tokenSelected)
            reply.body.linkActivated.connect(self._open_link)
            reply.body.selectionMoved.connect(self._bring_into_view)
            view = reply
        else:
            bubble = UserView(entry.item, self._look, width, self._canvas)
            bubble.editRequested.connect(self.editRequested)
            view = bubble
        view.heightChanged.connect(self._settle)
        view.copyRequested.connect(self.copyRequested)
        view.versionRequested.connect(self.versionRequested)
        entry.view = view
        view.show()
        return view

    def append_steps(self, message_id: int, steps: Sequence[Step]) -> None:
        """More of a reply that is being generated: a batch, at most sixty times a second."""
        view = self._reply(message_id)
        if view is not None and steps and not view.append(steps):
            self._settle()

    def set_prompt_progress(self, message_id: int, done: int, total: int) -> None:
        """How many of the prompt's tokens have been read."""
        view = self._reply(message_id)
        if view is not None:
            view.set_progress(done, total)

    def finish_message(self, message_id: int, item: MessageItem) -> None:
        """A reply is complete, stopped or failed; `item` may carry another id from now on."""
        view = self._reply(message_id)
        if view is not None:
            entry = self._by_id.pop(message_id)
            entry.item = item
            self._by_id[item.id] = entry
            view.finish(item)
            self._settle()

    def _reply(self, message_id: int) -> ReplyView | None:
        entry = self._by_id.get(message_id)
        view = None if entry is None else self._view_of(entry)
        return view if isinstance(view, ReplyView) else None

    # Layout

    def _column(self) -> tuple[int, int]:
        # Of the whole width: the scroll bar lies in the margin, so nothing moves when it appears.
        return column_of(self.width())

    @Slot()
    def _settle(self) -> None:
        """Place every message, building those near the view; what the user reads stays where it is."""
        self._empty.setVisible(not self._entries)
        bar = self._scroll.verticalScrollBar()
        viewport = self._scroll.viewport()
        self._moving = True
        self._measure()
        # Building changes estimated heights, which brings other messages near.
        for _ in range(4):
            if self._sticks:
                bar.setValue(bar.maximum())
            top = bar.value()
            grown, changed = self._build_between(top, top + viewport.height())
            if not changed:
                break
            self._measure()
            if grown and not self._sticks:
                bar.setValue(round(top + grown))
        if self._sticks:
            bar.setValue(bar.maximum())
        # Only now, in this order: scrolled first and grown then, what is painted already is moved and not painted anew.
        self._place()
        self._moving = False
        self._value = bar.value()
        self._place_jump()

    def _build_between(self, top: float, bottom: float) -> tuple[float, bool]:
        grown, changed = 0.0, False
        for entry in self._entries:
            height = entry.height
            if entry.top + height < top - _NEAR or entry.top > bottom + _NEAR:
                continue
            fresh = entry.view is None
            inner = self._view_of(entry).ensure(top - entry.top, bottom + _NEAR - entry.top, _NEAR)
            difference = entry.height - height
            if fresh:
                grown += difference if entry.top < top else 0.0
            else:
                grown += inner
            changed = changed or fresh or difference != 0.0
        return grown, changed

    def _measure(self) -> None:
        y = _TOP_MARGIN
        for entry in self._entries:
            entry.top = y
            y += int(entry.height + 0.999) + _GAP
        viewport = self._scroll.viewport()
        size = QSize(viewport.width(), max(y - _GAP + _BOTTOM_MARGIN, viewport.height()))
        if self._canvas.size() != size:
            self._canvas.resize(size)

    def _place(self) -> None:
        left, width = self._column()
        for entry in self._entries:
            view = entry.view
            if view is not None:
                place = QRect(left - view.edge, entry.top, width + view.edge, int(entry.height + 0.999))
                if view.geometry() != place:
                    view.setGeometry(place)
                view.arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._warm:
            self._warm = True
            QTimer.singleShot(0, self, self._warm_up)

    @Slot()
    def _warm_up(self) -> None:
        """Load the fallback fonts now, and the code lexers beside, so that the first reply does not wait for them."""
        styles = tuple(StyleRun(i, 1, style) for i, style in enumerate((Style.CODE, Style.BOLD, Style.ITALIC)))
        flow = TextFlow(RichText("abc 京 🍁", styles), (), reply_font())
        flow.layout(400, self._look.theme)
        canvas = QPixmap(200, 30)
        painter = QPainter(canvas)
        flow.paint(painter, QPointF(), QRectF(0, 0, 200, 30), self._look)
        painter.end()
        threading.Thread(target=_load_ahead, name="load-ahead", daemon=True).start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        bar = self._scroll.verticalScrollBar()
        top = bar.value()
        reading = next((entry for entry in self._entries if entry.top + entry.height > top), None)
        # How far into the message at the top of the view one has read.
        share = 0.0 if reading is None else (top - reading.top) / max(reading.height, 1.0)
        self._scroll.setGeometry(self.rect())
        self._empty.setGeometry(self.rect())
        width = self._column()[1]
        if width != self._width:
            self._width = width
            for entry in self._entries:
                if entry.view is not None:
                    entry.view.set_width(width)
                else:
                    self._estimate(entry, width)
        self._settle()
        if reading is not None and not self._sticks:
            self._moving = True
            bar.setValue(round(reading.top + share * reading.height))
            self._moving = False
            self._settle()

    @Slot(int)
    def _scrolled(self, value: int) -> None:
        if self._moving:
            return
        self._card.hide()
        # The least step upwards lets go; coming back near the end takes hold again.
        near = 0 if value < self._value else _AT_BOTTOM
        self._sticks = value >= self._scroll.verticalScrollBar().maximum() - near
        self._settle()

    def _place_jump(self) -> None:
        shown = not self._sticks and bool(self._entries)
        self._jump.setVisible(shown)
        if not shown:
            return
        size = self._jump.sizeHint()
        self._jump.setGeometry(
            (self.width() - size.width()) // 2, self.height() - size.height() - 12, size.width(), size.height()
        )
        self._jump.raise_()

    @Slot()
    def jump_to_newest(self) -> None:
        """Back to the end, and stay there while it grows."""
        self._sticks = True
        self._settle()

    # Tokens and links

    @Slot(object, QRect)
    def _show_card(self, ref: TokenRef | None, place: QRect) -> None:
        if ref is None:
            self._card.hide()
        else:
            self._card.show_token(ref, place)

    @Slot(QRect)
    def _bring_into_view(self, place: QRect) -> None:
        body = self.sender()
        if not isinstance(body, QWidget):
            return
        bar = self._scroll.verticalScrollBar()
        y = body.mapTo(self._canvas, QPoint(0, place.top())).y()
        if y < bar.value() + 40 or y + place.height() > bar.value() + self._scroll.viewport().height() - 40:
            bar.setValue(y - self._scroll.viewport().height() // 2)

    @Slot(str)
    def _open_link(self, address: str) -> None:
        open_web_page(address)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_End:
            self.jump_to_newest()
        else:
            super().keyPressEvent(event)


def _load_ahead() -> None:
    parser()
    load_lexers()


class _Canvas(QWidget):
    """What the messages stand on. It is known to be opaque, so Qt scrolls it by moving what is painted already."""

    def __init__(self) -> None:
        super().__init__()
        self.colour = QColor(LIGHT.window)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), self.colour)
        painter.end()
