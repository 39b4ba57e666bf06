"""Trying: what is set for an attempt is taken back when the attempt fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def trying(owner: object, **values: Any) -> Iterator[None]:
    """Set attributes before something is made durable; when that fails, they are what they were."""
    before = {name: getattr(owner, name) for name in values}
    _set(owner, values)
    try:
        yield
    except BaseException:
        _set(owner, before)
        raise


def _set(owner: object, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(owner, name, value)
