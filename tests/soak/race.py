"""Swaps folders under the file tools' feet; run by the race tests as a process of its own, until it is killed.

    python race.py WORKSPACE OUTSIDE

`links/d` is a link that points to the real folder and outside in turns; `folders/d` is a folder that is moved away and
replaced by a link to the outside, and back.
"""

import os
import shutil
import sys
from collections.abc import Callable


def place(put: Callable[[], None]) -> None:
    """Put something at `folders/d`; a folder that a tool has just made there goes first."""
    while True:
        try:
            return put()
        except OSError:
            shutil.rmtree("folders/d", ignore_errors=True)


workspace, outside = sys.argv[1:]
os.chdir(workspace)
print("ready", flush=True)
while True:
    for target in ("../real", outside):
        os.symlink(target, "links/new")
        os.rename("links/new", "links/d")
    os.rename("folders/d", "folders/away")
    place(lambda: os.symlink(outside, "folders/d"))
    os.unlink("folders/d")
    place(lambda: os.rename("folders/away", "folders/d"))
