"""Forespeak: chat with local language models and see their speculation."""

__version__ = "0.1.0"
