"""How models are loaded, wherever they compute: the page of the settings about context, cache and exactness."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QWidget

from forespeak.engines.engine import CacheType
from forespeak.ui.form import CheckedRow, add_check, add_row, caption, form_of, whole_box
from forespeak.ui.preferences import Preferences

_LEAST_CONTEXT = 256


class ModelPage(QWidget):
    """Emits `changed` after each change; what is chosen then is `taken_into`."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = Preferences()
        self._filling = False
        form = form_of(self)
        form.addRow(
            caption(self.tr("These take effect when the model is loaded again, which happens as this window closes."))
        )
        self.context_length = whole_box(0, 1_048_576, self._take)
        self.context_length.setSpecialValueText(self.tr("The model's own, up to 8,192"))
        self.context_length.setSingleStep(1024)
        add_row(form, self.tr("Context length"), self.context_length, self.tr("In tokens. Longer takes more memory."))
        self.cache_type = QComboBox()
        for cache_type in CacheType:
            words = self.tr("F16, as is usual") if cache_type is CacheType.F16 else cache_type.value
            self.cache_type.addItem(words, cache_type)
        self._cache_row = CheckedRow(
            form,
            self.tr("Cache type"),
            self.cache_type,
            self.tr(
                "The numbers in which the model remembers the chat. Fewer bits take less memory, and may change the "
                "words a little."
            ),
        )
        self.cache_type.currentIndexChanged.connect(self._take_cache)
        self.flash_attention = QComboBox()
        for words, value in ((self.tr("Automatic"), None), (self.tr("On"), True), (self.tr("Off"), False)):
            self.flash_attention.addItem(words, value)
        self._flash_row = CheckedRow(
            form,
            self.tr("Flash attention"),
            self.flash_attention,
            self.tr(
                "Takes less memory. On GPUs it is faster; on processors, checks of several tokens are slower with it, "
                "and automatic leaves it off there."
            ),
        )
        self.flash_attention.currentIndexChanged.connect(self._take_flash)
        self.reproducible = QCheckBox(self.tr("Reproducible to the last token"))
        self.reproducible.toggled.connect(self._take)
        add_check(
            form,
            self.reproducible,
            self.tr(
                "Checking several tokens at once then gives the same scores as one by one, so that speculation on "
                "and off write the same words even where two tokens tie. Slower, and takes more memory."
            ),
        )

    def show_preferences(self, preferences: Preferences) -> None:
        """Show these, without telling anyone."""
        self._shown = preferences
        self._filling = True
        settings = preferences.load_settings
        self.context_length.setValue(settings.context_length or 0)
        self.reproducible.setChecked(settings.reproducible)
        self.cache_type.setCurrentIndex(self.cache_type.findData(settings.cache_type))
        self.flash_attention.setCurrentIndex(_place_of(self.flash_attention, settings.flash_attention))
        overruled = self.tr("The reproducible setting uses F32.") if settings.reproducible else ""
        self._cache_row.overrule(overruled)
        overruled = self.tr("The reproducible setting does without it.") if settings.reproducible else ""
        self._flash_row.overrule(overruled)
        self._filling = False

    def taken_into(self, before: Preferences) -> Preferences:
        """`before` with what the page shows."""
        value = self.context_length.value()
        return replace(
            before,
            load_settings=replace(
                before.load_settings,
                context_length=max(_LEAST_CONTEXT, value) if value else None,
                reproducible=self.reproducible.isChecked(),
                cache_type=self.cache_type.currentData(),
                flash_attention=self.flash_attention.currentData(),
            ),
        )

    @Slot()
    def _take(self) -> None:
        if not self._filling:
            self._cache_row.say("")
            self._flash_row.say("")
            self.changed.emit()

    @Slot()
    def _take_cache(self) -> None:
        needs = self.tr("{type} needs flash attention. Leave that on automatic, or switch it on, and choose again.")
        self._take_unless_refused(self._cache_row, needs)

    @Slot()
    def _take_flash(self) -> None:
        needs = self.tr("A cache in {type} cannot do without it. Choose F16 or another one without Q first.")
        self._take_unless_refused(self._flash_row, needs)

    def _take_unless_refused(self, row: CheckedRow, why: str) -> None:
        """What the engine would refuse is not taken: the choice before it comes back, with the reason."""
        if self._filling:
            return
        wanted = self.taken_into(self._shown).load_settings
        if wanted.cache_can_be_read:
            self._take()
            return
        self.show_preferences(self._shown)
        row.say(why.format(type=wanted.cache_type.value))


def _place_of(combo: QComboBox, value: object) -> int:
    """`findData` takes None for no data at all."""
    return next(place for place in range(combo.count()) if combo.itemData(place) is value)
