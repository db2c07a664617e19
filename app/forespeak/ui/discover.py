"""The Discover tab: a search of the Hub on the left, the chosen repo on the right; on a narrow page one at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from forespeak.models.formats import ModelFormat
from forespeak.models.hub_errors import HubError
from forespeak.models.hub_results import HubModel, SearchQuery, Sort
from forespeak.ui.file_groups import GroupView
from forespeak.ui.flow_row import FlowRow
from forespeak.ui.hub_account import HubAccount, TokenStatus
from forespeak.ui.hub_controller import HubController, RepoStatus, SearchState, SearchStatus
from forespeak.ui.hub_problems import problem_words
from forespeak.ui.hub_style import hub_style_sheet
from forespeak.ui.icons import icon
from forespeak.ui.plain_label import PlainLabel
from forespeak.ui.repo_list import RepoList
from forespeak.ui.repo_view import RepoView
from forespeak.ui.search_field import SearchField
from forespeak.ui.state_panel import StatePanel
from forespeak.ui.theme import LIGHT, Theme
from forespeak.ui.web_page import open_web_page

NARROW = 760
"""Below this width in pixels the list and the repo take turns."""
OPEN_DELAY_MS = 150
"""The arrow keys pass over repos that nobody wants to see."""
_LIST_SHARE, _LIST_LEAST, _LIST_MOST = 0.36, 300, 420


class DiscoverTab(QWidget):
    downloadRequested = Signal(object)
    useRequested = Signal(object)
    compareRequested = Signal(object)
    showDownloadRequested = Signal(object)
    judgeRequested = Signal(object)
    """A GroupView each"""
    settingsRequested = Signal()

    def __init__(
        self,
        controller: HubController,
        account: HubAccount,
        fits: Callable[[int], bool],
        parent: QWidget | None = None,
    ) -> None:
        """`fits` judges a size in bytes on this machine; it is asked off the UI thread."""
        super().__init__(parent)
        self.setObjectName("hubPage")
        self._controller = controller
        self._fits = fits
        self._narrow = False
        self._theme = LIGHT
        self._passed: HubModel | None = None
        self._open_soon = QTimer(self)
        self._open_soon.setSingleShot(True)
        self._open_soon.setInterval(OPEN_DELAY_MS)
        self._open_soon.timeout.connect(self._open_passed)
        self._make_search()
        self.list = RepoList()
        self.list.repoChosen.connect(self._chosen)
        self.list.repoOpened.connect(self._opened)
        self.list.moreWanted.connect(controller.load_more)
        self.footer = PlainLabel()
        self.footer.setProperty("caption", True)
        self.footer.setWordWrap(True)
        self.more_button = QPushButton()
        self.more_button.clicked.connect(self._more)
        self.state = StatePanel()
        self.state.primaryRequested.connect(self._primary)
        self.state.secondaryRequested.connect(self._secondary)
        self.repo = RepoView()
        self.repo.downloadRequested.connect(self.downloadRequested)
        self.repo.useRequested.connect(self.useRequested)
        self.repo.compareRequested.connect(self.compareRequested)
        self.repo.showDownloadRequested.connect(self.showDownloadRequested)
        self.repo.judgeRequested.connect(self.judgeRequested)
        self.repo.retryRequested.connect(controller.reload_repo)
        self.repo.cardRetryRequested.connect(controller.retry_card)
        self.repo.settingsRequested.connect(self.settingsRequested)
        self.repo.backRequested.connect(self._back)
        self.repo.gate.entry.storeRequested.connect(account.store_token)
        self.repo.gate.entry.testRequested.connect(account.test)
        self.repo.gate.entry.forgetRequested.connect(account.forget_token)
        self._lay_out()
        controller.searchChanged.connect(self._show_search)
        controller.repoChanged.connect(self._show_repo)
        account.tokenChanged.connect(self._show_token)
        self._account = account
        self._show_token(account.status)
        self._show_search(controller.search)
        self._show_repo(controller.repo)

    # -- parts

    def _make_search(self) -> None:
        self.search = SearchField(self.tr("Search the Hub, or paste an address"))
        self.search.setMaxLength(200)
        self.search.textEdited.connect(self._typed)
        self.search.returnPressed.connect(self._entered)
        self.search.leftDownwards.connect(self._go_to_list)
        self.format = QComboBox()
        self.format.setAccessibleName(self.tr("Format"))
        for kind, words in ((ModelFormat.GGUF, "GGUF"), (ModelFormat.MLX, self.tr("MLX (Apple silicon)"))):
            self.format.addItem(words, kind)
        self.licence = QComboBox()
        self.licence.setAccessibleName(self.tr("Licence"))
        for name, words in (
            (None, self.tr("Any licence")),
            ("apache-2.0", "Apache 2.0"),
            ("mit", "MIT"),
            ("llama3.1", "Llama 3.1"),
            ("llama3.2", "Llama 3.2"),
            ("llama3.3", "Llama 3.3"),
            ("gemma", "Gemma"),
            ("cc-by-4.0", "CC BY 4.0"),
            ("cc-by-nc-4.0", "CC BY-NC 4.0"),
            ("other", self.tr("Other licence")),
        ):
            self.licence.addItem(words, name)
        self.sort = QComboBox()
        self.sort.setAccessibleName(self.tr("Order"))
        for order, words in (
            (Sort.TRENDING, self.tr("Trending")),
            (Sort.DOWNLOADS, self.tr("Most downloaded")),
            (Sort.LIKES, self.tr("Most liked")),
            (Sort.UPDATED, self.tr("Newest")),
        ):
            self.sort.addItem(words, order)
        self.fits_here = QCheckBox(self.tr("Fits this machine"))
        self.fits_here.setToolTip(
            self.tr("Leaves out models whose usual quant, about five bits a weight, does not fit into memory now")
        )
        for box in (self.format, self.licence, self.sort):
            box.activated.connect(self._filter_changed)
        self.fits_here.toggled.connect(self._filter_changed)

    def _lay_out(self) -> None:
        filters = FlowRow()
        for widget in (self.format, self.licence, self.sort, self.fits_here):
            filters.add(widget)
        foot = QHBoxLayout()
        foot.setContentsMargins(8, 4, 8, 0)
        foot.addWidget(self.footer, 1)
        foot.addWidget(self.more_button)
        found = QWidget()
        column = QVBoxLayout(found)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.list, 1)
        column.addLayout(foot)
        self._results = QStackedWidget()
        self._results.addWidget(self.state)
        self._results.addWidget(found)
        self.left = QWidget()
        left = QVBoxLayout(self.left)
        left.setContentsMargins(0, 12, 0, 0)
        left.setSpacing(10)
        left.addWidget(self.search)
        left.addWidget(filters)
        left.addWidget(self._results, 1)
        self._line = QFrame()
        self._line.setObjectName("hubLine")
        self._line.setFixedWidth(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self.left)
        row.addWidget(self._line)
        row.addWidget(self.repo, 1)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(hub_style_sheet(theme))
        self.list.set_theme(theme)
        self.state.set_theme(theme)
        self.repo.set_theme(theme)
        if not self.search.actions():
            self.search.addAction(icon("search", theme.muted), QLineEdit.ActionPosition.LeadingPosition)
        else:
            self.search.actions()[0].setIcon(icon("search", theme.muted))

    def take_focus(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if not self._account.status.known:
            self._account.look()

    def focus_search(self) -> None:
        if self._narrow and not self.left.isVisible():
            self._back()
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    # -- what it is told

    def set_here(self, repos: Collection[str]) -> None:
        """Of which repos there is something on this computer."""
        self.list.repos.set_here(repos)

    def show_groups(self, views: Sequence[GroupView]) -> None:
        """The files of the open repo, with what is known of them here."""
        self.repo.show_groups(views)

    @property
    def query(self) -> SearchQuery:
        return SearchQuery(
            text=self.search.text(),
            format=self.format.currentData(),
            licence=self.licence.currentData(),
            sort=self.sort.currentData(),
            fits=self._fits if self.fits_here.isChecked() else None,
        )

    @Slot(object)
    def _show_search(self, status: SearchStatus) -> None:
        match status.state:
            case SearchState.FIRST:
                self.state.show_state(
                    "search",
                    self.tr("Find a model on the Hub"),
                    self.tr(
                        "Type a name such as “qwen 7b” or “llama instruct”. Nothing is sent before that, and only what "
                        "you search for."
                    ),
                    primary=self.tr("Show what is popular"),
                )
            case SearchState.SEARCHING if not status.models:
                self.state.show_state("", self.tr("Searching…"), busy=True)
            case SearchState.NOTHING:
                self._show_nothing(status)
            case SearchState.FAILED if status.error is not None:
                words = problem_words(status.error)
                self.state.show_state(
                    words.icon, words.title, words.text, primary=words.primary, secondary=words.secondary
                )
            case _:
                pass
        listed = status.state is SearchState.FOUND or (status.state is SearchState.SEARCHING and bool(status.models))
        self._results.setCurrentIndex(1 if listed else 0)
        self.repo.set_hint(listed)
        self.list.set_models(status.models)
        if self._controller.repo.name is not None:
            self.list.select(self._controller.repo.name)
        self._show_footer(status)
        if status.state is SearchState.FOUND:
            # A short page must not leave the list half empty.
            self.list.look_ahead()

    def _show_nothing(self, status: SearchStatus) -> None:
        if status.left_out:
            self.state.show_state(
                "search",
                self.tr("Nothing that fits this machine"),
                self.tr("{0} were found, and all are larger than its memory.").format(status.left_out),
                primary=self.tr("Show them anyway"),
            )
            return
        filtered = status.query.licence is not None
        self.state.show_state(
            "search",
            self.tr("Nothing found"),
            self.tr("Fewer words find more; quants such as Q4_K_M are files, and not part of a name.")
            if not filtered
            else self.tr("With this licence there is none. Fewer words, or any licence, find more."),
            primary=self.tr("Any licence") if filtered else "",
        )

    def _show_footer(self, status: SearchStatus) -> None:
        count = len(status.models)
        button = ""
        if status.state is SearchState.SEARCHING:
            words = self.tr("Searching…")
        elif status.more_error is not None:
            words, button = status.more_error.what, self.tr("Try again")
        elif status.loading_more:
            words = self.tr("Loading more…")
        else:
            words = self.tr("{0} models").format(count) if count != 1 else self.tr("1 model")
            if status.more:
                button = self.tr("More")
            if status.left_out:
                words += self.tr(", {0} left out that do not fit").format(status.left_out)
        self.footer.setText(words)
        self.more_button.setText(button)
        self.more_button.setVisible(bool(button))

    @Slot(object)
    def _show_repo(self, status: RepoStatus) -> None:
        self.repo.show_status(status)
        if status.name is not None:
            self.list.select(status.name)
        self._arrange()

    @Slot(object)
    def _show_token(self, status: TokenStatus) -> None:
        self.repo.show_token(status)

    # -- what is asked for

    @Slot()
    def _typed(self) -> None:
        if self.search.text().strip():
            self._controller.type_query(self.query)

    @Slot()
    def _asked(self) -> None:
        self._controller.ask(self.query)

    @Slot()
    def _entered(self) -> None:
        """Search; once that is done, the same key goes on to the list."""
        status = self._controller.search
        if status.state is SearchState.FOUND and status.query == self.query:
            self._go_to_list()
        else:
            self._asked()

    @Slot()
    def _go_to_list(self) -> None:
        if not self.list.isVisible():
            return
        if not self.list.currentIndex().isValid():
            self.list.setCurrentIndex(self.list.repos.index(0))
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _filter_changed(self) -> None:
        # The first question is the user's own.
        if self._controller.search.state is not SearchState.FIRST:
            self._controller.ask(self.query)

    @Slot(object)
    def _chosen(self, model: HubModel) -> None:
        if not self._narrow:
            self._passed = model
            self._open_soon.start()

    @Slot()
    def _open_passed(self) -> None:
        if self._passed is not None:
            self._controller.open_repo(self._passed.repo, self._passed)

    @Slot(object)
    def _opened(self, model: HubModel) -> None:
        self._open_soon.stop()
        self._controller.open_repo(model.repo, model)

    @Slot()
    def _more(self) -> None:
        if self._controller.search.more_error is not None:
            self._controller.retry_more()
        else:
            self._controller.load_more()

    @Slot()
    def _primary(self) -> None:
        status = self._controller.search
        if status.state is SearchState.NOTHING and status.left_out:
            self.fits_here.setChecked(False)
        elif status.state is SearchState.NOTHING:
            self.licence.setCurrentIndex(0)
            self._asked()
        elif status.error is not None and problem_words(status.error).settings:
            self.settingsRequested.emit()
        else:
            self._asked()

    @Slot()
    def _secondary(self) -> None:
        error = self._controller.search.error
        if error is None or problem_words(error).settings:
            self._controller.retry()
        elif isinstance(error, HubError) and error.page:
            open_web_page(error.page)

    @Slot()
    def _back(self) -> None:
        self._controller.close_repo()
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    # -- narrow and wide

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        width = self.width()
        self._narrow = width < NARROW
        opened = self._controller.repo.name is not None
        self.repo.set_narrow(self._narrow)
        self.left.setVisible(not self._narrow or not opened)
        self.repo.setVisible(not self._narrow or opened)
        self._line.setVisible(not self._narrow)
        if self._narrow:
            self.left.setMinimumWidth(0)
            self.left.setMaximumWidth(16_777_215)
        else:
            self.left.setFixedWidth(min(max(round(width * _LIST_SHARE), _LIST_LEAST), _LIST_MOST))
