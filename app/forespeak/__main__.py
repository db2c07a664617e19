"""Where the program starts: the window, or with arguments the command line."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

_COMPUTING = frozenset({"chat", "bench", "parity", "compare", "pair", "self-test"})
"""The commands that load a model into this process."""


def main() -> int:
    """Returns the exit code: 0, 2 for what the user can mend, 1 for our bugs."""
    # First of all, for the frozen app: its engine process starts here too.
    multiprocessing.freeze_support()
    # Imported here and not above: the engine process imports this module anew and needs neither.
    model = _model(sys.argv[1:])
    if len(sys.argv) > 1 and model is None:
        if sys.argv[1] in _COMPUTING:
            from forespeak.engines import huge_pages

            huge_pages.begin_again()
        from forespeak import cli

        return cli.run(sys.argv[1:])
    from forespeak.ui import app

    problem = app.ui_problem()
    if problem is not None:
        from forespeak import terminal

        terminal.say_error(problem)
        return 2
    return app.run_window(model=model)


def _model(arguments: list[str]) -> Path | None:
    """A model's file that is to be opened in the window, as desktops do when it is clicked."""
    if len(arguments) != 1 or not arguments[0].lower().endswith(".gguf"):
        return None
    path = Path(arguments[0]).absolute()
    return path if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
