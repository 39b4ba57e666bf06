"""What can be done to a session from the dashboard: each says what it did, and how to undo it if that can be.

A stored session is opened, changed by the methods that every program has, and put away again. Recorded
sessions are never changed: the one action makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ctxgc.dashboard.sessions import (
    RECORDED_ACTIONS,
    STORED_ACTIONS,
    DashboardSessions,
    checked_tokens,
)
from ctxgc.errors import InputError, PlanError
from ctxgc.files import write_atomic
from ctxgc.insight import (
    ListedSession,
    before_compaction,
    context_limit_of,
    model_of,
    segment_label,
)
from ctxgc.session import (
    GCPolicy,
    SegmentWork,
    Session,
    export_entries,
    export_lines,
    open_stored,
    stop_flushing,
)

Body: TypeAlias = Mapping[str, Any]
HoldSession: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Keeps whoever has a stored session open in this process away from it while it is changed."""

_WHO = "dashboard"
_BEFORE = "before an action on the dashboard"


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What an action did, in a sentence, the action that undoes it, and a file to save if it made one."""

    said: str
    undo: tuple[str, dict[str, Any]] | None = None
    file: tuple[str, str] | None = None


class DashboardActions:
    """Carries out actions on sessions.

    Args:
        sessions: those that are shown.
        hold: keeps a session of this process away from its store while an action changes it.
    """

    def __init__(self, sessions: DashboardSessions, hold: HoldSession | None = None) -> None:
        self._sessions = sessions
        self._hold = hold or (lambda _name: nullcontext())
        self._made: dict[str, tuple[Path, bytes]] = {}

    def do(self, row_id: str, action: str, body: Body) -> dict[str, Any]:
        """Carry out an action and return the answer to the page.

        Raises:
            CtxgcError: it cannot be done; nothing was changed.
        """
        row = self._sessions.row(row_id)
        do = self._recorded if row.kind == "recorded" else self._stored
        done = do(row, action, body)
        undo = None if done.undo is None else {"action": done.undo[0], "body": done.undo[1]}
        file = {} if done.file is None else {"file": {"name": done.file[0], "text": done.file[1]}}
        again = msgspec.to_builtins(self._sessions.row(row_id))
        return {"ok": True, "done": self._sessions.shown(done.said), "undo": undo,
                "row": self._sessions.shown(again), **file}  # fmt: skip

    # -- recorded sessions --------------------------------------------------------------------------

    def _recorded(self, row: ListedSession, action: str, body: Body) -> Done:
        if action == "discard":
            return self._discard(_text(body, "session"))
        if action not in RECORDED_ACTIONS:
            raise _unknown(action, RECORDED_ACTIONS)
        return self._continue_from(row, _number(body, "request"))

    def _continue_from(self, row: ListedSession, request: int) -> Done:
        made = before_compaction(self._sessions.path_of(row), request)
        made.place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(made.place, made.data)
        self._made[made.session_id] = (made.place, made.data)
        how = f" Go on with: {made.command}" if made.command else ""
        return Done(
            said=f"A new session, {made.session_id}, is what this one was before the compaction.{how}",
            undo=("discard", {"session": made.session_id}),
        )

    def _discard(self, session_id: str) -> Done:
        """Delete a session that was made here, unless its agent has gone on with it."""
        place, data = self._made.get(session_id, (None, b""))
        if place is None or not place.exists():
            raise InputError(
                f"no session {session_id} was made here", hint="nothing to undo", field="session"
            )
        if place.read_bytes() != data:
            raise InputError(
                f"the session {session_id} has gone on since",
                hint="delete it by hand",
                field="session",
            )
        place.unlink()
        del self._made[session_id]
        return Done(said=f"The new session {session_id} is deleted; this one was never changed.")

    # -- stored sessions ----------------------------------------------------------------------------

    def _stored(self, row: ListedSession, action: str, body: Body) -> Done:
        if action not in STORED_ACTIONS:
            raise _unknown(action, STORED_ACTIONS)
        if action == "export":
            return self._export(row)
        with self._hold(row.session_id), self._open(row, collects=action == "collect") as session:
            return _ACTIONS[action](session, body)

    @contextmanager
    def _open(self, row: ListedSession, *, collects: bool) -> Iterator[Session]:
        """Open a session of the store, and put it away with what was changed; the store stays open."""
        store, now = self._sessions.opened(), self._sessions.clock()
        if collects:
            session = Session(
                context_limit_of(store, row.session_id), store=store, session_id=row.session_id,
                model=model_of(store, row.session_id), clock=lambda: now,
            )  # fmt: skip
        else:
            session = open_stored(store, row.session_id, now)
        try:
            yield session
            session.flush()
        finally:
            stop_flushing(session)

    def _export(self, row: ListedSession) -> Done:
        entries = export_entries(self._sessions.opened(), [row.session_id])
        text = b"".join(export_lines(entries, masked=True)).decode()
        return Done(
            said="The session is exported, without likely keys.", file=(f"{row.id}.jsonl", text)
        )


def _named(session: Session, segment_id: str) -> str:
    """Return a segment as the page shows it, with its id."""
    return f"{segment_label(session.inspect().stash.find(segment_id))} ({segment_id})"


def _pin(session: Session, body: Body) -> Done:
    segment = _text(body, "segment")
    session.pin(segment)
    return Done(said=f"{_named(session, segment)} is pinned: no collection removes it.",
                undo=("unpin", {"segment": segment}))  # fmt: skip


def _unpin(session: Session, body: Body) -> Done:
    segment = _text(body, "segment")
    session.unpin(segment)
    return Done(
        said=f"{_named(session, segment)} is no longer pinned.", undo=("pin", {"segment": segment})
    )


def _recall(session: Session, body: Body) -> Done:
    name = _text(body, "handle" if "handle" in body else "segment")
    segment = session.recall(name)
    return Done(
        said=f"{_named(session, segment.segment_id)} is back in the window: {segment.tokens or 0:,} tokens.",
        undo=("stash", {"segment": segment.segment_id}),
    )


def _stash(session: Session, body: Body) -> Done:
    """Take one segment out of the window, whole, into the stash."""
    segment = session.inspect().stash.find(_text(body, "segment"))
    work = SegmentWork(session, _WHO)
    chosen = work.choose([segment], "stash", by_query=False, confirm=False)
    if segment.segment_id in chosen.kept:
        raise PlanError(
            f"{segment.segment_id} stays: {chosen.kept[segment.segment_id]}",
            hint="unpin it, or put away what it belongs to",
        )
    made = work.apply(chosen.plan, "asked")
    return Done(
        said=f"{_named(session, segment.segment_id)} left the window:"
        f" {made.tokens_before - made.tokens_after:,} tokens fewer. It is in the stash.",
        undo=("recall", {"segment": segment.segment_id}),
    )


def _delete(session: Session, body: Body) -> Done:
    """Delete one segment for good: the one action without an undo, which is why it must be confirmed."""
    segment = _text(body, "segment")
    session.delete([segment], confirm=body.get("confirm") is True)
    return Done(
        said=f"{segment} is deleted for good, in the window, the stash and every checkpoint."
    )


def _collect(session: Session, body: Body) -> Done:
    result = session.collect(checked_tokens(body.get("target")))
    if not result.success or not result.removal_list:
        held = f"roots hold all of it, {result.shortfall:,} tokens more than the target"
        raise PlanError(
            f"nothing was collected: {result.error or result.details.get('no_progress', held)}",
            hint="unpin something, or let the session go on first",
        )
    return Done(
        said=f"Collected: {result.tokens_before:,} tokens are {result.tokens_after:,} now.",
        undo=("undo", {}),
    )


def _undo(session: Session, _body: Body) -> Done:
    before = session.checkpoint(_BEFORE, triggers=("dashboard",))
    session.undo()
    return Done(
        said="The last collection is undone.",
        undo=("restore", {"checkpoint": before.checkpoint_id}),
    )


def _checkpoint(session: Session, body: Body) -> Done:
    made = session.checkpoint(_text(body, "label", ""), triggers=("dashboard",))
    return Done(said=f"The checkpoint {made.checkpoint_id} is made.")


def _restore(session: Session, body: Body) -> Done:
    before = session.checkpoint(_BEFORE, triggers=("dashboard",))
    restored = session.restore(_text(body, "checkpoint"))
    changed = f" {len(restored.differences)} files differ since." if restored.differences else ""
    return Done(
        said=f"The window is what it was at {restored.checkpoint.checkpoint_id}.{changed}",
        undo=("restore", {"checkpoint": before.checkpoint_id}),
    )


def _policy(session: Session, body: Body) -> Done:
    name, wanted = _text(body, "segment"), _text(body, "policy")
    known = {policy.value: policy for policy in GCPolicy}
    if wanted not in known:
        raise InputError(
            f"the policy cannot be {wanted!r}", hint=f"use {', '.join(known)}", field="policy"
        )
    segment = session.inspect().stash.find(name)
    before = segment.policy
    session.set_policy(segment.segment_id, known[wanted])
    return Done(
        said=f"The policy of {_named(session, segment.segment_id)} is {wanted}.",
        undo=("policy", {"segment": segment.segment_id, "policy": before}),
    )


_ACTIONS: Mapping[str, Callable[[Session, Body], Done]] = {
    "pin": _pin,
    "unpin": _unpin,
    "recall": _recall,
    "stash": _stash,
    "delete": _delete,
    "collect": _collect,
    "undo": _undo,
    "checkpoint": _checkpoint,
    "restore": _restore,
    "policy": _policy,
}


_LONGEST = 400


def _text(body: Body, name: str, otherwise: str | None = None) -> str:
    value = body.get(name, otherwise)
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise InputError(f"{name} must be a text", hint="send it in the body", field=name)
    return value


def _number(body: Body, name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name} must be a number", hint="send it in the body", field=name)
    return value


def _unknown(action: str, known: tuple[str, ...]) -> InputError:
    return InputError(
        f"'{action}' cannot be done to this session", hint=f"use {', '.join(known)}", field="action"
    )
