"""Restoring: a session goes on after a restart from what its archive holds."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from ctxgc.budget import GCPolicy
from ctxgc.core.message import Message
from ctxgc.core.segment import ContextSegment
from ctxgc.guard.zones import Zone
from ctxgc.session.archive import GONE, SHOWN
from ctxgc.session.messages import message_from_doc
from ctxgc.session.record import Applied
from ctxgc.session.view import Arrival, Gone
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCResult
from ctxgc.strategies.turns import opens_turn

Docs = dict[str, dict[str, Any]]


def reopen(w: Workings) -> None:
    """Become the session that the archive holds."""
    state = w.archive.load_state()
    w.summaries = state.get("summaries", 0)
    w.turns_taken = state.get("turns_taken", 0)
    w.ingested_tokens = state.get("ingested_tokens", 0)
    w.pinned_messages = set(state.get("pinned_messages", ()))
    w.held_until = dict(state.get("held_until", {}))
    w.undone.restate(state.get("undone", {}))
    w.ghosts.restate(state.get("ghosts", {}))
    w.zone = Zone(state.get("zone", Zone.SAFE))
    w.task_id = state.get("task_id")
    w.task_dependencies = frozenset(state.get("task_dependencies", ()))
    w.active_file = state.get("active_file")
    lines = state.get("active_range")
    w.active_range = (lines[0], lines[1]) if lines else None
    if "secret" in state:
        w.stash.secret = bytes.fromhex(state["secret"])
    w.books.policies = {k: GCPolicy(v) for k, v in state.get("policies", {}).items()}
    _reopen_requests(w, state)
    _reopen_heap(w, state)
    docs: Docs = dict(w.archive.store.load(w.archive.session_id, "messages"))
    came_in = {key: message_from_doc(doc) for key, doc in docs.items() if _is_arrival(key, doc)}
    _reopen_view(w, docs, came_in)
    _reopen_history(w, came_in)
    _reopen_books(w, docs, state)


def _reopen_requests(w: Workings, state: dict[str, Any]) -> None:
    """Know what was sent and what came of it: the next decisions rest on that."""
    w.requests = state.get("requests", 0)
    w.sent_messages = state.get("sent_messages", 0)
    w.sent_before = state.get("sent_before", 0)
    sent_at = state.get("sent_at")
    w.sent_at = datetime.fromisoformat(sent_at) if sent_at else None
    w.stuck_at = state.get("stuck_at")
    w.thrash = dict(state.get("thrash", {}))
    w.thrashing.restate(state.get("thrashing", {}))
    w.savings.restate(state.get("savings", {}))


def _reopen_heap(w: Workings, state: dict[str, Any]) -> None:
    segments = w.archive.load_segments()
    w.heap.mentions.restate_common(w.archive.load_state("common").get("names", ()))
    known = {segment.segment_id for segment in segments}
    w.heap.rebuild([_without_strays(segment, known) for segment in segments])
    w.heap.step = max(state.get("step", 0), w.heap.step)
    w.heap.recent.opened.update(dict.fromkeys(state.get("opened", ())))
    if state.get("first_request") is not None:
        w.heap.recent.first_request = state["first_request"]
    numbers = [_number(segment) for segment in segments]
    w.segmenter.numbered = max(*numbers, state.get("numbered", 0), 0)
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


def _is_arrival(key: str, doc: dict[str, Any]) -> bool:
    """Tell whether a document holds a message as it came in, not deleted since."""
    return not key.startswith((GONE, SHOWN)) and "format" in doc


def _reopen_view(w: Workings, docs: Docs, came_in: dict[str, Message]) -> None:
    w.view.originals = dict(_originals(docs, came_in))
    edited = {i: message_from_doc(docs[f"{SHOWN}{i}"]) for i in came_in if f"{SHOWN}{i}" in docs}
    shown = [edited.get(i, m) for i, m in came_in.items() if f"{GONE}{i}" not in docs]
    arrivals = [
        (
            doc["number"],
            Arrival(key, bytes.fromhex(doc["digest"]), doc.get("request", w.requests)),
        )
        for key, doc in docs.items()
        if "digest" in doc
    ]
    places = {key: doc["place"] for key, doc in docs.items() if "place" in doc}
    w.view.restate([arrival for _, arrival in sorted(arrivals, key=itemgetter(0))])
    w.view.next_place = max(places.values(), default=-1.0) // 1 + 1.0
    w.view.show(sorted(shown, key=lambda m: places[m.message_id]), places)
    w.turns_in_view = sum(map(opens_turn, w.view.messages))


def _originals(docs: Docs, came_in: dict[str, Message]) -> list[tuple[str, Gone]]:
    found = []
    for message_id, message in came_in.items():
        doc = docs.get(f"{GONE}{message_id}") or docs.get(f"{SHOWN}{message_id}")
        if doc is not None:
            ids, together = tuple(doc["segment_ids"]), tuple(doc["together"])
            gone = Gone(message=message, segment_ids=ids, together=together)
            found.append((message_id, gone))
    return found


def _reopen_history(w: Workings, came_in: dict[str, Message]) -> None:
    rows = sorted(w.archive.store.load(w.archive.session_id, "collections"))
    for key, doc in rows:
        described = {k: v for k, v in doc["result"].items() if k != "tokens_freed"}
        w.results.append(GCResult.from_dict(described))
        if "before" in doc:
            w.applied.append(Applied.from_doc(int(key), doc, came_in))
            w.view.remember_places(doc["places"])
    w.collections = len(w.applied)


def _reopen_books(w: Workings, docs: Docs, state: dict[str, Any]) -> None:
    w.books.restore_beside(state.get("beside", ()))
    w.bound.restate(docs)
    w.books.born = {key: doc["born"] for key, doc in docs.items() if "born" in doc}
    w.books.makers = {k: doc["created_by"] for k, doc in docs.items() if "created_by" in doc}
    by_message: dict[str, list[ContextSegment]] = {}
    for segment in w.heap.working():
        by_message.setdefault(segment.message_id or "", []).append(segment)
    for message in w.view.messages:
        segments = by_message.get(message.message_id, [])
        if len(segments) == len(message.parts):
            ids = tuple(s.segment_id for s in sorted(segments, key=lambda s: s.position))
            w.segmenter.adopt(message.message_id, ids)
        else:
            w.segmenter.take(message)
        w.books.enter(message)
