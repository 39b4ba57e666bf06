"""A context of an older MCP server, which kept segments and no messages, becomes a session.

When one is opened, what the server had put in becomes a message, what it had moved out leaves the view, and
what it had brought back returns to its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ctxgc.collector import GCResult
from ctxgc.core import ContextSegment, Format, Message, Part
from ctxgc.errors import MessageError
from ctxgc.invariants import check, groups
from ctxgc.session.documents import GONE, SHOWN, Docs, is_arrival, message_from_doc, message_to_doc
from ctxgc.session.view import View
from ctxgc.wire import replace_text, text_message

SERVER_KEY = "server"
"""The key of what only the MCP server knows about a session."""

LEGACY_KEY = "context"
"""The key under which older servers kept all that they knew about a context."""

_SHARED = {
    "secret": "secret", "context_limit": "context_limit", "step": "step", "opened": "opened",
    "first_request": "first_request", "task_id": "task_id", "task_dependencies": "depends_on",
    "active_file": "active_file", "active_range": "active_range", "zone": "zone",
    "requests": "updates", "ghosts": "ghosts", "thrashing": "thrashing",
}  # fmt: skip
"""What a session knows of what an older server did, by the names that both gave it."""

Fate = Literal["stays", "replaced", "left"]


def state_from_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a session that only an older server has written to so far."""
    return {mine: context[theirs] for mine, theirs in _SHARED.items() if theirs in context}


def server_doc(context: Mapping[str, Any], *, is_own: bool) -> dict[str, Any]:
    """Return what an older server kept as the document of today; `is_own`: nobody else wrote to it."""
    return {**context, "format": 2, "is_own": is_own}


def result_of_context(doc: Mapping[str, Any]) -> GCResult:
    """Return the result of a collection that the MCP server ran."""
    moved = [*doc.get("stashed", ()), *doc.get("deleted", ())]
    data = {
        "success": True,
        "items_collected": len(moved),
        "tokens_before": doc["tokens_before"],
        "tokens_after": doc["tokens_after"],
        "plugin_name": "mcp",
        "trigger_reason": "context_limit" if doc.get("trigger") == "hard limit" else "manual",
        "details": {"trigger": doc.get("trigger"), "why": doc.get("reasons", {})},
    }
    return GCResult.from_dict(data)


class Agreement(msgspec.Struct, kw_only=True):
    """Segments and message documents that agree, and what had to change for that."""

    segments: dict[str, ContextSegment]
    docs: Docs
    changed_segments: set[str] = msgspec.field(default_factory=set)
    changed_docs: set[str] = msgspec.field(default_factory=set)

    def put_segment(self, segment: ContextSegment, **fields: Any) -> None:
        """Change a segment, if that changes anything."""
        now = replace(segment, **fields)
        if now != self.segments[segment.segment_id]:
            self.segments[segment.segment_id] = now
            self.changed_segments.add(segment.segment_id)

    def put_doc(self, key: str, doc: dict[str, Any] | None) -> None:
        """Write a document, or drop it."""
        if self.docs.get(key) == doc:
            return
        self.changed_docs.add(key)
        if doc is None:
            self.docs.pop(key, None)
        else:
            self.docs[key] = doc


def agree(segments: Iterable[ContextSegment], docs: Docs) -> Agreement:
    """Return the documents of messages that say what the segments say."""
    made = Agreement(segments={s.segment_id: s for s in segments}, docs=dict(docs))
    came_in = {k: message_from_doc(doc) for k, doc in docs.items() if is_arrival(k, doc)}
    stand_ins = _stand_ins(made.segments)
    _keep_notices(made, came_in)
    _follow_known(made, came_in, stand_ins)
    _adopt(made, came_in, stand_ins)
    for segment in list(made.segments.values()):
        # What lost its message is in no view.
        if segment.tier == "working" and segment.message_id not in made.docs:
            made.put_segment(segment, tier="stashed")
    return made


# -- Messages that the session knows


def _keep_notices(made: Agreement, came_in: Mapping[str, Message]) -> None:
    """Let no notice leave: it says what is not in the view, and only the session knows that."""
    for segment in list(made.segments.values()):
        message = came_in.get(segment.message_id or "")
        if message is not None and message.origin == "gc_notice":
            is_own = segment.derived_from not in made.segments
            made.put_segment(segment, tier="working" if is_own else "stashed")


def _follow_known(
    made: Agreement, came_in: Mapping[str, Message], stand_ins: Mapping[str, ContextSegment]
) -> None:
    """Let what the server moved leave the view or come back to it, whole groups at a time."""
    own = _own_segments(made, came_in)
    history = sorted(came_in.values(), key=lambda m: made.docs[m.message_id]["place"])
    working: dict[str, list[ContextSegment]] = {}
    for segment in sorted(made.segments.values(), key=lambda s: s.position):
        if segment.tier == "working":
            working.setdefault(segment.message_id or "", []).append(segment)
    left = []
    for group in groups(history):
        members = [history[place] for place in group]
        known = all(len(own[m.message_id]) == len(m.parts) for m in members)
        if known and not all(_agrees(made, m, working.get(m.message_id, ())) for m in members):
            left += [members] if _settle(made, members, own, stand_ins) else []
    for members in left:
        # Such as the request that a history must open with: the server knows no rules of providers.
        if not check(_view(made, history), complete=False):
            break
        for message in members:
            for segment_id in own[message.message_id]:
                made.put_segment(made.segments[segment_id], tier="working")
            _show(made, message, message, own[message.message_id], ())


def _view(made: Agreement, history: Sequence[Message]) -> list[Message]:
    docs = made.docs
    here = [m for m in history if f"{GONE}{m.message_id}" not in docs]
    return [
        message_from_doc(docs[f"{SHOWN}{m.message_id}"]) if f"{SHOWN}{m.message_id}" in docs else m
        for m in here
    ]


def _own_segments(made: Agreement, came_in: Mapping[str, Message]) -> dict[str, tuple[str, ...]]:
    """Return the segments of each message as it came in, those that are still there."""
    found: dict[str, list[ContextSegment]] = {message_id: [] for message_id in came_in}
    for segment in made.segments.values():
        if segment.message_id in found and segment.derived_from not in made.segments:
            found[segment.message_id].append(segment)
    by_id = {
        name: tuple(s.segment_id for s in sorted(own, key=lambda s: s.position))
        for name, own in found.items()
    }
    for name in came_in:
        marks = made.docs.get(f"{GONE}{name}") or made.docs.get(f"{SHOWN}{name}")
        if marks is not None:
            by_id[name] = tuple(i for i in marks["segment_ids"] if i in made.segments)
    return by_id


def _agrees(made: Agreement, message: Message, working: Sequence[ContextSegment]) -> bool:
    """Return whether the view shows of a message what is in the working tier."""
    name = message.message_id
    if message.origin == "gc_notice":
        return True
    if f"{GONE}{name}" in made.docs:
        return not working
    edited = made.docs.get(f"{SHOWN}{name}")
    shown: tuple[Part, ...] = (message if edited is None else message_from_doc(edited)).parts
    return [part.text for part in shown] == [segment.text for segment in working]


def _settle(
    made: Agreement,
    members: Sequence[Message],
    own: Mapping[str, tuple[str, ...]],
    stand_ins: Mapping[str, ContextSegment],
) -> bool:
    """Show a group, or let it leave when nothing of it is in the working tier; return whether it left."""
    ids = [i for message in members for i in own[message.message_id]]
    together = [message.message_id for message in members]
    if all(_fate(made, i, stand_ins) == "left" for i in ids):
        for message in members:
            _show(made, message, None, own[message.message_id], together)
        return True
    for message in members:
        shown = message
        for place, segment_id in enumerate(own[message.message_id]):
            shown = _part_shown(made, shown, place, segment_id, stand_ins)
        _show(made, message, shown, own[message.message_id], ())
    return False


def _part_shown(
    made: Agreement,
    message: Message,
    place: int,
    segment_id: str,
    stand_ins: Mapping[str, ContextSegment],
) -> Message:
    """Return a message with one part as its segments say; what cannot be left out comes back."""
    stand_in = stand_ins.get(segment_id)
    if _fate(made, segment_id, stand_ins) == "replaced" and stand_in is not None:
        try:
            edited = replace_text(message, place, stand_in.text, keep_media=False)
        except MessageError:
            made.put_segment(stand_in, tier="stashed")
        else:
            made.put_segment(stand_in, message_id=message.message_id)
            return edited
    made.put_segment(made.segments[segment_id], tier="working")
    return message


def _show(
    made: Agreement,
    message: Message,
    shown: Message | None,
    own: Sequence[str],
    together: Sequence[str],
) -> None:
    name = message.message_id
    marks = {"segment_ids": list(own), "together": list(together)}
    made.put_doc(f"{GONE}{name}", marks if shown is None else None)
    is_edited = shown is not None and shown.data != message.data
    edited = {**message_to_doc(shown), **marks} if shown is not None and is_edited else None
    made.put_doc(f"{SHOWN}{name}", edited)


def _fate(made: Agreement, segment_id: str, stand_ins: Mapping[str, ContextSegment]) -> Fate:
    if made.segments[segment_id].tier == "working":
        return "stays"
    return "replaced" if segment_id in stand_ins else "left"


def _stand_ins(segments: Mapping[str, ContextSegment]) -> dict[str, ContextSegment]:
    """Return the working stubs and summaries by the segment that they stand for in the end."""
    found: dict[str, ContextSegment] = {}
    for segment in segments.values():
        original = segment
        while (behind := segments.get(original.derived_from or "")) is not None:
            original = behind
        if original is not segment and segment.tier == "working":
            found[original.segment_id] = segment
    return found


# -- Segments that no message has


def _adopt(
    made: Agreement, came_in: Mapping[str, Message], stand_ins: Mapping[str, ContextSegment]
) -> None:
    """Make a message of each segment that the server put in."""
    new = [s for s in made.segments.values() if _is_foreign(s, made.segments, came_in)]
    first, step = _places(made, came_in, len(new))
    format_: Format = next((m.format for m in came_in.values()), "openai")
    for number, segment in enumerate(sorted(new, key=lambda s: s.position)):
        name = segment.segment_id
        if not segment.text.strip():
            made.put_segment(segment, tier="stashed")
            continue
        message = text_message(_role(segment), segment.text, format_, name, "conversation")
        born = segment.created_at.timestamp()
        facts = {"place": first + number * step, "born": born, "created_by": "mcp"}
        made.put_doc(name, {**message_to_doc(message), **facts})
        made.put_segment(segment, message_id=name)
        if _fate(made, name, stand_ins) == "left":
            _show(made, message, None, (name,), (name,))
        else:
            shown = _part_shown(made, message, 0, name, stand_ins)
            _show(made, message, shown, (name,), ())


def _is_foreign(
    segment: ContextSegment,
    segments: Mapping[str, ContextSegment],
    came_in: Mapping[str, Message],
) -> bool:
    """Return whether the server put a segment in; those of a session are numbered `s-N`."""
    if segment.message_id in came_in or segment.derived_from in segments:
        return False
    return not segment.segment_id.startswith("s-")


def _role(segment: ContextSegment) -> str:
    """Return who says it: the agent its own words, the user all else; nothing becomes system text."""
    said = segment.role == "assistant" and segment.part in (None, "text")
    return "assistant" if said else "user"


def _places(made: Agreement, came_in: Mapping[str, Message], count: int) -> tuple[float, float]:
    """Return the first place for new messages and the way to the next, never after an open call."""
    places = {name: made.docs[name]["place"] for name in came_in}
    here = [m for name, m in came_in.items() if f"{GONE}{name}" not in made.docs]
    trial = View()
    trial.show(sorted(here, key=lambda m: places[m.message_id]))
    end = max(places.values(), default=-1.0) // 1 + 1.0
    if not trial.waiting:
        return end, 1.0
    border = min(places[name] for name in trial.waiting.values())
    before = max((place for place in places.values() if place < border), default=border - 1.0)
    step = (border - before) / (count + 1)
    return before + step, step
