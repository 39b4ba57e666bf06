"""All that a heap knows, for comparing a heap with one that was built again from its segments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctxgc.core import Heap, segment_to_dict
from tests.properties import naive_engine


def snapshot(heap: Heap) -> dict[str, Any]:
    """Return all that a heap knows, in a form that does not depend on how it came to know it."""
    index, recent = heap.index, heap.root_index
    return {
        "segments": [segment_to_dict(segment) for segment in heap],
        "working": [segment.segment_id for segment in heap.working()],
        "ledger": (heap.ledger.ingested, heap.ledger.working, heap.ledger.stashed, heap.ledger.deleted),
        "links": (heap.references, heap.backrefs, heap.links.remembered),
        "keys": {
            key: (sorted(heap.keys.members(key).old), sorted(heap.keys.members(key).young))
            for key in heap.keys.keys()  # noqa: SIM118 - not a dict
        },
        "bonds": {s.segment_id: sorted(heap.bonds.group(s)) for s in heap.working()},
        "open": sorted(heap.bonds.open_calls()),
        "young": sorted(index.young),
        "stashed": sorted(index.stashed),
        "waiting": (list(index.changed), sorted(index.touched_old), list(heap.order)),
        "mentions": {
            name: sorted(heap.mentions.holders(name)) for name in ("src/a.py:12", "alpha_1", "beta_2")
        },
        "common": sorted(heap.mentions.common()),
        "messages": _messages(heap, recent.last_messages(1_000)),
        "requests": _messages(heap, recent.last_requests(1_000)),
        "errors": list(recent.errors.last(1_000)),
        "files": (list(recent.files), list(recent.opened), recent.first_request),
        "watched": [
            sorted(group)
            for group in (
                recent.pinned, recent.protected, recent.invariants, recent.decisions, recent.instructions,
            )
        ],
        "clock": (heap.step, heap.version),
    }  # fmt: skip


def _messages(heap: Heap, ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(naive_engine.message_of(heap.get(segment_id)) for segment_id in ids))
