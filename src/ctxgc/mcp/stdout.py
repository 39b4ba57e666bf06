"""The real stdout, kept for the protocol alone."""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO


class Wire:
    """The real stdout, taken away from everybody else.

    From the moment it is made, file descriptor 1 and `sys.stdout` lead to stderr, in this process and
    in the children that it starts. Make it before anything is imported that might print.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._output: BinaryIO = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def text(self) -> io.TextIOWrapper:
        """Return the stream that carries the protocol."""
        return io.TextIOWrapper(self._output, encoding="utf-8", newline="\n")
