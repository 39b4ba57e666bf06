"""headroom's `compress` on the whole history, with its defaults."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import Any

from shared import numbered, serve  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    compress = import_module("headroom").compress
    return lambda history: numbered(compress(deepcopy(history), **settings).messages, history)


if __name__ == "__main__":
    serve(begin)
