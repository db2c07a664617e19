"""Run by the frozen program before anything else: its libraries are for itself alone.

PyInstaller's starter puts them on LD_LIBRARY_PATH, where a browser or a file manager that is opened from the window
would load them instead of the system's. This process has read the variable already, so it can go. The program's own
children need it: they are told to start as the first process did, which sets it anew.
"""

import os

before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if before is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = before
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
