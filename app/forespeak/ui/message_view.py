"""One message of the conversation: a bubble of the user's, or a reply with its figures and its actions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QEnterEvent, QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from forespeak.speculation.trace import Step
from forespeak.ui.message_body import MessageBody
from forespeak.ui.message_parts import MessageItem, PromptProgressBar, QuietButton, ReplyFooter
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.rich_text import RichText
from forespeak.ui.text_flow import TextFlow
from forespeak.ui.text_look import FlowFont, Look
from forespeak.ui.theme import REPLY_WIDTH, TEXT_PIXELS, ui_font

BUBBLE_SHARE = 0.62
_BUBBLE_PADDING = QPointF(15, 9)
_LONG, _MANY = 2400, 24
"""Characters and lines from which on one's own message is folded."""
_SHOWN, _SHOWN_LINES = 1200, 12
"""What is shown of it then."""
_EDGE = 12


class MessageView(QWidget):
    """A message in a column of a known width."""

    copyRequested = Signal(int)
    heightChanged = Signal()
    """After something the user did here."""
    versionRequested = Signal(int, int)

    def __init__(self, item: MessageItem, look: Look, width: float, parent: QWidget) -> None:
        super().__init__(parent)
        self.item = item
        self.look = look
        self.content_width = width
        self.edge = 0
        """Pixels that this widget is wider on its left than its content."""

    def content_height(self) -> float:
        raise NotImplementedError

    def set_width(self, width: float) -> None:
        self.content_width = width

    def set_look(self, look: Look) -> None:
        self.look = look
        self.update()

    def ensure(self, top: float, bottom: float, ahead: float = 0.0) -> float:
        """Lay out what lies between (from this widget's top) and `ahead` pixels above.

        Returns the growth of what stands above `top`.
        """
        return 0.0

    def arrange(self) -> None:
        """Give the parts their places, after `ensure`."""

    def version_buttons(self) -> list[QWidget]:
        """The way to other versions, if there are any."""
        item = self.item
        if item.versions < 2:
            return []
        previous = QuietButton("previous", self.tr("Previous version"), self)
        previous.setEnabled(item.version > 1)
        previous.clicked.connect(self._previous_version)
        following = QuietButton("next", self.tr("Next version"), self)
        following.setEnabled(item.version < item.versions)
        following.clicked.connect(self._next_version)
        label = PlainLabel(f"{item.version} / {item.versions}", self)
        label.setProperty("caption", True)
        label.setAccessibleName(self.tr("Version {0} of {1}").format(item.version, item.versions))
        return [previous, label, following]

    @Slot()
    def _previous_version(self) -> None:
        self.versionRequested.emit(self.item.id, self.item.version - 1)

    @Slot()
    def _next_version(self) -> None:
        self.versionRequested.emit(self.item.id, self.item.version + 1)

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.item.text)
        self.copyRequested.emit(self.item.id)


class UserView(MessageView):
    """What the user wrote, as a bubble on the right."""

    editRequested = Signal(int)

    def __init__(self, item: MessageItem, look: Look, width: float, parent: QWidget) -> None:
        super().__init__(item, look, width, parent)
        self._folded = len(item.text) > _LONG or item.text.count("\n") > _MANY
        self._flow = self._lay_out()
        self.setAccessibleName(self.tr("You wrote: {0}").format(item.text))
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._actions = QWidget(self)
        row = QHBoxLayout(self._actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self._unfold_button = QPushButton(
            self.tr("Show all {0} characters").format(f"{len(item.text):,}"), self._actions
        )
        self._unfold_button.setProperty("flat", True)
        self._unfold_button.clicked.connect(self._unfold)
        self._unfold_button.setVisible(self._folded)
        for widget in (self._unfold_button, *self.version_buttons()):
            row.addWidget(widget)
        edit = QuietButton("edit", self.tr("Edit this message"), self, quiet_until_hovered=True)
        edit.clicked.connect(self._edit)
        copy = QuietButton("copy", self.tr("Copy this message"), self, quiet_until_hovered=True)
        copy.clicked.connect(self._copy)
        self._side_buttons = [copy, edit]
        for button in self.findChildren(QuietButton):
            button.set_theme(look.theme)
        self._place_actions()

    @property
    def _room(self) -> float:
        return self.content_width * BUBBLE_SHARE - 2 * _BUBBLE_PADDING.x()

    def content_height(self) -> float:
        below = 36 if self._folded else (26 if self.item.versions > 1 else 0)
        return self._flow.height + 2 * _BUBBLE_PADDING.y() + below

    def set_look(self, look: Look) -> None:
        super().set_look(look)
        self._flow.layout(self._room, look.theme)
        for button in self.findChildren(QuietButton):
            button.set_theme(look.theme)

    def set_width(self, width: float) -> None:
        super().set_width(width)
        self._flow.layout(self._room, self.look.theme)
        self._place_actions()

    def _lay_out(self) -> TextFlow:
        text = self.item.text
        if self._folded:
            text = "\n".join(text[:_SHOWN].split("\n")[:_SHOWN_LINES]).rstrip() + " …"
        flow = TextFlow(RichText(text), (), FlowFont(ui_font(TEXT_PIXELS), 1.55))
        flow.layout(self._room, self.look.theme)
        return flow

    @Slot()
    def _unfold(self) -> None:
        self._folded = False
        self._unfold_button.hide()
        self._flow = self._lay_out()
        self._place_actions()
        self.update()
        self.heightChanged.emit()

    def _bubble(self) -> QRectF:
        width = self._flow.natural_width + 2 * _BUBBLE_PADDING.x() + 1
        return QRectF(self.content_width - width, 0, width, self._flow.height + 2 * _BUBBLE_PADDING.y())

    def _place_actions(self) -> None:
        bubble = self._bubble()
        size = self._actions.sizeHint()
        right, below = int(self.content_width), int(bubble.bottom()) + 2
        self._actions.setGeometry(right - size.width(), below, size.width(), max(size.height(), 24))
        left = int(bubble.left()) - 6
        for button in self._side_buttons:
            side = button.sizeHint()
            left -= side.width()
            button.setGeometry(QRect(left, 5, side.width(), side.height()))

    @Slot()
    def _edit(self) -> None:
        self.editRequested.emit(self.item.id)

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()
        super().enterEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.look.theme.bubble))
        bubble = self._bubble()
        painter.drawRoundedRect(bubble, 14, 14)
        self._flow.paint(painter, bubble.topLeft() + _BUBBLE_PADDING, QRectF(event.rect()), self.look)
        painter.end()


class ReplyView(MessageView):
    """A reply of the model."""

    regenerateRequested = Signal(int)
    compareRequested = Signal(int)
    """Measure speculation on what this reply answers"""

    def __init__(self, item: MessageItem, look: Look, width: float, parent: QWidget) -> None:
        super().__init__(item, look, width, parent)
        self.edge = _EDGE
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.body = MessageBody(look, self)
        self.body.focusMoved.connect(self.update)
        self._progress: PromptProgressBar | None = None
        self._footer: ReplyFooter | None = None
        self._progress_shown = (0, 0)
        self.body.document.set_width(self._text_width)
        steps = item.steps() if callable(item.steps) else item.steps
        if self.generating:
            self.body.document.begin(item.text, steps)
        else:
            self.body.document.set_text(item.text, steps)
        self._complete()

    @property
    def generating(self) -> bool:
        return self.item.state == "generating"

    @property
    def _waiting(self) -> bool:
        return self.generating and not self.body.document.text

    @property
    def _text_width(self) -> float:
        return min(self.content_width, float(REPLY_WIDTH))

    def content_height(self) -> float:
        body = 28.0 if self._waiting else self.body.document.height
        return body + (self._footer.needed_height(self._text_width) if self._footer is not None else 0.0)

    def set_width(self, width: float) -> None:
        super().set_width(width)
        self.body.document.set_width(self._text_width)
        self.arrange()

    def set_look(self, look: Look) -> None:
        super().set_look(look)
        self.body.set_look(look)
        if self._progress is not None:
            self._progress.set_theme(look.theme)
        if self._footer is not None:
            self._footer.set_theme(look.theme)

    def ensure(self, top: float, bottom: float, ahead: float = 0.0) -> float:
        return self.body.ensure(top, bottom, ahead)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.body.focused_by_keyboard:
            painter = QPainter(self)
            painter.fillRect(QRectF(2, 0, 2, self.body.height()), QColor(self.look.theme.accent))
            painter.end()

    def _complete(self) -> None:
        """Figures and actions for a finished reply; progress for one that has not begun."""
        if self._waiting:
            if self._progress is None:
                self._progress = PromptProgressBar(self.look.theme, self)
                self._progress.set_progress(*self._progress_shown)
                self._progress.show()
        elif self._progress is not None:
            self._progress.hide()
            self._progress.deleteLater()
            self._progress = None
        if not self.generating and self._footer is None:
            self._footer = ReplyFooter(self.item, self.look.theme, self)
            self._footer.add_actions(self.version_buttons(), raw=self.body.document.raw)
            self._footer.copy.clicked.connect(self._copy)
            self._footer.regenerate.clicked.connect(self.regenerate)
            self._footer.raw.clicked.connect(self.toggle_raw)
            self._footer.compare.clicked.connect(self.compare)
            self._footer.show()
        if not self.generating:
            self.body.setAccessibleName(self.tr("Reply: {0}").format(self.item.text))
        self.arrange()

    def arrange(self) -> None:
        width = int(self._text_width)
        height = int(self.body.document.height + 0.999)
        self.body.setGeometry(_EDGE, 0, width, height)
        if self._progress is not None:
            self._progress.setGeometry(_EDGE, 0, width, 28)
        if self._footer is not None:
            self._footer.setGeometry(_EDGE, height, width, int(self._footer.needed_height(width)))

    # What arrives

    def append(self, steps: Sequence[Step]) -> bool:
        """More tokens of a reply that is being generated.

        Returns whether that is shown already: nothing but the last lines changed, and the height did not.
        """
        before = self.content_height()
        at_end = self.body.document.append(steps)
        self.body.forget_rendered_anew()
        if self._progress is not None:
            self._complete()
            return False
        if not at_end or self.content_height() != before:
            return False
        self.body.refresh()
        return True

    def set_progress(self, done: int, total: int) -> None:
        self._progress_shown = (done, total)
        if self._progress is not None:
            self._progress.set_progress(done, total)

    def finish(self, item: MessageItem) -> None:
        """The reply is complete. Its text is laid out anew only if it differs from what was shown."""
        self.item = item
        document = self.body.document
        if document.text == item.text:
            document.finish()
            self.body.forget_rendered_anew()
        else:
            document.set_text(item.text, item.steps() if callable(item.steps) else item.steps)
            self.body.content_changed()
        if self._footer is not None:
            self._footer.hide()
            self._footer.deleteLater()
            self._footer = None
        self._complete()

    @Slot()
    def toggle_raw(self) -> None:
        """Between the rendered text and the source with every token."""
        document = self.body.document
        document.set_raw(not document.raw)
        if self._footer is not None:
            self._footer.show_raw(document.raw)
        self.body.content_changed()
        self.heightChanged.emit()

    @Slot()
    def compare(self) -> None:
        self.compareRequested.emit(self.item.id)

    @Slot()
    def regenerate(self) -> None:
        self.regenerateRequested.emit(self.item.id)
