"""JSON files that people read and compare."""

from __future__ import annotations

import msgspec


def readable_json(found: object) -> bytes:
    """Return something as JSON, a line for each value: the same bytes for the same thing."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
