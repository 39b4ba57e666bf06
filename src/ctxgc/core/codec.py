"""Heaps as JSON, there and back without a difference.

JSON text is made by the standard library, which keeps lone surrogates; the fields come from the
segment's own definition, so no serializer can forget one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from ctxgc.core.heap import Amount, Heap, rough_tokens
from ctxgc.core.segment import segment_from_dict, segment_to_dict
from ctxgc.errors import InputError

FORMAT_VERSION = 1


class _Heap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int
    version: int
    step: int
    updates: int
    order: list[str]
    files: list[str]
    opened: list[str]
    first_request: str | None
    changed: list[str]
    touched_old: list[str]
    common: list[str]
    deleted: Amount
    segments: list[dict[str, Any]]


def heap_to_json(heap: Heap, *, indent: int | None = None) -> str:
    """Return a heap as JSON text."""
    recent = heap.root_index
    saved = _Heap(
        format=FORMAT_VERSION,
        version=heap.version,
        step=heap.step,
        updates=heap.updates,
        order=list(heap.order),
        files=list(recent.files),
        opened=list(recent.opened),
        first_request=recent.first_request,
        changed=list(heap.index.changed),
        touched_old=list(heap.index.touched_old),
        common=heap.mentions.common(),
        deleted=heap.ledger.deleted,
        segments=[segment_to_dict(segment) for segment in heap],
    )
    return json.dumps(msgspec.to_builtins(saved), indent=indent)


def heap_from_json(text: str | bytes, count: Callable[[str], int] = rough_tokens) -> Heap:
    """Return the heap that JSON text describes.

    Raises:
        InputError: the text is not JSON, not a heap, or the heap of a newer version.
    """
    saved = _read(text)
    heap = Heap(count)
    heap.ledger.restate_deleted(saved.deleted)
    heap.mentions.restate_common(saved.common)
    heap.rebuild([segment_from_dict(data) for data in saved.segments])
    heap.version, heap.step, heap.updates = saved.version, saved.step, saved.updates
    heap.order.clear()
    heap.order.extend(saved.order)
    heap.index.changed.extend(saved.changed)
    heap.index.touched_old.update(dict.fromkeys(saved.touched_old))
    recent = heap.root_index
    recent.files = dict.fromkeys(saved.files)
    recent.opened = dict.fromkeys(saved.opened)
    recent.first_request = saved.first_request
    return heap


def _read(text: str | bytes) -> _Heap:
    try:
        data = json.loads(text)
        saved = msgspec.convert(data, _Heap)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not a saved heap: {error}", field="heap") from None
    if saved.format > FORMAT_VERSION:
        raise InputError(
            f"the heap was saved in format {saved.format}, this version reads {FORMAT_VERSION}",
            hint="open it with a newer ctxgc",
            field="format",
        )
    return saved
