"""The text of one reply on the screen: painting, choosing text and tokens with the mouse and the keyboard."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from forespeak.ui.block_boxes import CodeBox
from forespeak.ui.icons import icon
from forespeak.ui.message_document import MessageDocument, Place
from forespeak.ui.provenance import TokenRef
from forespeak.ui.text_look import Look, colour_of

_HOVER_MILLISECONDS = 220
_COPIED_MILLISECONDS = 1500


class MessageBody(QWidget):
    """Shows a MessageDocument. Its height is set by whoever lays it out; ask `document.height`."""

    tokenPointed = Signal(object, QRect)
    """A TokenRef under the pointer or the keyboard's choice, and its place in global coordinates; None for no token."""
    tokenSelected = Signal(object)
    """A TokenRef chosen with the keyboard or a click."""
    focusMoved = Signal()
    linkActivated = Signal(str)
    selectionMoved = Signal(QRect)
    """The keyboard chose something here, in this widget's coordinates: bring it into view."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.document = MessageDocument()
        self._look = look
        self.document.set_look(look)
        self._selection: tuple[Place, Place] | None = None
        self._anchor: Place | None = None
        self._pressed_at = QPointF()
        self._hovered: TokenRef | None = None
        self._chosen: TokenRef | None = None
        self._framed: TokenRef | None = None
        """The one whose card is shown."""
        self._focus_by_keyboard = False
        self._copy_buttons: dict[CodeBox, QToolButton] = {}
        self._hover_timer = QTimer(self, singleShot=True, interval=_HOVER_MILLISECONDS)
        self._hover_timer.timeout.connect(self._announce_hovered)
        self.setMouseTracking(True)
        # A reply grows at its end: what was painted stays, and nothing behind it needs painting.
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Reply"))

    def set_look(self, look: Look) -> None:
        self._look = look
        self.document.set_look(look)
        for button in self._copy_buttons.values():
            button.setIcon(icon("copy", look.theme.muted))
        self.update()

    def content_changed(self) -> None:
        """The document has other text now: what was chosen may no longer exist."""
        self._selection = self._anchor = None
        self.choose(None)
        self.update()

    def forget_rendered_anew(self) -> None:
        """Where the text has been rendered since, what was selected would be other words."""
        section = self.document.take_rendered_anew()
        if section is None:
            return
        chosen = self._selection or ()
        if any(place.section >= section and not place.is_edge for place in chosen):
            self._select(None)
        if self._anchor is not None and self._anchor.section >= section:
            self._anchor = None

    # Layout

    def ensure(self, top: float, bottom: float, ahead: float = 0.0) -> float:
        """Lay out what lies between and `ahead` pixels above, with buttons on code; returns the growth above `top`."""
        grown = self.document.ensure(top, bottom, ahead)
        self.refresh()
        seen = set()
        for box, corner in self.document.code_boxes(top, bottom):
            seen.add(box)
            button = self._copy_buttons.get(box)
            if button is None:
                button = self._copy_button(box)
            size = button.sizeHint()
            button.setGeometry(QRect(QPoint(int(corner.x()) - size.width(), int(corner.y())), size))
            if button.isHidden():
                button.show()
        for box in [box for box in self._copy_buttons if box not in seen]:
            button = self._copy_buttons.pop(box)
            button.hide()
            button.deleteLater()
        return grown

    def refresh(self) -> None:
        """Paint what the document knows to look different."""
        dirty = self.document.take_dirty()
        if dirty is not None:
            self.update(QRect(0, int(dirty), self.width(), max(int(self.document.height - dirty) + 2, 2)))

    def _copy_button(self, box: CodeBox) -> QToolButton:
        button = QToolButton(self)
        button.setText(self.tr("Copy"))
        button.setAccessibleName(self.tr("Copy the code"))
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setIcon(icon("copy", self._look.theme.muted))
        button.setIconSize(QSize(15, 15))
        button.setStyleSheet("font-size: 12px; padding: 2px 5px;")
        button.setCursor(Qt.CursorShape.ArrowCursor)
        button.clicked.connect(self._copy_code)
        self._copy_buttons[box] = button
        return button

    @Slot()
    def _copy_code(self) -> None:
        button = self.sender()
        for box, candidate in self._copy_buttons.items():
            if candidate is button:
                QGuiApplication.clipboard().setText(box.code)
                candidate.setText(self.tr("Copied"))
                QTimer.singleShot(_COPIED_MILLISECONDS, candidate, self._reset_copy_buttons)

    @Slot()
    def _reset_copy_buttons(self) -> None:
        for button in self._copy_buttons.values():
            button.setText(self.tr("Copy"))

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        clip = QRectF(event.rect())
        painter.fillRect(event.rect(), colour_of(self._look.theme.window))
        self.document.paint(painter, clip, self._look, self._selection)
        framed = self._framed
        if framed is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self._look.theme.accent), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for rect in self.document.token_rects(framed):
                painter.drawRoundedRect(rect.adjusted(-1, -1, 1, 1), 4, 4)
        painter.end()

    # Choosing with the mouse

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        self._pressed_at = event.position()
        self._anchor = self.document.place_at(event.position())
        self._select(None)
        self._point_at(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if event.buttons() & Qt.MouseButton.LeftButton and self._anchor is not None:
            here = self.document.place_at(point)
            if here is not None and (point - self._pressed_at).manhattanLength() > 3:
                self._select((self._anchor, here) if self._anchor < here else (here, self._anchor))
            return
        link = self.document.link_at(point)
        over_text = link is not None or self.document.hit(point) is not None
        shape = Qt.CursorShape.IBeamCursor if over_text else Qt.CursorShape.ArrowCursor
        self.setCursor(Qt.CursorShape.PointingHandCursor if link else shape)
        self._point_at(self.document.token_at(point))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self._selection is not None:
            return
        link = self.document.link_at(event.position())
        if link is not None:
            self.linkActivated.emit(link)
            return
        self.choose(self.document.token_at(event.position()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        place = self.document.place_at(event.position())
        if place is not None:
            self.choose(None)
            self._select(self.document.word_around(place))

    def leaveEvent(self, event: QEvent) -> None:
        self._point_at(None)

    def _select(self, selection: tuple[Place, Place] | None) -> None:
        if selection != self._selection:
            self._selection = selection
            self.update()

    def _point_at(self, ref: TokenRef | None) -> None:
        if (ref and ref.number) == (self._hovered and self._hovered.number):
            return
        self._hovered = ref
        if ref is None:
            self._hover_timer.stop()
            self._announce(self._chosen)
        else:
            self._hover_timer.start()

    @Slot()
    def _announce_hovered(self) -> None:
        self._announce(self._hovered)

    def _announce(self, ref: TokenRef | None) -> None:
        rects = self.document.token_rects(ref) if ref is not None else []
        framed = ref if rects else None
        if framed != self._framed:
            self._framed = framed
            self.update()
        if not rects:
            self.tokenPointed.emit(None, QRect())
            return
        place = rects[0].toAlignedRect()
        self.tokenPointed.emit(ref, QRect(self.mapToGlobal(place.topLeft()), place.size()))

    # Choosing with the keyboard

    @property
    def focused_by_keyboard(self) -> bool:
        return self._focus_by_keyboard and self.hasFocus()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._focus_by_keyboard = event.reason() in {
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
            Qt.FocusReason.ShortcutFocusReason,
        }
        super().focusInEvent(event)
        self.focusMoved.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        if event.reason() is not Qt.FocusReason.PopupFocusReason:
            self.choose(None)
        super().focusOutEvent(event)
        self.focusMoved.emit()

    def event(self, event: QEvent) -> bool:
        escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if escape and event.type() == QEvent.Type.ShortcutOverride and self.has_choice:
            # Here Escape gives up what is chosen, whatever it does in the rest of the window.
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self._selection is not None:
            self._copy_selection()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self._select(self.document.everything())
        elif event.key() in {Qt.Key.Key_Left, Qt.Key.Key_Right} and len(self.document.provenance):
            self._move(1 if event.key() == Qt.Key.Key_Right else -1)
        elif event.key() == Qt.Key.Key_Escape and self.has_choice:
            self._select(None)
            self.choose(None)
        else:
            super().keyPressEvent(event)

    @property
    def has_choice(self) -> bool:
        """Whether a token or some text is chosen."""
        return self._chosen is not None or self._selection is not None

    def _move(self, direction: int) -> None:
        """Choose the next token that is shown; the first choice is the first one in view."""
        provenance = self.document.provenance
        if self._chosen is None:
            first = self.document.token_near(max(float(self.visibleRegion().boundingRect().top()), 0.0))
            if first is not None:
                self.choose(first)
            return
        number = self._chosen.number + direction
        while 0 <= number < len(provenance):
            ref = provenance.ref(number)
            if self.document.token_rects(ref):
                self.choose(ref)
                return
            number += direction

    def choose(self, ref: TokenRef | None) -> None:
        """Make a token the chosen one, with its frame and its card; None for none."""
        if ref is None and self._chosen is None:
            return
        self._chosen = ref
        self.update()
        self._hover_timer.stop()
        if ref is not None:
            rects = self.document.token_rects(ref)
            if rects:
                self.selectionMoved.emit(rects[0].toAlignedRect())
            self.tokenSelected.emit(ref)
        self._announce(ref)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction(self.tr("Copy"))
        copy.setEnabled(self._selection is not None)
        copy.triggered.connect(self._copy_selection)
        menu.addAction(self.tr("Select all")).triggered.connect(self._select_all)
        menu.popup(event.globalPos())

    @Slot()
    def _copy_selection(self) -> None:
        if self._selection is not None:
            QGuiApplication.clipboard().setText(self.document.selected_text(self._selection))

    @Slot()
    def _select_all(self) -> None:
        self._select(self.document.everything())
