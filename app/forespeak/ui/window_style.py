"""The application's style sheet with what only the window's own parts need."""

from __future__ import annotations

from string import Template

from forespeak.resource_files import resource_path
from forespeak.ui.theme import CARD_RADIUS, Theme, style_sheet


def window_style_sheet(theme: Theme) -> str:
    own = Template(resource_path("themes", "window.qss").read_text("utf-8"))
    return style_sheet(theme) + own.substitute(
        window=theme.window,
        side=theme.side,
        card=theme.card,
        bubble=theme.bubble,
        line=theme.line,
        ink=theme.ink,
        muted=theme.muted,
        accent=theme.accent,
        accent_soft=theme.accent_soft,
        on_accent=theme.on_accent,
        success=theme.success,
        danger=theme.danger,
        warn=theme.corrected.fill,
        warn_line=theme.corrected.line,
        radius=f"{CARD_RADIUS}px",
    )
