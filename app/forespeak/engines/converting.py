"""An engine process that does nothing but write models anew, and can be stopped while it does."""

from __future__ import annotations

from forespeak.engines.host import EngineProcess


class ConvertingProcess(EngineProcess):
    """llama.cpp's conversion cannot be stopped in the middle, so that a cancel ends the process.

    What it has written by then stays, as a `.part` file, for whoever asked for it to remove.
    """

    def cancel(self, request: int) -> None:
        self.close()
