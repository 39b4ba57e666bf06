"""Session: append -> watch -> collect -> render.

    session = Session(context_limit=200_000)
    session.append({"role": "user", "content": "Fix the failing test"})
    client.chat.completions.create(model=..., messages=session.messages())

A session takes a conversation message by message, keeps its view under budget and valid for the
provider, and loses nothing: what leaves the view is stashed under a handle first.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from ctxgc.budget import GCPolicy, InstructionBudget
from ctxgc.config import GCConfig
from ctxgc.core import RECALL_CALL, ContextSegment, Format, Message, PruningPlan, utc_now
from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError
from ctxgc.guard import (
    Alert,
    Checkpoint,
    CheckpointInfo,
    CheckpointTriggers,
    ContextMetrics,
    ContextMonitor,
    Recovery,
    RecoveryReport,
)
from ctxgc.session.accounting import ContextUsage
from ctxgc.session.collection import collect, collect_if_due, note_faults, plan
from ctxgc.session.delete import collect_stash, delete
from ctxgc.session.events import Callback, refuse_secrets
from ctxgc.session.guard import (
    RecoverableSession,
    Restored,
    make_checkpoint,
    restore_checkpoint,
    shelf_of,
)
from ctxgc.session.handles import Hit, excerpt
from ctxgc.session.locking import SessionLock, flush_at_exit, one_at_a_time, stop_flushing
from ctxgc.session.recall import Mentioned, recall, search, set_pinned, set_policy, undo
from ctxgc.session.request import calibrate, check_complete, record_request, spare
from ctxgc.session.setup import (
    SessionSetup,
    check_format,
    checked_config,
    checked_ids,
    checked_lines,
    checked_plugin,
    checked_text,
    set_up,
)
from ctxgc.session.state import Workings, save_all
from ctxgc.session.sync import is_plain, reformat, sync
from ctxgc.session.view import Handout, wrong_format
from ctxgc.stores import SearchFilters, Store
from ctxgc.strategies import GCPlugin, GCResult, GCTriggerReason, load_gc_plugin
from ctxgc.tokens import TokenCounter
from ctxgc.wire import (
    Overflow,
    RawMessage,
    detect_format,
    parse,
    refuse_answers,
    render,
    render_json,
)

# -- SessionFacts: what a session answers, without what changes it


class SessionFacts:
    """The questions that a session answers; `Session` adds what changes it."""

    _w: Workings

    def view(self) -> list[dict[str, Any]]:
        """Return the messages as they are now, without collecting or checking."""
        return render(self._w.view.messages)

    @property
    def history(self) -> list[Message]:
        """The messages of the view, in parts, to be read; `messages()` gives copies that may change."""
        return list(self._w.view.messages)

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in, or was changed by hand, that the store does not hold yet."""
        return self._w.archive.is_pending or bool(self._w.unsaved)

    def arrivals(self) -> list[str]:
        """Return the ids of the messages that came in, in order; some may have left the view since."""
        return [arrival.message_id for arrival in self._w.view.arrivals]

    def usage(self) -> ContextUsage:
        """Return how full the context is."""
        return self._w.usage()

    @property
    def gc_history(self) -> list[GCResult]:
        """The results of all collections, refused ones included, oldest first."""
        return list(self._w.results)

    def read(
        self, handle: str, *, lines: tuple[int, int] | None = None, pattern: str | None = None
    ) -> str:
        """Return the text of a segment, or the lines asked for, and leave the view alone.

        Raises:
            UnknownHandleError: nothing answers to the handle.
        """
        return excerpt(self._w.stash.find(handle).text, lines=lines, pattern=pattern)

    def segments(self) -> list[ContextSegment]:
        """Return all segments of the session, stashed ones included."""
        return list(self._w.heap)

    def events(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return what ends that."""
        return self._w.events.subscribe(callback)

    @property
    def session_id(self) -> str:
        """The id that continues this session in its store."""
        return self._w.archive.session_id

    @property
    def config(self) -> GCConfig:
        """The configuration in force."""
        return self._w.config

    @property
    def plugin(self) -> GCPlugin:
        """The strategy in force."""
        return self._w.plugin

    @property
    def budget(self) -> InstructionBudget:
        """The ledger of what is in the context, by source, child and policy."""
        return self._w.books.budget

    @property
    def context_limit(self) -> int:
        """The size of the window in tokens."""
        return self._w.books.budget.context_limit


# -- The guard of a session: checkpoints when they are due, and a request that always fits


class Guard:
    """Watches every request of one session."""

    def __init__(self, workings: Workings) -> None:
        self._w = workings
        self.monitor = ContextMonitor(
            workings.config, on_alert=self._alert, zone=workings.zone, clock=workings.clock
        )
        self.triggers = CheckpointTriggers(workings.config, clock=workings.clock)
        self._subject = RecoverableSession(workings)
        self.recovery = Recovery(self._subject, workings.config, self.monitor)
        self.mentioned = Mentioned(workings)
        self._collections = workings.collections

    def before_request(self) -> RecoveryReport | None:
        """Bring back what was named, make a checkpoint that is due, and make the view fit.

        Whoever collects by hand, or never, is left alone.

        Raises:
            ContextOverflowError: what must stay does not fit; `details` names the parts.
        """
        if not self._w.config.auto_trigger or self._w.plugin.name == "gc_none":
            return None
        self.mentioned.bring_back()
        self.checkpoint_if_due()
        self._collect_stash_if_due()
        return self._told(self.recovery.before_call())

    def after_refusal(self, overflow: Overflow) -> RecoveryReport:
        """Make the view strictly smaller, because the provider refused it.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
        """
        return self._told(self.recovery.after_refusal(overflow))

    def _told(self, report: RecoveryReport) -> RecoveryReport:
        self._subject.tell_left(report.limit)
        return report

    def checkpoint_if_due(self, **progress: Any) -> Checkpoint | None:
        """Make a checkpoint when one of S4's triggers says so."""
        budget = self._w.books.budget
        metrics = ContextMetrics(
            context_size=budget.total_tokens(), context_limit=budget.context_limit
        )
        due, why = self.triggers.check(metrics, **progress)
        if not due:
            return None
        checkpoint = make_checkpoint(self._w, triggers=why)
        self.triggers.made(checkpoint.timestamp)
        return checkpoint

    def _collect_stash_if_due(self) -> None:
        """Keep the stash within its limits, after each collection that added to it."""
        config, done = self._w.config, self._w.collections
        limits = config.stash_max_age_seconds, config.stash_max_bytes
        if limits != (None, None) and done != self._collections:
            collect_stash(self._w, max_age_seconds=limits[0], max_bytes=limits[1])
        self._collections = done

    def _alert(self, alert: Alert) -> None:
        self._w.events.emit("alert", **alert.to_dict())


class SessionGuard(SessionFacts):
    """What a session offers against overflow and loss."""

    _guard: Guard

    def checkpoint(
        self,
        label: str = "",
        *,
        task_queue: Sequence[Any] = (),
        system_state: Mapping[str, Any] | None = None,
        files: Iterable[str] | None = None,
        triggers: Sequence[str] = (),
    ) -> Checkpoint:
        """Keep the view, the pins and the state as they are now, durably, and return the checkpoint.

        `files` names those whose checksums are kept; by default the files worked on last. `triggers`
        says what caused it.
        """
        checkpoint = make_checkpoint(
            self._w, label, triggers=triggers, task_queue=task_queue, system_state=system_state,
            files=files,
        )  # fmt: skip
        self._guard.triggers.made(checkpoint.timestamp)
        return checkpoint

    def restore(self, checkpoint_id: str) -> Restored:
        """Make the view what it was at a checkpoint, byte for byte; what came in since is stashed.

        Raises:
            CheckpointError: there is no such checkpoint, or it does not verify.
        """
        return restore_checkpoint(self._w, shelf_of(self._w).get(checkpoint_id))

    def checkpoints(self) -> tuple[CheckpointInfo, ...]:
        """Return the checkpoints of this session, oldest first."""
        return shelf_of(self._w).list()

    def progress(
        self,
        *,
        phase: str | None = None,
        tasks_completed: int | None = None,
        next_operation: str | None = None,
    ) -> Checkpoint | None:
        """Tell how the work goes; a new phase, every fifth task or a risky step makes a checkpoint."""
        return self._guard.checkpoint_if_due(
            phase=phase, tasks_completed=tasks_completed, next_operation=next_operation
        )

    def recover(self, overflow: Overflow) -> RecoveryReport:
        """Make the view strictly smaller, because the provider refused what `messages()` gave.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
        """
        return self._guard.after_refusal(overflow)

    def collect_stash(
        self, *, max_age_seconds: float | None = None, max_bytes: int | None = None
    ) -> list[str]:
        """Delete stashed segments that are too old or too many, never under a live handle."""
        config = self._w.config
        age = config.stash_max_age_seconds if max_age_seconds is None else max_age_seconds
        size = config.stash_max_bytes if max_bytes is None else max_bytes
        return collect_stash(self._w, max_age_seconds=age, max_bytes=size)

    def note_fault(self, handle: str) -> None:
        """Take note that the model asked for what had left the view: its like stays longer.

        `recall` does that by itself; who answers the model with `read` says so here.

        Raises:
            UnknownHandleError: nothing answers to the handle.
        """
        segment = self._w.stash.find(handle)
        if segment.tier == "stashed":
            note_faults(self._w, [segment], [segment.message_id or ""])

    def recalled(self) -> Message | None:
        """Return the message by which something named came back last; None if there was none."""
        return self._guard.mentioned.last


# -- SessionIntake: how messages, and what is sent beside them, come into a session


class SessionIntake(SessionFacts):
    """What comes in; `Session` adds what goes out."""

    _format_is_guess: bool

    def append(self, message: RawMessage, format: Format | None = None) -> list[str]:  # noqa: A002
        """Take in one provider message and return the ids of its segments.

        Raises:
            MessageError: its shape is unknown, it cannot come next, or it holds a likely key and
                `secrets` says to refuse those; nothing was changed.
        """
        (parsed,) = self._parse([message], format)
        self._w.view.check_next(parsed)
        ids = self._w.take(parsed)
        if self.config.auto_trigger and not self.config.check_before_send:
            collect_if_due(self._w)
        return ids

    def extend(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
    ) -> list[str]:
        """Take in several messages, all of them or none."""
        batch = list(messages)
        return self._w.take_all(self._parse(batch, format)) if batch else []

    def sync(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
    ) -> list[str]:
        """Take in a whole history again: only what is new comes in.

        Where the history differs from what came in before, the rest of the old one is stashed and the
        new one goes on from there. The same history twice changes nothing.
        """
        return sync(self._w, self._parse(list(messages), format))

    def set_system(self, text: str) -> None:
        """Count a system prompt that is sent beside the messages."""
        self._w.books.set_system(text)

    def set_tools(
        self, tools: Sequence[dict[str, Any]], policy: GCPolicy = GCPolicy.LOCKED
    ) -> None:
        """Count the tool schemas that are sent beside the messages."""
        self._w.books.set_tools(tools, policy)

    def enrich(self, key: str, text: str) -> None:
        """Count text that is added to each request beside the messages, such as documents found.

        `gc_budget` clears all of it first; the result then lists the source `enrichment`.
        """
        self._w.books.enrich(key, text)

    def report_usage(self, input_tokens: int) -> bool:
        """Learn from the input tokens that the provider counted; tell whether an estimate changed."""
        return calibrate(self._w, input_tokens)

    def _parse(self, batch: Sequence[RawMessage], asked: Format | None) -> list[Message]:
        known = self._w.format
        refuse_answers(batch, asked)
        seen = detect_format(list(batch)) if asked is None else asked
        # While all that came in was plain text, which fits every format, a clear sign may choose it.
        chosen = seen if known is None or (self._format_is_guess and seen != "openai") else known
        if asked is None and seen not in ("openai", chosen):
            raise wrong_format(chosen, seen)
        parsed = [parse(message, asked or chosen, uuid.uuid4().hex) for message in batch]
        if self.config.secrets == "refuse":
            refuse_secrets(parsed)
        if known is not None and chosen != known:
            reformat(self._w, chosen)
        plain = asked is None and all(map(is_plain, parsed))
        self._format_is_guess = self._format_is_guess and plain
        return parsed


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
        asked = SessionSetup(
            context_limit=context_limit, config=config, plugin=plugin, store=store, prices=prices,
            session_id=session_id, model=model, counter=counter, recall_call=recall_call,
            clock=clock,
        )  # fmt: skip
        self._w: Workings = set_up(asked)
        self._turns = SessionLock(self._w.events)
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
            self._w.heap.root_index.open_file(path)

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
