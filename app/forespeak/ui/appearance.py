"""The theme of the application: the one chosen, or the system's, followed as it changes."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QApplication

from forespeak.ui.main_window import MainWindow
from forespeak.ui.preferences import Appearance, Preferences
from forespeak.ui.theme import MarkStyle, Theme, theme_for
from forespeak.ui.window_style import window_style_sheet


class AppearanceKeeper(QObject):
    def __init__(self, application: QApplication, window: MainWindow) -> None:
        super().__init__(window)
        self._application = application
        self._window = window
        self.preferences = Preferences()
        self._theme: Theme | None = None
        application.styleHints().colorSchemeChanged.connect(self._system_changed)

    @Slot(object)
    def apply(self, preferences: Preferences) -> None:
        """Cheap when nothing of it changed: a style sheet costs a repaint of everything."""
        marks_before = self.preferences.marks
        first = self._theme is None
        self.preferences = preferences
        theme = theme_for(dark=self._is_dark(), colour_blind=preferences.colour_blind)
        if theme is not self._theme:
            self._theme = theme
            self._application.setPalette(theme.palette())
            self._application.setStyleSheet(window_style_sheet(theme))
            self._window.set_theme(theme)
        if first or marks_before != preferences.marks:
            self._window.conversation.set_mark_style(mark_style(preferences.marks))

    def _is_dark(self) -> bool:
        if self.preferences.appearance is Appearance.SYSTEM:
            return self._application.styleHints().colorScheme() is Qt.ColorScheme.Dark
        return self.preferences.appearance is Appearance.DARK

    @Slot()
    def _system_changed(self) -> None:
        self.apply(self.preferences)


def mark_style(name: str) -> MarkStyle:
    """By the name in the preferences; an unknown one is SUBTLE."""
    try:
        return MarkStyle(name)
    except ValueError:
        return MarkStyle.SUBTLE
