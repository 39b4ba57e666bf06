"""Where a part stands in the provider's own object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxgc.core.message import Message, Part


def block_of(message: Message, part: Part) -> Any:
    """Return the provider's object for a part, as it stands in the message."""
    return at(message.data, part.path)


def at(data: Any, path: Sequence[str | int]) -> Any:
    """Return what stands at a path of keys and indices."""
    for step in path:
        data = data[step]
    return data
