"""Plain transcripts: one provider message per line, in any of the formats."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from ctxgc.core.message import Format
from ctxgc.wire.transcripts.entry import Entry, moment


def is_plain(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is a provider message by itself."""
    return isinstance(line.get("role"), str) or isinstance(line.get("type"), str)


def entry_of(line: Mapping[str, Any], form: Format, offset: int, raw: bytes) -> Entry:
    """Return a line as an entry; where it stands in the file tells it from one that says the same."""
    digest = blake2b(raw, digest_size=8).hexdigest()
    return Entry(
        message_id=f"line-{offset}-{digest}",
        data=dict(line),
        format=form,
        written_at=moment(line.get("timestamp")),
    )
