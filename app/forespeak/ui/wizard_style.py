"""What only the page about pairs wears, on top of the application's style sheet."""

from __future__ import annotations

from functools import cache
from string import Template

from forespeak.resource_files import resource_path
from forespeak.ui.theme import Theme


@cache
def wizard_style_sheet(theme: Theme) -> str:
    return Template(resource_path("themes", "pair.qss").read_text("utf-8")).substitute(
        window=theme.window,
        card=theme.card,
        line=theme.line,
        ink=theme.ink,
        muted=theme.muted,
        accent=theme.accent,
        accent_soft=theme.accent_soft,
        success=theme.success,
        danger=theme.danger,
    )
