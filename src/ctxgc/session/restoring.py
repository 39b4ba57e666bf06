"""Saving a session's state, and going on from it after a restart."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ctxgc.core.segment import ContextSegment
from ctxgc.session.record import Applied
from ctxgc.session.view import Gone
from ctxgc.session.workings import Workings
from ctxgc.stores import Put
from ctxgc.strategies.base import GCResult
from ctxgc.strategies.turns import opens_turn

ORIGINAL = "original:"


def state_write(w: Workings) -> Put:
    """Return the write of everything that is neither message nor segment."""
    heap, recent = w.heap, w.heap.recent
    state: dict[str, Any] = {
        "context_limit": w.books.budget.context_limit,
        "secret": w.stash.secret.hex(),
        "summaries": w.summaries,
        "turns_taken": w.turns_taken,
        "numbered": w.segmenter.numbered,
        "ingested_tokens": w.ingested_tokens,
        "pinned_messages": sorted(w.pinned_messages),
        "held_until": w.held_until,
        "task_id": w.task_id,
        "task_dependencies": sorted(w.task_dependencies),
        "active_file": w.active_file,
        "active_range": w.active_range,
        "step": heap.step,
        "opened": list(recent.opened),
        "first_request": recent.first_request,
        "common": heap.mentions.common(),
        "budget": w.books.budget.to_dict(),
    }
    return Put("state", "session", state)


def reopen(w: Workings) -> None:
    """Become the session that the archive holds."""
    state = w.archive.load_state()
    w.summaries = state.get("summaries", 0)
    w.turns_taken = state.get("turns_taken", 0)
    w.ingested_tokens = state.get("ingested_tokens", 0)
    w.pinned_messages = set(state.get("pinned_messages", ()))
    w.held_until = dict(state.get("held_until", {}))
    w.task_id = state.get("task_id")
    w.task_dependencies = frozenset(state.get("task_dependencies", ()))
    w.active_file = state.get("active_file")
    lines = state.get("active_range")
    w.active_range = (lines[0], lines[1]) if lines else None
    if "secret" in state:
        w.stash.secret = bytes.fromhex(state["secret"])
    _reopen_heap(w, state)
    _reopen_view(w)
    _reopen_history(w)
    _reopen_books(w, state)


def _reopen_heap(w: Workings, state: dict[str, Any]) -> None:
    segments = w.archive.load_segments()
    w.heap.mentions.restate_common(state.get("common", ()))
    known = {segment.segment_id for segment in segments}
    w.heap.rebuild([_without_strays(segment, known) for segment in segments])
    w.heap.step = max(state.get("step", 0), w.heap.step)
    w.heap.recent.opened.update(dict.fromkeys(state.get("opened", ())))
    if state.get("first_request") is not None:
        w.heap.recent.first_request = state["first_request"]
    w.segmenter.remember_number(max((_number(s) for s in segments), default=0))
    w.segmenter.remember_number(state.get("numbered", 0))
    w.stash.learn([segment.segment_id for segment in segments])


def _without_strays(segment: ContextSegment, known: set[str]) -> ContextSegment:
    """A link to a segment that was deleted before the crash leads nowhere; leave it out."""
    refs = tuple(ref for ref in segment.references if ref in known)
    derived = segment.derived_from if segment.derived_from in known else None
    if refs == segment.references and derived == segment.derived_from:
        return segment
    return replace(segment, references=refs, derived_from=derived)


def _number(segment: ContextSegment) -> int:
    prefix, _, number = segment.segment_id.rpartition("-")
    return int(number) if prefix == "s" and number.isdigit() else 0


def _reopen_view(w: Workings) -> None:
    rows = w.archive.load_messages()
    current = {key: row for key, row in rows.items() if not key.startswith(ORIGINAL)}
    shown = sorted((r for r in current.values() if r[1]["in_view"]), key=lambda r: r[1]["place"])
    came_in = sorted(
        (r for r in current.values() if "number" in r[1]), key=lambda r: r[1]["number"]
    )
    originals = {
        key.removeprefix(ORIGINAL): Gone(
            message=message,
            segment_ids=tuple(doc["segment_ids"]),
            together=tuple(doc["together"]),
        )
        for key, (message, doc) in rows.items()
        if key.startswith(ORIGINAL)
    }
    w.view.restore(
        [message for message, _ in shown],
        {message.message_id: doc["place"] for message, doc in current.values()},
        originals,
        [(message.message_id, bytes.fromhex(doc["digest"])) for message, doc in came_in],
    )
    w.turns_in_view = sum(opens_turn(message) for message in w.view.messages)


def _reopen_history(w: Workings) -> None:
    for _, doc in w.archive.store.load(w.archive.session_id, "collections"):
        w.results.append(
            GCResult.from_dict({k: v for k, v in doc["result"].items() if k != "tokens_freed"})
        )
        if not doc.get("undone"):
            w.applied.append(Applied.from_doc(doc))


def _reopen_books(w: Workings, state: dict[str, Any]) -> None:
    by_message: dict[str, list[ContextSegment]] = {}
    for segment in w.heap.working():
        if segment.message_id is not None:
            by_message.setdefault(segment.message_id, []).append(segment)
    born = _births(state.get("budget", {}))
    for message in w.view.messages:
        segments = by_message.get(message.message_id, [])
        if len(segments) == len(message.parts):
            ids = tuple(s.segment_id for s in sorted(segments, key=lambda s: s.position))
            w.segmenter.adopt(message.message_id, ids)
        else:
            w.segmenter.take(message)
        w.books.enter(message, created_at=born.get(message.message_id))


def _births(budget: dict[str, Any]) -> dict[str, float]:
    """When each message was first booked."""
    found: dict[str, float] = {}
    for entry in budget.get("entries", ()):
        for child in entry.get("children", {}).values():
            for message_id in child.get("message_ids", ()):
                found[message_id] = child["created_at"]
    return found
