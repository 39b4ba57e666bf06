"""ctxgc's own policies: the public Session, used as an agent would use it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from ctxgc._version import __version__
from ctxgc.collector import handles_in
from ctxgc.config import GCConfig
from ctxgc.core import RECALL_CALL, RECALL_TOOL, recall_call
from ctxgc.errors import ContextOverflowError, UnknownHandleError
from ctxgc.lab.facts import texts_of, total_weight
from ctxgc.lab.policies import Kind, Player, Policy, PolicyTask
from ctxgc.session import Session
from ctxgc.testing import AgentCall, AgentStep, AnthropicRendering, ChatRendering

_PLUGIN = "gc_mark_sweep"
_SECRET = b"the lab's replay"
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_STEP_SECONDS = 1.0


class CtxgcPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A session with the default strategy and these options."""

    name: str
    options: dict[str, Any]
    kind: Kind = "ours"
    version: str = __version__

    @property
    def settings(self) -> dict[str, Any]:
        """The strategy and its options."""
        return {"plugin": _PLUGIN, **self.options}

    def open(self, task: PolicyTask) -> Player:
        """Begin a run."""
        return SessionPlayer(task, self.options)


class SessionPlayer:
    """Plays a run through a session whose clock shows the times of the run."""

    def __init__(self, task: PolicyTask, options: dict[str, Any]) -> None:
        self._times = task.run.times
        self._format = task.format
        rendering = AnthropicRendering if task.format == "anthropic" else ChatRendering
        self._rendering = rendering(ids=map("recall_{:06d}".format, count(1)))
        self._segments: list[list[str]] = []
        self._overflows = 0
        self._collected = 0
        self._shown = ""
        self._listed: frozenset[str] = frozenset()
        self._view: list[dict[str, Any]] = []
        self._session = _ReplayedSession(
            context_limit=task.limit,
            prices=task.sheet,
            store="memory:",
            plugin=_PLUGIN,
            config=GCConfig(plugin_config=options),
            clock=self._now,
            recall_call=RECALL_CALL,  # as in a host that took the recall tools
        )

    @property
    def session(self) -> Session:
        """The session, to look up why it decided as it did."""
        return self._session

    def view(self, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Append what is new, and return the view of the session."""
        before, sent = self._session.collections, self._session.rewrites
        for message in history[len(self._segments) :]:
            self._segments.append(self._session.append(message, format=self._format))
        try:
            self._view = self._session.messages()
        except ContextOverflowError:
            # The agent would stop here; the replay continues and counts a request over the limit.
            self._overflows += 1
            self._view = self._session.view()
        self._shown = ""
        # What the session refused counts as sent here, so it may be rewritten too.
        rewritten = self._session.rewrites > sent or self._overflows > 0
        self._collected += self._session.collections > before and rewritten
        return self._view

    def is_recallable(self, index: int) -> bool:
        """Return whether the view shows a live handle that brings the message back."""
        return any(map(self._shown_handle, self._session.together(self._segments[index])))

    def recalled(self, index: int) -> list[str]:
        """Return the texts of a message as the stash gives them back, if the view shows a handle of it."""
        if not self.is_recallable(index):
            return []
        return [self._session.read(self._session.handle(i)) for i in self._segments[index]]

    def handle_for(self, index: int) -> str:
        """Return a handle of the view that brings a message back; empty without one."""
        together = self._session.together(self._segments[index])
        return next(filter(None, map(self._shown_handle, together)), "")

    def recall(self, handle: str) -> int:
        """Let the agent call the recall tool, and return the tokens of the call and its reply.

        Both come next in the session, as they do in a live one.
        """
        text = self._session.read(handle, together=True)
        self._session.note_fault(handle)
        call = AgentCall(RECALL_TOOL, {"handle": handle}, text)
        said = self._rendering.messages(AgentStep("assistant", calls=(call,)))
        for message in said:
            self._session.append(message, format=self._format)
        return total_weight(said)

    def _shown_handle(self, segment_id: str) -> str:
        """Return a live handle of the view: in full, or a short one in a digest or a recall call."""
        if not self._shown:
            self._shown = "\n".join(t for m in self._view for t in texts_of(m))
            self._listed = frozenset(handles_in(self._shown))
        handle = self._session.handle(segment_id)
        if handle in self._shown and self._session.answers(handle):
            return handle
        call = recall_call(segment_id)
        shown = segment_id in self._listed or call in self._shown
        return segment_id if shown and self._session.answers(segment_id) else ""

    def counts(self) -> dict[str, float]:
        """Return the number of collections, and the bills of the session's own ledger.

        Several collections before one request count as one: only the last result is sent. One that only
        shortened what was never sent rewrites nothing and does not count.
        """
        return {
            "collections": self._collected,
            "overflows": self._overflows,
            **self._session.bills(),
        }

    def _now(self) -> datetime:
        last = len(self._segments)
        if self._times is None:
            return _BEGINNING + timedelta(seconds=_STEP_SECONDS * last)
        return datetime.fromtimestamp(self._times[min(last, len(self._times) - 1)], UTC)


class _ReplayedSession(Session):
    """A session with the same handles in every replay, and access to its counters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, handle_key=_SECRET)
        self._stash = self.inspect().stash

    @property
    def collections(self) -> int:
        """How many collections were applied."""
        return len(self.inspect().log.applied)

    @property
    def rewrites(self) -> int:
        """How often something that had been sent was changed."""
        return self.inspect().editor.rewrites

    def handle(self, segment_id: str) -> str:
        """Return the handle that recalls a segment."""
        return self._stash.recall_handle(segment_id)

    def together(self, segment_ids: list[str]) -> list[str]:
        """Return the segments that come back when one of these is recalled, these among them."""
        inside = self.inspect()
        heap, originals = inside.heap, inside.view.originals
        messages = {str(heap.get(i).message_id) for i in segment_ids if i in heap}
        left = [originals[m] for m in messages if m in originals]
        ids = {i for gone in left for i in gone.together if i in originals}
        return [*segment_ids, *(s for i in sorted(ids) for s in originals[i].segment_ids)]

    def answers(self, handle: str) -> bool:
        """Return whether a handle recalls something."""
        try:
            self.read(handle)
        except UnknownHandleError:
            return False
        return True

    def bills(self) -> dict[str, float]:
        """Return what the session reports as its bill, with and without collecting."""
        savings = self.inspect().state.savings.savings
        return {
            "reported_bill": savings.bill,
            "reported_unpruned_bill": savings.counterfactual_bill,
        }


def default() -> Policy:
    """Return the default preset."""
    return CtxgcPolicy(name="ctxgc", options={"preset": "default"})


def lean() -> Policy:
    """Return the preset that saves more."""
    return CtxgcPolicy(name="ctxgc-lean", options={"preset": "lean"})


def careful() -> Policy:
    """Return the preset that keeps more."""
    return CtxgcPolicy(name="ctxgc-careful", options={"preset": "careful"})


def proven() -> Policy:
    """Return the default preset on probation."""
    return CtxgcPolicy(name="ctxgc-proven", options={"preset": "proven"})


def calls() -> Policy:
    """Return the default preset with the agent's own calls trimmed."""
    return CtxgcPolicy(name="ctxgc-calls", options={"preset": "default", "trim_calls": True})
