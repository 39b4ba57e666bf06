"""Plain transcripts: one provider message per line or per element of a list, in any of the formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from ctxgc.core.message import Format
from ctxgc.errors import MessageError
from ctxgc.wire.detect import detect_format
from ctxgc.wire.transcripts.entry import Entry, Usage, moment
from ctxgc.wire.transcripts.facts import tokens_of


def is_plain(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is a provider message by itself."""
    return isinstance(line.get("role"), str) or isinstance(line.get("type"), str)


def entry_of(
    line: Mapping[str, Any], form: Format, offset: int, raw: bytes, number: int = 0
) -> Entry:
    """Return a line as an entry; where it stands in the file tells it from one that says the same."""
    digest = blake2b(raw, digest_size=8).hexdigest()
    return Entry(
        message_id=f"line-{offset}-{digest}",
        data=dict(line),
        format=form,
        written_at=moment(line.get("timestamp")),
        line=number,
    )


def format_of(messages: Iterable[Mapping[str, Any]]) -> Format:
    """Return the format of most of the messages that show one; where formats mix, of the first."""
    sample = list(messages)
    try:
        return detect_format(sample)
    except MessageError:
        marks = (detect_format([message]) for message in sample)
        return next((mark for mark in marks if mark != "openai"), "openai")


def usage_of(line: Mapping[str, Any], number: int) -> Usage | None:
    """Return the usage that stands beside a message, as the providers spell it; None without one."""
    said = line.get("usage")
    if not isinstance(said, Mapping):
        return None
    total = tokens_of(said, "prompt_tokens") or tokens_of(said, "input_tokens")
    write = tokens_of(said, "cache_creation_input_tokens")
    read = tokens_of(said, "cache_read_input_tokens")
    details = said.get("prompt_tokens_details") or said.get("input_tokens_details")
    if isinstance(details, Mapping):
        read = tokens_of(details, "cached_tokens")
        total = max(0, total - read)
    return Usage(
        uncached=total,
        cache_read=read,
        cache_write=write,
        output=tokens_of(said, "completion_tokens") or tokens_of(said, "output_tokens"),
        line=number,
        written_at=moment(line.get("timestamp")),
    )
