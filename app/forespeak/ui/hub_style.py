"""What only the pages about the Hub wear, on top of the application's style sheet."""

from __future__ import annotations

from functools import cache
from string import Template

from forespeak.resource_files import resource_path
from forespeak.ui.theme import Theme


@cache
def hub_style_sheet(theme: Theme) -> str:
    return Template(resource_path("themes", "hub.qss").read_text("utf-8")).substitute(
        window=theme.window,
        card=theme.card,
        line=theme.line,
        muted=theme.muted,
        accent=theme.accent,
        success=theme.success,
        danger=theme.danger,
        warn_line=theme.corrected.line,
    )
