"""Where a message is written: the box, the context meter, and the button that sends or stops."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from forespeak.ui.output_chip import OutputChip
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.restyle import restyle
from forespeak.ui.structured_output import StructuredOutput

LONGEST_LINES = 8
WHOLE_WIDTH = 560
"""Below this the row under the box keeps to what is needed, in pixels."""


class MessageEdit(QPlainTextEdit):
    """Grows with its text up to eight lines. Enter submits, Shift+Enter breaks the line."""

    submitted = Signal()
    editLastRequested = Signal()
    escaped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._composing = False
        self.setObjectName("messageEdit")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setPlaceholderText(self.tr("Write a message…"))
        self.setAccessibleName(self.tr("Message"))
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            undoes = event.matches(QKeySequence.StandardKey.Undo)
            if undoes and not self.document().isUndoAvailable():
                # Nothing to undo here: the key is the window's, which may have a deleted chat to bring back.
                event.ignore()
                return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            # While an input method composes, Enter belongs to it: it picks a candidate.
            if not self._composing:
                self.submitted.emit()
            event.accept()
        elif event.key() == Qt.Key.Key_Up and not self.toPlainText() and not self._composing:
            self.editLastRequested.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        # A dragged file is for the window, which asks what it is to be.
        files = any(url.isLocalFile() for url in source.urls())
        return not files and super().canInsertFromMimeData(source)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    @Slot()
    def _fit(self) -> None:
        # A plain text document measures its height in lines.
        lines = max(1, min(LONGEST_LINES, round(self.document().size().height())))
        height = lines * self.fontMetrics().lineSpacing() + 2 * round(self.document().documentMargin()) + 4
        if height != self.height():
            self.setFixedHeight(height)
        scrolls = lines >= LONGEST_LINES
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if policy != self.verticalScrollBarPolicy():
            self.setVerticalScrollBarPolicy(policy)


class ContextMeter(QWidget):
    """How much of the model's context the chat takes: a bar and two numbers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._used: int | None = None
        self._total = 0
        self._has_room = True
        self.setObjectName("contextMeter")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    def set_context(self, used: int | None, total: int) -> None:
        """`used` tokens of `total`; None while it is not known."""
        before = self._figures()
        self._used, self._total = used, total
        self.setVisible(total > 0 and self._has_room)
        words = self.text()
        self.setToolTip(words)
        self.setAccessibleName(words)
        # A row of the composer laid out anew has the whole window looked at.
        metrics = self.fontMetrics()
        if metrics.horizontalAdvance(before) != metrics.horizontalAdvance(self._figures()):
            self.updateGeometry()
        self.update()

    def set_room(self, has_room: bool) -> None:
        """Without room it is not shown, whatever it knows."""
        self._has_room = has_room
        self.setVisible(self._total > 0 and has_room)

    def text(self) -> str:
        if self._used is None:
            return self.tr("Context: {total} tokens").format(total=f"{self._total:,}")
        used, total = f"{self._used:,}", f"{self._total:,}"
        return self.tr("Context: {used} of {total} tokens used").format(used=used, total=total)

    def _figures(self) -> str:
        return f"{self._total:,}" if self._used is None else f"{self._used:,} / {self._total:,}"

    def _label(self) -> str:
        return self.tr("Context")

    def _bar_width(self) -> int:
        return self.fontMetrics().averageCharWidth() * 12

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        words = metrics.horizontalAdvance(self._label()) + metrics.horizontalAdvance(self._figures())
        return QSize(words + self._bar_width() + 20, metrics.height() + 4)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = self.fontMetrics()
        ink = self.palette().color(QPalette.ColorRole.WindowText)
        label = self._label()
        painter.setPen(ink)
        across = self.rect()
        painter.drawText(across, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, label)
        left = metrics.horizontalAdvance(label) + 9
        track = QRectF(left, (self.height() - 6) / 2, self._bar_width(), 6)
        faint = ink
        faint.setAlphaF(0.22)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(faint)
        painter.drawRoundedRect(track, 3, 3)
        if self._used and self._total:
            share = min(1.0, self._used / self._total)
            filled = QRectF(track)
            filled.setWidth(max(6.0, track.width() * share))
            painter.setBrush(self.palette().color(QPalette.ColorRole.WindowText))
            painter.drawRoundedRect(filled, 3, 3)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        across.setLeft(round(track.right()) + 9)
        painter.drawText(across, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self._figures())


class Composer(QFrame):
    """Emits `sendRequested` with the text. It stays until `set_text` replaces it: what cannot be sent is not lost."""

    sendRequested = Signal(str)
    stopRequested = Signal()
    editLastRequested = Signal()
    settingsRequested = Signal()
    editCancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._blocked: str | None = None
        self._generating = False
        self._hint = ""

        self.editing_note = PlainLabel(self.tr("Editing a message: sending it starts a new branch."))
        self.editing_note.setObjectName("composerNote")
        self.cancel_edit = QToolButton()
        self.cancel_edit.setObjectName("quietButton")
        self.cancel_edit.setText(self.tr("Cancel edit"))
        self.cancel_edit.clicked.connect(self._cancel_edit)
        self._edit_row = QWidget()
        edit_row = QHBoxLayout(self._edit_row)
        edit_row.setContentsMargins(0, 0, 0, 0)
        edit_row.addWidget(self.editing_note, 1)
        edit_row.addWidget(self.cancel_edit)
        self._edit_row.setVisible(False)

        self.edit = MessageEdit()
        self.settings_button = QToolButton()
        self.settings_button.setObjectName("quietButton")
        self.settings_button.setAccessibleName(self.tr("Sampling settings"))
        self.settings_button.setToolTip(self.tr("Sampling and speculation settings"))
        self.chip = OutputChip()
        self.context = ContextMeter()
        self.note = PlainLabel()
        self.note.setObjectName("composerNote")
        self.note.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.button = QPushButton()
        self.button.setObjectName("sendButton")

        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self.settings_button)
        row.addWidget(self.chip)
        row.addWidget(self.context)
        row.addWidget(self.note, 1)
        row.addWidget(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 12, 12, 12)
        layout.setSpacing(10)
        layout.addWidget(self._edit_row)
        layout.addWidget(self.edit)
        layout.addLayout(row)

        self.setFocusProxy(self.edit)
        self.edit.submitted.connect(self._submit)
        self.edit.editLastRequested.connect(self.editLastRequested)
        self.edit.escaped.connect(self._escape)
        self.edit.textChanged.connect(self._refresh)
        self.button.clicked.connect(self._press)
        self.settings_button.clicked.connect(self.settingsRequested)
        self._refresh()

    # -- what the window tells it

    def set_blocked(self, reason: str | None) -> None:
        """Why nothing can be sent now, in a sentence; None when it can."""
        self._blocked = reason
        self._refresh()

    def set_hint(self, words: str) -> None:
        """What happens to a message sent now, if that is not what one expects."""
        self._hint = words
        self._refresh()

    def set_generating(self, generating: bool) -> None:
        self._generating = generating
        self._refresh()

    def set_settings_summary(self, words: str) -> None:
        self.settings_button.setText(words)

    def set_context(self, used: int | None, total: int) -> None:
        self.context.set_context(used, total)

    def set_output(self, output: StructuredOutput) -> None:
        """What the next reply is held to."""
        self.chip.show_output(output)
        self._fit_row()

    def set_editing(self, editing: bool) -> None:
        """Whether the text replaces an earlier message."""
        self._edit_row.setVisible(editing)

    def text(self) -> str:
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        self.edit.setPlainText(text)
        cursor = self.edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.edit.setTextCursor(cursor)

    # -- what the user does

    @Slot()
    def _submit(self) -> None:
        text = self.text()
        if self._generating or self._blocked is not None or not text.strip():
            return
        self.sendRequested.emit(text)

    @Slot()
    def _press(self) -> None:
        if self._generating:
            self.stopRequested.emit()
        else:
            self._submit()

    @Slot()
    def _escape(self) -> None:
        if not self._edit_row.isHidden():
            self._cancel_edit()

    @Slot()
    def _cancel_edit(self) -> None:
        self.set_editing(False)
        self.editCancelled.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_row()

    def _fit_row(self) -> None:
        narrow = self.width() < WHOLE_WIDTH
        self.settings_button.setVisible(not narrow)
        # What changes the next reply goes before what is only good to know.
        self.context.set_room(not narrow or self.chip.isHidden())

    @Slot()
    def _refresh(self) -> None:
        words = self.tr("Stop") if self._generating else self.tr("Send")
        self.button.setText(words)
        self.button.setAccessibleName(words)
        restyle(self.button, stops=self._generating)
        can_send = self._blocked is None and bool(self.text().strip())
        self.button.setEnabled(self._generating or can_send)
        self.button.setToolTip(
            self.tr("Stop the reply (Esc)") if self._generating else self._blocked or self.tr("Send (Enter)")
        )
        note = "" if self._generating else self._blocked or self._hint
        self.note.setText(note)
        self.note.setToolTip(note)
