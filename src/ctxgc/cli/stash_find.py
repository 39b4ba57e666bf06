"""Finding segments in stores, and what lists show of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ctxgc.cli.report import styled
from ctxgc.cli.stash_store import age, handle_of, preview
from ctxgc.errors import InputError, UnknownHandleError
from ctxgc.stores import Store

LINES_HELP = "Only these lines, counted from 1."
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


def segment_row(session_id: str, key: str, doc: dict[str, Any]) -> dict[str, Any]:
    """Return what lists show of a segment."""
    names = ("type", "tier", "tokens", "created_at", "file_path", "tags")
    return {
        "session": session_id,
        "handle": handle_of(key, doc),
        "segment_id": key,
        **{name: doc.get(name) for name in names},
        "age": age(doc.get("created_at")),
        "line": preview(str(doc.get("text", ""))),
    }


def highlighted(text: str, words: Sequence[str]) -> str:
    """Return a text with the words in it marked, for those who see colours."""
    sought = "|".join(re.escape(word) for part in words for word in part.split())
    if not sought:
        return text
    return re.sub(sought, lambda found: styled(found[0], "name"), text, flags=re.IGNORECASE)


def find_segment(store: Store, handle: str, sessions: list[str]) -> tuple[str, str, dict[str, Any]]:
    """Return the session, the id and the document of what answers to a handle, an id or a name.

    Raises:
        UnknownHandleError: nothing does.
        InputError: things in several sessions do.
    """
    found = list(_answers(store, handle, sessions))
    if not found:
        raise UnknownHandleError(
            f"nothing answers to '{handle}'",
            hint="ctxgc search WORDS finds it by what it says",
            handle=handle,
        )
    among = sorted({session_id for session_id, _, _ in found})
    if len(among) > 1:
        raise InputError(
            f"'{handle}' is in {len(among)} sessions: {', '.join(among[:5])}",
            hint="choose one with --session",
            field="handle",
        )
    # What stands in the view for a stashed segment has its handle too; the original is meant.
    return min(found, key=lambda row: row[2].get("derived_from") is not None)


def _answers(
    store: Store, handle: str, sessions: list[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for session_id in sessions:
        for key, doc in store.load(session_id, "segments"):
            if handle in (doc.get("handle"), key, doc.get("name"), doc.get("message_id")):
                yield session_id, key, doc


def line_range(lines: str | None) -> tuple[int, int] | None:
    """Return the first and the last line that a text such as `10-20` names.

    Raises:
        InputError: it names none.
    """
    if lines is None:
        return None
    match = _LINES.fullmatch(lines)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise InputError(f"--lines cannot be {lines!r}", hint="for example 10-20", field="lines")
    return first, last
