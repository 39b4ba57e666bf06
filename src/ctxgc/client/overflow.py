"""Overflow recovery: a view that the provider refused as too long is made smaller, a few times."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from ctxgc.budget import InstructionSource
from ctxgc.collector import CollectionRun, Host
from ctxgc.core import OPENING, ContextSegment, Evidence, Heap, Message
from ctxgc.errors import ContextOverflowError, CtxgcError
from ctxgc.guard import window_after
from ctxgc.session import EMERGENCY, Session, why_not_by_itself
from ctxgc.strategies import (
    BuiltinStrategy,
    Constraints,
    GCPlugin,
    MarkSweepStrategy,
)
from ctxgc.wire import Overflow, parse_overflow, replace_text

MOST_RETRIES = 3
_STEP = 0.8
_BLIND_STEP = 0.6  # if the provider does not say by how much
_ROOM_MARGIN = 0.95
_LARGEST = 5

CUT_TO = 0.8
LEAST_TOKENS = 100
_HEAD = 0.7
_NOTE = f"{OPENING} the middle was cut out"
_SHARE_MARGIN = 1.1  # characters and tokens do not shrink by the same share


def overflow_of(error: Exception) -> Overflow | None:
    """Return what an SDK's error says about an overflow, or None if it is about something else."""
    details = getattr(error, "details", None)
    body = getattr(error, "body", None) or (details or {}).get("error") or str(error)
    if not isinstance(body, dict | str | bytes):
        body = str(body)
    return parse_overflow(getattr(error, "status_code", None), body)


class OverflowRecovery:
    """Makes the view of a session smaller, each time by more, until nothing more can leave."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._target: int | None = None
        self._tries = 0

    def after(self, overflow: Overflow, error: Exception) -> None:
        """Make the view smaller after a refusal.

        Raises:
            ContextOverflowError: three smaller views were refused too, or nothing more can leave.
        """
        off = why_not_by_itself(self._session.plugin, self._session.config)
        if off is not None:
            raise self._refusal(overflow, off) from error
        if self._tries == MOST_RETRIES:
            raise self._refusal(overflow, f"{MOST_RETRIES} smaller views were refused") from error
        if not self._tries:
            self._emergency_checkpoint()
        self._tries += 1
        before = self._session.usage().total_tokens
        self._collect(self._next_target(before, overflow))
        if self._session.usage().total_tokens > window_after(
            overflow, before, self._session.context_limit
        ):
            self._recover(overflow, error)

    def _emergency_checkpoint(self) -> None:
        """Continue even if it fails: a collection loses nothing, and a full disk needs it most."""
        with suppress(CtxgcError):
            self._session.checkpoint(triggers=[EMERGENCY])

    def _collect(self, target: int) -> None:
        """Collect with the session's own strategy, then with others if it keeps too much."""
        self._session.relieve(target)
        sweeps = self._session.plugin.name == MarkSweepStrategy.name
        for last_resort in (*(() if sweeps else (MarkSweepStrategy(),)), CutPendingStrategy()):
            if self._session.usage().total_tokens > target:
                self._relieve_with(last_resort, target)

    def _recover(self, overflow: Overflow, error: Exception) -> None:
        """Use the guard's recovery: the minimal context, else the last checkpoint, else give up."""
        try:
            self._session.recover(overflow)
        except CtxgcError as fatal:
            why = fatal.details.get("cause", fatal.message)
            raise self._refusal(overflow, f"nothing more can leave, {why}") from error

    def _relieve_with(self, plugin: GCPlugin, target: int) -> None:
        own = self._session.plugin
        self._session.set_gc_plugin(plugin)
        try:
            self._session.relieve(target)
        finally:
            self._session.set_gc_plugin(own)

    def _next_target(self, now: int, overflow: Overflow) -> int:
        bounds = [now * _BLIND_STEP, self._session.usage().target_tokens]
        if overflow.used and overflow.limit and overflow.used > overflow.limit:
            excess = overflow.used - overflow.limit
            bounds[0] = min(now * overflow.limit / overflow.used, now - excess) * _ROOM_MARGIN
        if self._target is not None:
            bounds.append(self._target * _STEP)
        self._target = max(0, int(min(bounds)))
        return self._target

    def _refusal(self, overflow: Overflow, why: str) -> ContextOverflowError:
        usage = self._session.usage()
        limit = overflow.limit or usage.context_limit
        parts = largest_parts(self._session)
        named = ", ".join(f"{part['what']} ({part['tokens']})" for part in parts)
        return ContextOverflowError(
            f"{usage.total_tokens} tokens do not fit a window of {limit}: {why}; "
            f"the largest parts: {named}",
            hint="shorten or unpin one of them, or use a model with a larger window",
            tokens=usage.total_tokens,
            limit=limit,
            parts=parts,
        )


def largest_parts(session: Session) -> list[dict[str, Any]]:
    """Return the largest parts of the context, largest first, with their tokens."""
    found: list[dict[str, Any]] = []
    for source in InstructionSource:
        entry = session.budget.get_entry(source)
        for key, child in entry.children.items() if entry is not None else ():
            what = child.label if child.message_ids and child.label else key
            found.append({"what": what, "id": key, "tokens": child.tokens})
    return sorted(found, key=lambda part: -part["tokens"])[:_LARGEST]


# -- Cutting results that the model has not read yet, the last resort


class _Pending(msgspec.Struct, frozen=True):
    """A result at the end of the history: its place, its current size, and its whole text."""

    message_id: str
    part: int
    tokens: int
    whole: ContextSegment


class CutPendingStrategy(BuiltinStrategy):
    """Cuts trailing tool results to 80% or, if that is not enough, to what the target allows."""

    name: ClassVar[str] = "gc_cut_pending"
    constraints: ClassVar[Constraints] = Constraints(lossy=False)

    def shrink(self, run: CollectionRun) -> None:
        """Cut the largest results first, until the target is met."""
        for pending in sorted(_pending(run), key=lambda each: -each.tokens):
            message = run.draft.get(pending.message_id)
            if run.excess <= 0 or message is None:
                return
            left = max(LEAST_TOKENS, pending.tokens - run.excess * _SHARE_MARGIN)
            keep = min(pending.tokens * CUT_TO, left)
            shorter = _cut(message, pending, keep, run.host)
            if run.host.message_tokens(shorter) < run.draft.size(message.message_id):
                run.draft.replace(shorter, Evidence(kind="oldest", tokens=run.excess))


def _pending(run: CollectionRun) -> list[_Pending]:
    """Return the results after the model's last answer that may be cut."""
    heap = run.host.gc_state(run.history).heap
    pinned = frozenset(run.usage.get("pinned_message_ids", ()))
    found = []
    for message in reversed(run.history):
        if not message.results():
            break
        ids = run.host.segment_ids(message.message_id)
        found += [
            _Pending(message.message_id, place, run.host.counter.count(part.text), whole)
            for place, (part, segment_id) in enumerate(zip(message.parts, ids, strict=False))
            if part.kind == "tool_result" and not part.server_side
            and (whole := _whole(heap, segment_id)) is not None
        ]  # fmt: skip
    return [p for p in found if p.tokens > LEAST_TOKENS and p.message_id not in pinned]


def _whole(heap: Heap, segment_id: str) -> ContextSegment | None:
    """Return the segment or, if it was cut before, the one that it was cut from."""
    segment = heap.peek(segment_id)
    if segment is None or segment.derived_from is None or _NOTE not in segment.text:
        return segment
    return heap.peek(segment.derived_from) or segment


def _cut(message: Message, pending: _Pending, keep_tokens: float, host: Host) -> Message:
    """Return the message with the start and the end of a result, and how to see all of it."""
    how = ""
    if host.recall_call:
        handle = host.handle(pending.whole.segment_id)
        how = f" All of it: {host.recall_call.replace('{handle}', handle)}"
    note = f"\n{_NOTE}, the context was full.{how}]\n"
    text = pending.whole.text
    share = keep_tokens / max(1, host.counter.count(text))
    keep = max(0, int(len(text) * share) - len(note))
    head = int(keep * _HEAD)
    tail = text[len(text) - (keep - head) :] if keep > head else ""
    return replace_text(message, pending.part, f"{text[:head]}{note}{tail}", keep_media=False)
