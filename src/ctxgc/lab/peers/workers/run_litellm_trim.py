"""LiteLLM's `trim_messages`."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import Any

from serving import numbered, serve  # type: ignore[import-not-found]  # beside us

Json = dict[str, Any]


def begin(settings: Json) -> Any:
    """Return how a history is edited."""
    trim = import_module("litellm.utils").trim_messages
    return lambda history: numbered(trim(deepcopy(history), **settings), history)


if __name__ == "__main__":
    serve(begin)
