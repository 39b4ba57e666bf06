"""Stubs: the text that stands in for a tool result."""

from __future__ import annotations

from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import NAMES, OPENING
from ctxgc.strategies.host import Host


def stub(segment: ContextSegment, why: str, host: Host, *, names: list[str], kept: str) -> str:
    """Return a short tombstone for a segment, with bare names and verbatim lines under it."""
    recall = _recall(segment, host)
    head = f"{OPENING} {segment.tokens or 0} tokens, {why}{f'; {recall}' if recall else ''}]"
    listed = [NAMES + " ".join(names)] if names else []
    return "\n".join([head, *listed, *([kept] if kept else [])])


def _recall(segment: ContextSegment, host: Host) -> str:
    handle = host.handle(segment.segment_id)
    return host.recall_call.replace("{handle}", handle) if host.recall_call and handle else ""
