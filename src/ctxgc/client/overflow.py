"""Overflow recovery: a view that the provider refused as too long is made smaller, a few times."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from ctxgc.budget import InstructionSource
from ctxgc.collector import CollectionRun, shorten_pending
from ctxgc.errors import ContextOverflowError, CtxgcError
from ctxgc.guard import window_after
from ctxgc.session import EMERGENCY, Session, why_not_by_itself
from ctxgc.strategies import (
    BuiltinStrategy,
    GCPlugin,
    MarkSweepStrategy,
)
from ctxgc.wire import Overflow, parse_overflow

MOST_RETRIES = 3
_STEP = 0.8
_BLIND_STEP = 0.6  # if the provider does not say by how much
_ROOM_MARGIN = 0.95
_LARGEST = 5


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


class CutPendingStrategy(BuiltinStrategy):
    """Shortens the results that the model has not read yet, the last resort."""

    name: ClassVar[str] = "gc_cut_pending"

    def shrink(self, run: CollectionRun) -> None:
        """Shorten the largest results first, until the target is met."""
        shorten_pending(run)
