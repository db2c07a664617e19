"""How the Hub is reached: the page of the settings about its address, the proxy, working offline, token and speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QLineEdit, QSpinBox, QWidget

from forespeak.errors import UserFacingError
from forespeak.models.hub_settings import (
    HubSettings,
    checked_endpoint,
    checked_proxy,
    default_endpoint,
    forced_offline,
    may_carry_token,
)
from forespeak.ui.form import FormLayout, add_heading, add_row, caption, form_of, stacked
from forespeak.ui.hub_account import HubAccount
from forespeak.ui.restyle import restyle
from forespeak.ui.token_entry import TokenEntry

MEGABYTE = 1_000_000


class HubPage(QWidget):
    """Changes count at once. An address that cannot be one is said so, and the one before it stays."""

    limitChanged = Signal(object)
    """The most bytes a second that downloads take together; None is no limit."""

    def __init__(self, account: HubAccount, limit: int | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._account = account
        self._filling = False
        form = form_of(self)
        add_heading(
            form,
            self.tr("The Hub"),
            self.tr("Forespeak asks it only when you search, open a model or download; never for anything else."),
        )
        self.endpoint = CheckedLine(form, self.tr("Address"), default_endpoint())
        self.endpoint.field.editingFinished.connect(self._take_endpoint)
        self.proxy = CheckedLine(form, self.tr("Proxy"), self.tr("The system's"))
        self.proxy.field.editingFinished.connect(self._take_proxy)
        self.offline = QCheckBox(self.tr("Work offline"))
        self.offline.toggled.connect(self._take_offline)
        self.offline_note = caption("")
        form.addRow("", stacked(self.offline, self.offline_note))
        add_heading(
            form,
            self.tr("Token"),
            self.tr("Says to the Hub who you are. Gated and private models need one; it needs the right to read only."),
        )
        self.token = TokenEntry()
        self.token.storeRequested.connect(account.store_token)
        self.token.testRequested.connect(account.test)
        self.token.forgetRequested.connect(account.forget_token)
        form.addRow(self.token)
        add_heading(form, self.tr("Downloads"), self.tr("Two at a time; the limit is for both together."))
        self.limit = QSpinBox()
        self.limit.setRange(0, 10_000)
        self.limit.setObjectName("bandwidth")
        self.limit.setSuffix(self.tr(" MB/s"))
        self.limit.setSpecialValueText(self.tr("As fast as it goes"))
        self.limit.setKeyboardTracking(False)
        self.limit.lineEdit().setTextMargins(8, 0, 0, 0)
        self.limit.valueChanged.connect(self._take_limit)
        add_row(form, self.tr("Bandwidth"), self.limit)
        self.set_limit(limit)
        self._show_settings(account.settings)
        self.token.show_status(account.status)
        account.settingsChanged.connect(self._show_settings)
        account.tokenChanged.connect(self.token.show_status)
        if not account.status.known:
            account.look()

    @Slot(object)
    def set_limit(self, limit: int | None) -> None:
        """Bytes a second; shown in whole megabytes, at least one."""
        self._filling = True
        self.limit.setValue(0 if limit is None else max(1, round(limit / MEGABYTE)))
        self._filling = False

    @Slot(object)
    def _show_settings(self, settings: HubSettings) -> None:
        self._filling = True
        shown = "" if settings.endpoint == default_endpoint() else settings.endpoint
        self.endpoint.show_text(shown)
        self.proxy.show_text(settings.proxy or "")
        forced = forced_offline()
        self.offline.setChecked(settings.offline or forced)
        self.offline.setEnabled(not forced)
        self.offline_note.setText(
            self.tr("HF_HUB_OFFLINE in the environment says so.")
            if forced
            else self.tr("Nothing is asked of the network, and nothing is downloaded.")
        )
        if not may_carry_token(settings.endpoint):
            self.endpoint.warn(self.tr("The connection is not encrypted, so no token is sent there."))
        self._filling = False

    @Slot()
    def _take_endpoint(self) -> None:
        text = self.endpoint.field.text()
        endpoint = self.endpoint.checked(lambda: checked_endpoint(text) if text.strip() else default_endpoint())
        if endpoint is not None and not self._filling:
            self._account.set_settings(replace(self._account.settings, endpoint=endpoint))
            self._show_settings(self._account.settings)

    @Slot()
    def _take_proxy(self) -> None:
        text = self.proxy.field.text()
        proxy = self.proxy.checked(lambda: checked_proxy(text) if text.strip() else "")
        if proxy is not None and not self._filling:
            self._account.set_settings(replace(self._account.settings, proxy=proxy or None))

    @Slot()
    def _take_offline(self) -> None:
        if not self._filling:
            self._account.set_settings(replace(self._account.settings, offline=self.offline.isChecked()))

    @Slot()
    def _take_limit(self) -> None:
        if not self._filling:
            self.limitChanged.emit(self.limit.value() * MEGABYTE or None)


class CheckedLine:
    """A field for an address, and below it what is wrong with what stands there."""

    def __init__(self, form: FormLayout, words: str, otherwise: str) -> None:
        self._form = form
        self.field = QLineEdit()
        self.field.setPlaceholderText(otherwise)
        self.field.setMaxLength(2000)
        self.field.setAccessibleName(words)
        self.problem = caption("")
        form.addRow(words, self.field)
        form.addRow("", self.problem)
        form.setRowVisible(self.problem, False)

    def checked(self, check: Callable[[], str]) -> str | None:
        """What `check` gives; None if it raises UserFacingError, which is then shown."""
        try:
            value = check()
        except UserFacingError as error:
            self._say(str(error), "danger")
            return None
        self._say("")
        return value

    def show_text(self, text: str) -> None:
        if not self.field.hasFocus() or not self.problem.text():
            self.field.setText(text)
            self._say("")

    def warn(self, words: str) -> None:
        self._say(words)

    def _say(self, words: str, kind: str = "caption") -> None:
        self.problem.setText(words)
        restyle(self.problem, danger=kind == "danger")
        self.field.setAccessibleDescription(words)
        self._form.setRowVisible(self.problem, bool(words))
