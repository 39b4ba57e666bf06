"""Session: append -> watch -> collect -> render.

    session = Session(context_limit=200_000)
    session.append({"role": "user", "content": "Fix the failing test"})
    client.chat.completions.create(model=..., messages=session.messages())

A session takes a conversation message by message, keeps its view under budget and valid for the
provider, and loses nothing: what leaves the view is stashed under a handle first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from ctxgc.budget import GCPolicy
from ctxgc.config import GCConfig
from ctxgc.core.message import Format
from ctxgc.core.plan import PruningPlan
from ctxgc.core.segment import ContextSegment
from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError
from ctxgc.plugins import load_gc_plugin
from ctxgc.session.arguments import (
    check_format,
    checked_config,
    checked_ids,
    checked_lines,
    checked_plugin,
    checked_text,
)
from ctxgc.session.collecting import collect, collect_if_due
from ctxgc.session.deleting import delete
from ctxgc.session.guarding import Guard, SessionGuard
from ctxgc.session.handout import Handout
from ctxgc.session.intake import SessionIntake
from ctxgc.session.keeping import search, set_pinned, set_policy
from ctxgc.session.leaving import flush_at_exit, stop_flushing
from ctxgc.session.planning import plan
from ctxgc.session.requests import check_complete, record_request
from ctxgc.session.returning import recall, undo
from ctxgc.session.saving import save_all
from ctxgc.session.setup import Setup, set_up
from ctxgc.session.sparing import spare
from ctxgc.session.stash import RECALL_CALL, Hit
from ctxgc.session.syncing import is_plain
from ctxgc.session.turns import Turns, one_at_a_time
from ctxgc.session.workings import Workings
from ctxgc.stores import SearchFilters, Store
from ctxgc.strategies.base import GCPlugin, GCResult, GCTriggerReason
from ctxgc.strategies.segmenting import utc_now
from ctxgc.tokens import TokenCounter
from ctxgc.wire import render_json


@one_at_a_time
class Session(SessionIntake, SessionGuard):
    """One conversation under garbage collection; threads that share it wait for each other.

    Args:
        context_limit: the size of the model's window in tokens.
        config: when and how far to collect; else environment, `.ctxgc/gc.json`, defaults.
        plugin: a strategy by name or as an object; `gc_mark_sweep` unless something names another.
        store: where the session is kept: `memory:`, `json:PATH`, `sqlite:PATH`, `postgresql://...`.
        prices: the price sheet that decisions are weighed with.
        session_id: of an existing session of the store continues it; else a new one is made.
        model: the model that the view is sent to; it chooses the token counter.
        counter: counts tokens, in place of the model's.
        recall_call: how the model recalls a handle, with `{handle}`; None when it has no way to.
        clock: gives the present time, for tests and replays.
    """

    def __init__(
        self,
        context_limit: int | None = None,
        *,
        config: GCConfig | None = None,
        plugin: str | GCPlugin | None = None,
        store: str | Store | None = None,
        prices: str | Mapping[str, Any] | PriceSheet | None = None,
        session_id: str | None = None,
        model: str | None = None,
        counter: TokenCounter | None = None,
        recall_call: str | None = RECALL_CALL,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        asked = Setup(
            context_limit=context_limit, config=config, plugin=plugin, store=store, prices=prices,
            session_id=session_id, model=model, counter=counter, recall_call=recall_call,
            clock=clock,
        )  # fmt: skip
        self._w: Workings = set_up(asked)
        self._turns = Turns(self._w.events)
        self._format_is_guess = all(map(is_plain, self._w.view.messages))
        self._handout = Handout()
        self._guard = Guard(self._w)
        flush_at_exit(self)

    # -- out ----------------------------------------------------------------------------------------

    def messages(self, format: Format | None = None) -> list[dict[str, Any]]:  # noqa: A002
        """Return the view to send now, valid for its provider; collects first when that is due.

        Raises:
            MessageError: a tool call waits for its result, or reasoning for what follows it; or the
                session has another format.
            ContextOverflowError: what must stay does not fit the window; `details` names the parts.
        """
        self._prepare(format)
        return self._handout.render(self._w.view)

    def messages_json(self) -> bytes:
        """Return the view as a JSON array in which messages that came as bytes stand byte for byte."""
        self._prepare(None)
        return render_json(self._w.view.messages)

    def _prepare(self, asked: Format | None) -> None:
        check_format(asked, self._w.format)
        check_complete(self._w)
        if self.config.check_before_send:
            spare(self._w)
            collect_if_due(self._w)
            self._guard.before_request()
        record_request(self._w)

    # -- collecting ---------------------------------------------------------------------------------

    def plan(self, target_tokens: int | None = None) -> PruningPlan:
        """Return what a collection would do now; nothing changes."""
        return plan(self._w, target_tokens)

    def collect(self, target_tokens: int | None = None) -> GCResult:
        """Collect now, down to `target_tokens`, else to `target_percent` of the limit."""
        return collect(self._w, GCTriggerReason.MANUAL, target_tokens)

    def manual_gc(self) -> GCResult:
        """Collect now; S3's name for `collect()`."""
        return collect(self._w, GCTriggerReason.MANUAL)

    def relieve(self, target_tokens: int | None = None) -> GCResult:
        """Collect because the provider refused the view as too long."""
        return collect(self._w, GCTriggerReason.CONTEXT_LIMIT, target_tokens)

    def undo(self) -> None:
        """Undo the last collection: the view is what it was before, with what came in since.

        What it had moved is left alone for a while, or until somebody collects by hand.

        Raises:
            PlanError: there is no collection to undo.
        """
        undo(self._w)

    def set_gc_plugin(self, plugin: str | GCPlugin, config: GCConfig | None = None) -> None:
        """Use another strategy, and another configuration if one is given."""
        chosen = self.config if config is None else checked_config(config)
        if isinstance(plugin, str):
            plugin = load_gc_plugin(plugin, chosen.plugin_config)
        self._w.adopt(checked_plugin(plugin))
        if config is not None:
            self._w.configure(config)
            self._guard = Guard(self._w)

    # -- what stays, what comes back ----------------------------------------------------------------

    def pin(self, id: str) -> None:  # noqa: A002 - the word of the public face
        """Protect a segment or a message, by its id or name, from every collection."""
        set_pinned(self._w, id, pinned=True)

    def unpin(self, id: str) -> None:  # noqa: A002
        """Take the protection of a pin away."""
        set_pinned(self._w, id, pinned=False)

    def recall(self, handle: str) -> ContextSegment:
        """Bring a stashed segment back into the view, same bytes, same place, and return it.

        Raises:
            UnknownHandleError: nothing answers to the handle.
            PlanError: the view would be invalid with it, or it does not fit the window; see `read`.
        """
        return recall(self._w, handle)

    def set_policy(self, id: str, policy: GCPolicy) -> None:  # noqa: A002
        """Give a message a policy of its own, for example PRESERVABLE to a clarification."""
        set_policy(self._w, id, policy)

    def search(
        self, query: str, limit: int = 10, filters: SearchFilters | Mapping[str, Any] | None = None
    ) -> list[Hit]:
        """Return the segments of this session that match best, stashed or not."""
        return search(self._w, query, limit, filters)

    def delete(self, ids: Sequence[str], *, confirm: bool = False) -> list[str]:
        """Delete segments for good and return their ids. Only with `confirm=True`."""
        if not confirm:
            raise InputError(
                "deleting is for good and must be confirmed",
                hint="pass confirm=True, or stash instead",
                field="confirm",
            )
        return delete(self._w, checked_ids(ids, "ids"))

    def set_task(self, task_id: str | None, depends_on: Iterable[str] = ()) -> None:
        """Name the current task: segments that carry it are roots."""
        dependencies = frozenset(checked_ids(depends_on, "depends_on"))
        self._w.task_id = checked_text(task_id, "task_id")
        self._w.task_dependencies = dependencies

    def set_active_file(self, path: str | None, line_range: tuple[int, int] | None = None) -> None:
        """Name the file, and the lines, that are being worked on: their segments are roots."""
        lines = checked_lines(line_range)
        self._w.active_file, self._w.active_range = checked_text(path, "path"), lines
        if path is not None:
            self._w.heap.recent.open_file(path)

    # -- around -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything durable that is not yet."""
        save_all(self._w)

    def close(self) -> None:
        """Make everything durable and let go of the store."""
        stop_flushing(self)
        if not self._turns.is_broken:
            save_all(self._w)
        try:
            self._w.plugin.shutdown()
        finally:
            self._w.archive.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
