"""Stubs: the text that stands in for a tool result, and what can be read from it again."""

from __future__ import annotations

from ctxgc.core.evacuate import GAP
from ctxgc.core.segment import ContextSegment
from ctxgc.core.tombstone import OPENING
from ctxgc.strategies.host import Host

_NAMES = "Names: "


def stub(segment: ContextSegment, why: str, host: Host, *, names: list[str], kept: str) -> str:
    """Return a short tombstone for a segment, with bare names and verbatim lines under it."""
    recall = _recall(segment, host)
    head = f"{OPENING} {segment.tokens or 0} tokens, {why}{f'; {recall}' if recall else ''}]"
    listed = [_NAMES + " ".join(names)] if names else []
    return "\n".join([head, *listed, *([kept] if kept else [])])


def _recall(segment: ContextSegment, host: Host) -> str:
    handle = host.handle(segment.segment_id)
    return host.recall_call.replace("{handle}", handle) if host.recall_call and handle else ""


def kept_of(text: str) -> str:
    """Return the verbatim lines under a tombstone, without the marks of gaps."""
    lines = text.split("\n")[1:]
    return "\n".join(line for line in lines if line != GAP and not line.startswith(_NAMES))
