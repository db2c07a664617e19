"""The tab with the models on this computer: table, details, import, and what is being done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.library import ImportWay, LibraryItem
from forespeak.ui.background import Worker
from forespeak.ui.drop_veil import accept_as_copy
from forespeak.ui.form import scrolled
from forespeak.ui.good_pairs import GoodPairs
from forespeak.ui.import_models import ImportDialog, ImportVeil, dropped_models
from forespeak.ui.library_controller import LibraryController, starter_only
from forespeak.ui.library_head import LibraryHead
from forespeak.ui.library_model import LibraryFilter, LibraryModel
from forespeak.ui.library_table import LibraryTable
from forespeak.ui.model_actions import ModelActions
from forespeak.ui.model_details import ModelDetails
from forespeak.ui.models_folder import FolderBar, FoldersDialog
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.target_verdicts import TargetVerdicts
from forespeak.ui.task_bar import PageToast, TaskBar
from forespeak.ui.theme import Theme

BESIDE_FROM = 900
"""The width from which the details stand beside the table; below that, under it."""
DETAILS_WIDTH = 300
DETAILS_HEIGHT = 260
LEAST_TABLE = 156
"""The height of its head and two rows."""


class MyModels(QWidget):
    """Good pairs stand in for the table while there is nothing but the starter, and can be asked for later."""

    targetRequested = Signal(object)
    draftRequested = Signal(object)
    chatRequested = Signal(object)
    findDraftRequested = Signal(object)
    """Path of the model"""
    importWayChanged = Signal(object)
    """ImportWay, or None to be asked"""
    addedFoldersChanged = Signal(object)
    moveRequested = Signal(object)
    """Path of the folder in which the models shall be"""
    undoChanged = Signal()

    def __init__(
        self,
        controller: LibraryController,
        make_good_pairs: Callable[[], GoodPairs],
        worker: Worker,
        added_folders: Callable[[], Sequence[Path]] = tuple,
        verdicts: TargetVerdicts | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._controller = controller
        self._added_folders = added_folders
        self._verdicts = verdicts
        self._way: ImportWay | None = None
        self._uses: Mapping[Path, str] = {}
        self._asked_for_table = False
        self._partner: Path | None = None
        self._wanted: Path | None = None
        self.model = LibraryModel(self)
        self.table = LibraryTable(self.model)
        self.table.setAccessibleName(self.tr("My models"))
        self.actions_of_model = ModelActions(controller, worker, self.table)
        self.details = ModelDetails(self.actions_of_model.in_order)
        self._make_good_pairs = make_good_pairs
        self.good_pairs: GoodPairs | None = None
        self._theme: Theme | None = None
        self._lay_out()
        self.toast = PageToast(self, self.folder_bar)
        self.veil = ImportVeil(self)
        self.setAcceptDrops(True)
        # What stands side by side stands one above the other where it is narrow.
        self.setMinimumSize(300, 260)
        self._connect()
        self._show_state()
        self._show_item(None)

    # -- parts

    def _lay_out(self) -> None:
        self.head = head = LibraryHead()
        self.search, self.format_box, self.partner_box = head.search, head.format_box, head.partner_box
        self.pairs_button, self.refresh_button = head.pairs_button, head.refresh_button
        self.import_button = head.import_button
        self.scan_words = PlainLabel()
        self.scan_words.setProperty("caption", True)
        # A label of a fixed size does not make the whole page be laid out and painted with each new count.
        self.scan_words.setFixedSize(280, 18)
        self.nothing = PlainLabel()
        self.nothing.setObjectName("quietNote")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.nothing.setWordWrap(True)
        self._rows = QStackedWidget()
        self._rows.addWidget(self.table)
        self._rows.addWidget(self.nothing)
        library = QWidget()
        self._body = QBoxLayout(QBoxLayout.Direction.LeftToRight, library)
        self._body.setContentsMargins(0, 0, 0, 0)
        self._body.setSpacing(14)
        self._body.addWidget(self._rows, 1)
        self._body.addWidget(self.details)
        self._rows.setMinimumHeight(LEAST_TABLE)
        # In a low window, table and details scroll together; neither could be used in what they would have of it.
        self._library = scrolled(library, see_through=True)
        self.stack = QStackedWidget()
        self.stack.addWidget(self._library)
        self.task_bar = TaskBar()
        self.folder_bar = FolderBar()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 14, 0, 0)
        layout.setSpacing(10)
        layout.addWidget(head)
        layout.addWidget(self.scan_words)
        layout.addWidget(self.stack, 1)
        layout.addWidget(self.task_bar)
        layout.addWidget(self.folder_bar)

    def _connect(self) -> None:
        controller = self._controller
        controller.changed.connect(self._show_state)
        controller.fitsChanged.connect(self._show_fits)
        controller.scanProgressed.connect(self._show_scan)
        controller.taskChanged.connect(self._show_task)
        controller.noticed.connect(self._notice)
        controller.imported.connect(self._imported)
        controller.removalsChanged.connect(self._removals_changed)
        self.search.textChanged.connect(self._filter)
        if self._verdicts is not None:
            self._verdicts.changed.connect(self._show_current)
        self.search.textEdited.connect(self._leave_pairs)
        self.search.returnPressed.connect(self._go_to_table)
        self.search.leftDownwards.connect(self._go_to_table)
        for box in (self.format_box, self.partner_box):
            box.activated.connect(self._leave_pairs)
        self.format_box.currentIndexChanged.connect(self._filter)
        self.partner_box.currentIndexChanged.connect(self._partner_chosen)
        self.pairs_button.toggled.connect(self._pairs_toggled)
        self.refresh_button.clicked.connect(controller.rescan)
        self.import_button.chosen.connect(self.import_paths)
        self.import_button.wayChanged.connect(self._way_chosen)
        self.table.chosen.connect(self._show_item)
        actions = self.actions_of_model
        actions.targetRequested.connect(self.targetRequested)
        actions.draftRequested.connect(self.draftRequested)
        actions.chatRequested.connect(self.chatRequested)
        actions.findDraftRequested.connect(self.findDraftRequested)
        actions.noticed.connect(self._notice)
        self.table.opened.connect(actions.open_item)
        self.table.removeRequested.connect(actions.remove.trigger)
        self.table.menuRequested.connect(self._open_menu)
        self.task_bar.cancelRequested.connect(controller.cancel)
        self.folder_bar.openRequested.connect(actions.open_models_folder)
        self.folder_bar.moveRequested.connect(self.moveRequested)
        self.folder_bar.othersRequested.connect(self.open_folders)

    # -- what it is told

    def set_theme(self, theme: Theme) -> None:
        self.table.set_theme(theme)
        self.details.set_theme(theme)
        self._theme = theme
        if self.good_pairs is not None:
            self.good_pairs.set_theme(theme)

    def set_import_way(self, way: ImportWay | None) -> None:
        self._way = way
        self.import_button.set_way(way)

    def set_uses(self, target: Path | None, draft: Path | None) -> None:
        """Which models are in use now."""
        if self._verdicts is not None:
            self._verdicts.target = target
        uses: dict[Path, str] = {}
        if draft is not None:
            uses[draft] = self.tr("Draft now")
        if target is not None:
            uses[target] = self.tr("Target now") if target != draft else self.tr("Target and draft now")
        self._uses = uses
        self.model.set_uses(uses)
        self._show_item(self.table.current)

    def show_model(self, path: Path) -> None:
        """Choose it, now or as soon as it is listed."""
        self._asked_for_table = True
        self._show_pairs(False)
        self.search.clear()
        self.format_box.setCurrentIndex(0)
        self.partner_box.setCurrentIndex(0)
        self._wanted = None if self.table.choose(path) else path

    def take_focus(self) -> None:
        pairs = self.good_pairs
        shown = pairs if pairs is not None and self.stack.currentWidget() is pairs else self.table
        shown.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def focus_search(self) -> None:
        self.pairs_button.setChecked(False)
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    @property
    def can_undo(self) -> bool:
        return bool(self._controller.removals)

    def undo(self) -> None:
        self.toast.hide()
        self._controller.undo()

    # -- showing

    @Slot()
    def _show_state(self) -> None:
        state = self._controller.state
        self.model.set_items(state.items, state.fits)
        if self.good_pairs is not None:
            self.good_pairs.refresh()
        if not self.head.show_targets(self.model.items, self._partner):
            self._partner_chosen()
        self._show_rows()
        self._show_scan()
        self.folder_bar.show_state(state, self._controller.task is not None)
        empty = state.read and starter_only(state.items)
        if not self._asked_for_table:
            self._show_pairs(empty or self.pairs_button.isChecked())
        if self._partner is not None:
            self._ask_partners()
        if self._wanted is not None and self.table.choose(self._wanted):
            self._wanted = None

    @Slot()
    def _show_fits(self) -> None:
        state = self._controller.state
        self.model.set_items(state.items, state.fits)

    def _show_pairs(self, shown: bool) -> None:
        if shown and self.good_pairs is None:
            self.good_pairs = self._make_good_pairs()
            if self._theme is not None:
                self.good_pairs.set_theme(self._theme)
            self.stack.addWidget(self.good_pairs)
        self.stack.setCurrentWidget(self.good_pairs if shown and self.good_pairs is not None else self._library)
        self.pairs_button.blockSignals(True)
        self.pairs_button.setChecked(shown)
        self.pairs_button.blockSignals(False)
        self._show_scan()

    @Slot()
    def _show_rows(self) -> None:
        state, wanted = self._controller.state, self.model.filter
        if self.model.rowCount():
            self._rows.setCurrentWidget(self.table)
        else:
            if not state.read:
                words = self.tr("Looking for models")
            elif wanted == LibraryFilter():
                words = self.tr("There is no model here yet. Import one, or drop one on this page.")
            elif wanted.partners is not None and not wanted.text:
                words = self.tr("No other model here has the vocabulary of this target and is smaller.")
            else:
                words = self.tr("No model matches. Clear the search, or choose all formats.")
            self.nothing.setText(words)
            self._rows.setCurrentWidget(self.nothing)
        self.details.setVisible(self.table.current is not None)

    @Slot()
    def _show_scan(self) -> None:
        scan, words = self._controller.state.scan, ""
        if scan is not None and scan[1]:
            words = self.tr("Reading {done} of {total} models").format(done=min(scan[0] + 1, scan[1]), total=scan[1])
        elif scan is not None:
            words = self.tr("Looking through the folders")
        elif self._controller.state.read and self.stack.currentWidget() is self._library:
            count, shown = len(self.model.items), self.model.rowCount()
            words = self.tr("1 model") if count == 1 else self.tr("{count} models").format(count=count)
            if shown != count:
                words = self.tr("{shown} of {models}").format(shown=shown, models=words)
        self.scan_words.setText(words)
        self.refresh_button.setEnabled(scan is None)

    @Slot()
    def _show_task(self) -> None:
        task = self._controller.task
        busy = task is not None
        if (task is None or task.cancelling) and self.task_bar.cancel.hasFocus():
            # It goes, and the focus would go anywhere.
            self.table.setFocus(Qt.FocusReason.OtherFocusReason)
        self.task_bar.show_task(task)
        self.folder_bar.show_state(self._controller.state, busy)
        self.import_button.setEnabled(not busy)
        self._show_item(self.table.current)

    @Slot()
    def _show_current(self) -> None:
        self._show_item(self.table.current)

    @Slot(object)
    def _show_item(self, item: LibraryItem | None) -> None:
        use = "" if item is None else self._uses.get(item.path, "")
        self.actions_of_model.set_item(item, use)
        if item is not None:
            suits = "" if self._verdicts is None else self._verdicts.words(item)
            self.details.show_item(item, self.model.fit_of(item), use, suits)
        self.details.setVisible(item is not None)

    # -- filters

    @Slot()
    def _filter(self, *_: object) -> None:
        partners = self.model.filter.partners
        self.model.set_filter(LibraryFilter(self.search.text(), self.format_box.currentData(), partners))
        self._show_rows()
        self._show_scan()

    @Slot()
    def _partner_chosen(self, *_: object) -> None:
        self._partner = self.partner_box.currentData()
        if self._partner is None:
            self._set_partners(None)
        else:
            self._ask_partners()

    def _ask_partners(self) -> None:
        target = next((item for item in self.model.items if item.path == self._partner), None)
        if target is None:
            return

        def found(partners: frozenset[Path]) -> None:
            if self._partner == target.path:
                self._set_partners(partners)

        self._controller.partners_of(target, found)

    def _set_partners(self, partners: frozenset[Path] | None) -> None:
        wanted = self.model.filter
        self.model.set_filter(LibraryFilter(wanted.text, wanted.format, partners))
        self._show_rows()
        self._show_scan()

    @Slot(bool)
    def _pairs_toggled(self, on: bool) -> None:
        self._asked_for_table = not on
        self._show_pairs(on)

    @Slot()
    def _leave_pairs(self, *_: object) -> None:
        """Who searches wants to see what is found."""
        self.pairs_button.setChecked(False)

    @Slot()
    def _go_to_table(self) -> None:
        self._leave_pairs()
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(QPoint)
    def _open_menu(self, at: QPoint) -> None:
        menu = self.actions_of_model.menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(at)

    @Slot()
    def _removals_changed(self) -> None:
        removals = self._controller.removals
        if removals:
            words = self.tr("Removed “{name}”").format(name=removals[-1][0])
            self.toast.offer(words, self.tr("Undo"), self._controller.undo)
        self.undoChanged.emit()

    @Slot(str)
    def _notice(self, words: str) -> None:
        self.toast.tell(words)

    # -- import

    @Slot(object)
    def import_paths(self, paths: Sequence[Path]) -> None:
        """Into the models folder, after asking how unless that was remembered."""
        if not self._controller.is_free():
            return
        if self._way is not None:
            self._controller.import_models(paths, self._way)
            return
        dialog = ImportDialog(paths, self.window())
        dialog.setModal(True)

        def accepted() -> None:
            if dialog.remember.isChecked():
                self.set_import_way(dialog.way)
                self.importWayChanged.emit(dialog.way)
            self._controller.import_models(paths, dialog.way)

        dialog.accepted.connect(accepted)
        dialog.finished.connect(dialog.deleteLater)
        dialog.show()

    @Slot(object)
    def _way_chosen(self, way: ImportWay | None) -> None:
        self._way = way
        self.importWayChanged.emit(way)

    @Slot(object)
    def _imported(self, paths: Sequence[Path]) -> None:
        self.show_model(paths[0])

    @Slot()
    def open_folders(self) -> None:
        dialog = FoldersDialog(self._controller.state.roots, self._added_folders(), self.window())
        dialog.addedChanged.connect(self.addedFoldersChanged)
        dialog.addedChanged.connect(self._controller.set_added)
        dialog.finished.connect(dialog.deleteLater)
        dialog.setModal(True)
        dialog.show()

    # -- events

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_models(event.mimeData()):
            accept_as_copy(event)
            self.veil.cover()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.veil.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self.veil.hide()
        paths = dropped_models(event.mimeData())
        if paths:
            accept_as_copy(event)
            self.import_paths(paths)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        width = event.size().width()
        beside = width >= BESIDE_FROM
        horizontal, vertical = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._body.setDirection(horizontal if beside else vertical)
        most = 16_777_215
        self.details.setFixedWidth(DETAILS_WIDTH) if beside else self.details.setMaximumWidth(most)
        if beside:
            self.details.setMinimumHeight(0)
            self.details.setMaximumHeight(most)
        else:
            self.details.setMinimumWidth(0)
            self.details.setFixedHeight(min(DETAILS_HEIGHT, max(140, event.size().height() // 3)))
        self.head.set_width(width)
