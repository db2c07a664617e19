"""Properties of a widget that the style sheet colours it by."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget


def restyle(widget: QWidget, **properties: object) -> None:
    """Set these, and have the widget look so: one that was shown before does not notice by itself."""
    changed = {name: value for name, value in properties.items() if widget.property(name) != value}
    for name, value in changed.items():
        widget.setProperty(name, value)
    if changed:
        widget.style().unpolish(widget)
        widget.style().polish(widget)
