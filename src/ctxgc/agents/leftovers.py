"""What an installation leaves behind in time: logs, checkpoints, the stash; and how it goes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ctxgc.agents.compaction import CHECKPOINTS
from ctxgc.agents.log import LOG_NAME
from ctxgc.agents.receipt import FOLDER
from ctxgc.agents.settings import STORE_NAME
from ctxgc.stores.files import remove

_OURS = (LOG_NAME, STORE_NAME, CHECKPOINTS, FOLDER)


def remove_home(home: Path) -> None:
    """Remove our own folder; what in it is not ours stays, and the folder with it."""
    if not home.is_dir():
        return
    for path in sorted(home.iterdir()):
        if path.name.removeprefix(".").startswith(_OURS):
            _remove(path)
    with suppress(OSError):
        home.rmdir()


def remove_directories(directories: Iterable[str]) -> None:
    """Remove directories that were made for an installation, if nothing is in them."""
    for path in sorted(map(Path, directories), key=lambda each: -len(each.parts)):
        with suppress(OSError):
            path.rmdir()


def _remove(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        remove(path)
        return
    for each in sorted(path.iterdir()):
        _remove(each)
    with suppress(OSError):
        path.rmdir()
