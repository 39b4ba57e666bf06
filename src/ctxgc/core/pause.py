"""A pause for Python's own garbage collector.

It looks for cycles whenever many objects are made, through everything that lives. A collection of ours
makes many at once, and no cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cycles_paused() -> Iterator[None]:
    """Let nobody look for cycles meanwhile; afterwards it is as it was."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
