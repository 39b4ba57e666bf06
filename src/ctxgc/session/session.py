"""Session: append -> watch -> collect -> render.

    session = Session(context_limit=200_000)
    session.append({"role": "user", "content": "Fix the failing test"})
    client.chat.completions.create(model=..., messages=session.messages())

A session takes a conversation message by message, keeps its view under budget and valid for the
provider, and loses nothing: what leaves the view is stashed under a handle first.

The methods of `Session` are in the order of a message's life; each delegates to the part of the session that
does the work (`SessionParts` in `setup.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self

from ctxgc.budget import GCPolicy, InstructionBudget
from ctxgc.collector import GCResult, GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.core import (
    FORMATS,
    ContextSegment,
    Format,
    Message,
    PruningPlan,
    SegmentType,
    utc_now,
)
from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError, MessageError
from ctxgc.guard import Checkpoint, CheckpointInfo, RecoveryReport
from ctxgc.session.annotations import annotation
from ctxgc.session.archive import Hit, excerpt
from ctxgc.session.calls import Callback, SessionLock, flush_at_exit, one_at_a_time, stop_flushing
from ctxgc.session.guard import Restored
from ctxgc.session.recall_tools import RECALL_TOOLS, RecallAnswers, reply_to
from ctxgc.session.setup import (
    SessionParts,
    SessionSetup,
    checked_config,
    checked_filters,
    checked_ids,
    checked_lines,
    checked_plugin,
    checked_text,
    set_up,
)
from ctxgc.session.usage import ContextUsage, ReportedUsage
from ctxgc.session.view import PlacedMessage, RenderCache, wrong_format
from ctxgc.stores import SearchFilters, Store
from ctxgc.strategies import GCPlugin, load_gc_plugin
from ctxgc.tokens import TokenCounter
from ctxgc.wire import Overflow, RawMessage, detect_format, render, render_json


@one_at_a_time
class Session:
    """One conversation under garbage collection; threads that share it wait for each other.

    Args:
        context_limit: the size of the window in tokens; else the model's.
        config: when and how far to collect; else environment, `.ctxgc/gc.json`, defaults.
        plugin: a strategy by name or as an object; `gc_mark_sweep` unless something names another.
        store: where the session is kept: `memory:`, `json:PATH`, `sqlite:PATH`, `postgresql://...`.
        prices: the price sheet that decisions are weighed with; else the model's.
        session_id: of an existing session of the store continues it; else a new one is made.
        model: the model that the view is sent to: window, token counter and prices follow from it.
        counter: counts tokens, in place of the model's.
        recall_call: how the model recalls a handle with a tool of your own, with `{handle}`; else it can
            once you took `tools()`, now or before, and not at all with an empty text.
        clock: gives the present time, for tests and replays.
        handle_key: what the handles of a new session are derived from, for tests and replays; else random.
        damaged: "accept" goes on without what the store lost of the session; `damage` names it.

    Raises:
        StoreDamagedError: the store has lost something of the session (`details["missing"]`).
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
        recall_call: str | None = None,
        clock: Callable[[], datetime] = utc_now,
        handle_key: bytes | None = None,
        damaged: Literal["refuse", "accept"] = "refuse",
    ) -> None:
        asked = SessionSetup(
            context_limit=context_limit, config=config, plugin=plugin, store=store, prices=prices,
            session_id=session_id, model=model, counter=counter, recall_call=recall_call,
            clock=clock, handle_key=handle_key, damaged=damaged,
        )  # fmt: skip
        self._parts = set_up(asked)
        self._call_lock = SessionLock(self._parts.events)
        self._render_cache = RenderCache()
        flush_at_exit(self)

    @property
    def session_id(self) -> str:
        """The id that continues this session in its store."""
        return self._parts.archive.session_id

    @property
    def damage(self) -> tuple[str, ...]:
        """What the store had lost of this session when it was opened with `damaged="accept"`."""
        return self._parts.damage

    @property
    def config(self) -> GCConfig:
        """The configuration in force."""
        return self._parts.options.config

    @property
    def plugin(self) -> GCPlugin:
        """The strategy in force."""
        return self._parts.options.plugin

    @property
    def context_limit(self) -> int:
        """The size of the window in tokens."""
        return self.budget.context_limit

    def set_gc_plugin(self, plugin: str | GCPlugin, config: GCConfig | None = None) -> None:
        """Use another strategy, and another configuration if one is given."""
        chosen = self.config if config is None else checked_config(config)
        if isinstance(plugin, str):
            plugin = load_gc_plugin(plugin, chosen.plugin_config)
        self._parts.adopt(checked_plugin(plugin), config)

    # -- messages come in ---------------------------------------------------------------------------

    def append(
        self,
        message: RawMessage,
        format: Format | None = None,  # noqa: A002
        *,
        task_id: str | None = None,
        type: SegmentType | None = None,  # noqa: A002
        tags: Iterable[str] = (),
        topic_id: str | None = None,
        policy: GCPolicy | None = None,
    ) -> list[str]:
        """Take in one provider message and return the ids of its segments.

        What is said about it makes roots: `type="decision"` for an hour, the tag `invariant` for good, and
        `task_id` while that is the current task; without one it belongs to the current task.

        Raises:
            MessageError: its shape is unknown, it cannot come next, or it holds a likely key and
                `secrets` says to refuse those; nothing was changed.
            SegmentError: what is said about it cannot be said of a segment; nothing was changed.
        """
        said = annotation(
            self._parts.heap, task_id=task_id, type=type, tags=tags or None, topic_id=topic_id,
            policy=policy,
        )  # fmt: skip
        return self._taken_in(self._parts.intake.append(message, format, said))

    def extend(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
        *,
        task_id: str | None = None,
        type: SegmentType | None = None,  # noqa: A002
        tags: Iterable[str] = (),
        topic_id: str | None = None,
        policy: GCPolicy | None = None,
    ) -> list[str]:
        """Take in several messages, all of them or none, and return the ids of their segments.

        What is said about them is said about each, as in `append`.
        """
        said = annotation(
            self._parts.heap, task_id=task_id, type=type, tags=tags or None, topic_id=topic_id,
            policy=policy,
        )  # fmt: skip
        return self._taken_in(self._parts.intake.extend(list(messages), format, said))

    def sync(
        self,
        messages: Iterable[RawMessage],
        format: Format | None = None,  # noqa: A002
    ) -> list[str]:
        """Take in a whole history again: only what is new comes in.

        Where the history differs from what came in before, the rest of the old one is stashed and the
        new one goes on from there. The same history twice changes nothing.
        """
        return self._taken_in(self._parts.intake.sync(list(messages), format))

    def _taken_in(self, ids: list[str]) -> list[str]:
        """Collect if that is due now and not before the next request; return the ids."""
        if not self.config.check_before_send:
            self._parts.collector.collect_if_due()
        return ids

    def shared(self, messages: Sequence[bytes]) -> int:
        """Return how many messages of a history, given as bytes, are what came in, from the beginning."""
        return self._parts.view.shared_bytes(messages)

    def arrivals(self) -> list[str]:
        """Return the ids of the messages that came in, in order; some may have left the view since."""
        return [arrival.message_id for arrival in self._parts.view.arrivals]

    def set_system(self, text: str) -> None:
        """Count a system prompt that is sent alongside the messages."""
        self._parts.accounting.alongside.set_system(text)

    def set_tools(
        self,
        tools: Sequence[dict[str, Any]],
        policy: GCPolicy | Mapping[str, GCPolicy] = GCPolicy.LOCKED,
    ) -> None:
        """Count the tool schemas that are sent alongside the messages.

        `policy` is that of all of them, or of each by its name. CONDITIONAL and EPHEMERAL schemas can leave:
        then send what `live_tools()` returns.
        """
        self._parts.accounting.alongside.set_tools(tools, policy)

    def live_tools(self) -> list[dict[str, Any]]:
        """Return the tool schemas to send now: those given, without those that a collection took out.

        Ask after `messages()`, which may collect. A schema comes back when a message names its tool.
        """
        return self._parts.accounting.alongside.live_tools()

    def enrich(self, key: str, text: str) -> None:
        """Count text that is added to each request alongside the messages, such as documents found.

        `gc_budget` clears all of it first; the result then lists the source `enrichment`, and
        `enrichment()` no longer has it. A blank text takes the key out.
        """
        self._parts.accounting.alongside.enrich(key, text)

    def enrichment(self) -> dict[str, str]:
        """Return the texts of `enrich` to send now, by their keys; ask after `messages()`."""
        return self._parts.accounting.alongside.enrichment()

    def set_task(self, task_id: str | None, depends_on: Iterable[str] = ()) -> None:
        """Name the current task: what comes in from now on carries it, and its newest segments are roots."""
        dependencies = frozenset(checked_ids(depends_on, "depends_on"))
        self._parts.state.task_id = checked_text(task_id, "task_id")
        self._parts.state.task_dependencies = dependencies

    def set_active_file(self, path: str | None, line_range: tuple[int, int] | None = None) -> None:
        """Name the file, and the lines, that are being worked on: their segments are roots."""
        lines, state = checked_lines(line_range), self._parts.state
        state.active_file, state.active_range = checked_text(path, "path"), lines
        if path is not None:
            self._parts.heap.root_index.open_file(path)

    # -- the view goes out --------------------------------------------------------------------------

    def messages(self, format: Format | None = None) -> list[dict[str, Any]]:  # noqa: A002
        """Return the view to send now, valid for its provider; collects first when that is due.

        Raises:
            MessageError: a tool call waits for its result, or reasoning for what follows it; or the
                session has another format.
            ContextOverflowError: what must stay does not fit the window; `details` names the parts.
        """
        self._prepare(format)
        if self._parts.reader.is_another():
            return render(self._parts.reader.shown())
        return self._render_cache.render(self._parts.view)

    def messages_json(self) -> bytes:
        """Return the view as a JSON array; messages that came as bytes are in it byte for byte."""
        self._prepare(None)
        return render_json(self._parts.reader.shown())

    def placed(self) -> list[PlacedMessage]:
        """Return what `messages()` would, each message with its bytes and the number under which it came in.

        For hosts that keep the original bytes of a request, and put into it only what was changed.
        """
        self._prepare(None)
        return self._parts.view.placed()

    def _prepare(self, asked: Format | None) -> None:
        """Check the view, collect when that is due, watch its size, and record the request."""
        parts = self._parts
        _check_format(asked, parts.view.format)
        parts.requests.check_complete()
        if self.config.check_before_send:
            parts.price_pass.cut_for_price()
            parts.collector.collect_if_due()
        parts.guard.before_request()
        parts.notices.end_loop_without_thinking()
        parts.requests.record()

    def view(self) -> list[dict[str, Any]]:
        """Return the messages as they are now, without collecting or checking."""
        return render(self._parts.reader.shown())

    @property
    def history(self) -> list[Message]:
        """The messages of the view, in parts, to be read; `messages()` gives copies that may change."""
        return list(self._parts.view.messages)

    def report_usage(
        self,
        input_tokens: int,
        *,
        cache_read: int = 0,
        cache_write: int = 0,
        cache_write_1h: int = 0,
        output_tokens: int = 0,
    ) -> bool:
        """Learn from the input tokens that the provider counted; return whether an estimate changed.

        `input_tokens` are all of them: `cache_read` of them came from the cache, `cache_write` were written
        to it, `cache_write_1h` of these for an hour. With `output_tokens` they say later what it cost.
        """
        uncached = max(0, input_tokens - cache_read - cache_write)
        self._parts.requests.note_reported(
            ReportedUsage(uncached, cache_read, cache_write, cache_write_1h, output_tokens)
        )
        changed = self._parts.accounting.calibrate(input_tokens, self._parts.view.messages)
        if changed:
            self._parts.price_pass.recount()
        return changed

    # -- how full it is -----------------------------------------------------------------------------

    def usage(self) -> ContextUsage:
        """Return how full the context is."""
        return self._parts.meter.usage()

    @property
    def budget(self) -> InstructionBudget:
        """The ledger of what is in the context, by source, child and policy."""
        return self._parts.accounting.budget

    def events(self, callback: Callback) -> Callable[[], None]:
        """Call back for every event from now on; return a function that ends that."""
        return self._parts.events.subscribe(callback)

    # -- collecting ---------------------------------------------------------------------------------

    def plan(self, target_tokens: int | None = None) -> PruningPlan:
        """Return what a collection would do now; nothing changes."""
        return self._parts.collector.plan(target_tokens)

    def collect(self, target_tokens: int | None = None) -> GCResult:
        """Collect now, down to `target_tokens`, else to `target_percent` of the limit."""
        return self._parts.collector.collect(GCTriggerReason.MANUAL, target_tokens)

    def manual_gc(self) -> GCResult:
        """Collect now; S3's name for `collect()`."""
        return self._parts.collector.collect(GCTriggerReason.MANUAL)

    def relieve(self, target_tokens: int | None = None) -> GCResult:
        """Collect because the provider refused the view as too long."""
        return self._parts.collector.collect(GCTriggerReason.CONTEXT_LIMIT, target_tokens)

    def recover(self, overflow: Overflow) -> RecoveryReport:
        """Make the view strictly smaller, because the provider refused what `messages()` gave.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
        """
        return self._parts.guard.after_refusal(overflow)

    @property
    def gc_history(self) -> list[GCResult]:
        """The results of all collections, refused ones included, oldest first."""
        return list(self._parts.log.results)

    def undo(self) -> None:
        """Undo the last collection: the view is what it was before, with what came in since.

        What it had moved is left alone for a while, or until the next collection by hand.

        Raises:
            PlanError: there is no collection to undo.
        """
        self._parts.collector.undo()

    # -- what stays ---------------------------------------------------------------------------------

    def pin(self, id: str) -> None:  # noqa: A002 - the word of the public face
        """Protect a segment or a message, by its id or name, from every collection."""
        self._parts.annotations.set_pinned(id, pinned=True)

    def unpin(self, id: str) -> None:  # noqa: A002
        """End the protection of a pin."""
        self._parts.annotations.set_pinned(id, pinned=False)

    def set_policy(self, id: str, policy: GCPolicy) -> None:  # noqa: A002
        """Give a message a policy of its own, for example PRESERVABLE to a clarification."""
        self._parts.annotations.annotate(id, annotation(self._parts.heap, policy=policy))

    def annotate(
        self,
        id: str,  # noqa: A002
        *,
        type: SegmentType | None = None,  # noqa: A002
        tags: Iterable[str] | None = None,
        topic_id: str | None = None,
        task_id: str | None = None,
        policy: GCPolicy | None = None,
    ) -> None:
        """Say later what `append` can say at once, by the id of a segment or message, or by name.

        None leaves a field as it is; an empty text or list clears it.

        Raises:
            UnknownHandleError: nothing has this id or name.
            SegmentError: that cannot be said of a segment; nothing was changed.
        """
        said = annotation(
            self._parts.heap,
            type=type,
            tags=tags,
            topic_id=topic_id,
            task_id=task_id,
            policy=policy,
        )
        self._parts.annotations.annotate(id, said)

    # -- what comes back ----------------------------------------------------------------------------

    def recall(self, handle: str) -> ContextSegment:
        """Bring a stashed segment back into the view, same bytes, same place, and return it.

        Raises:
            UnknownHandleError: there is no segment with the handle.
            PlanError: the view would be invalid with it, or it does not fit the window; see `read`.
        """
        return self._parts.recall.recall(handle)

    def recalled(self) -> Message | None:
        """Return the message by which something named came back last; None if there was none."""
        return self._parts.guard.auto_recall.last

    def read(
        self,
        handle: str,
        *,
        lines: tuple[int, int] | None = None,
        pattern: str | None = None,
        together: bool = False,
    ) -> str:
        """Return the text of a segment, or the lines asked for, without changing the view.

        A digest names a group that left by its first part, such as a call: `together` gives the texts of the
        whole group for it, as a model that asks needs them.

        Raises:
            UnknownHandleError: there is no segment with the handle.
        """
        parts = self._parts
        text = parts.recall.text_together(handle) if together else parts.stash.find(handle).text
        return excerpt(text, lines=lines, pattern=pattern)

    def note_fault(self, handle: str) -> None:
        """Learn that the model asked for what had left the view: similar segments are kept longer.

        `recall` does that by itself; if you answer the model with `read`, call this too.

        Raises:
            UnknownHandleError: there is no segment with the handle.
        """
        self._parts.recall.note_fault(handle)

    def search(
        self, query: str, limit: int = 10, filters: SearchFilters | Mapping[str, Any] | None = None
    ) -> list[Hit]:
        """Return the segments of this session that match best, stashed or not."""
        return self._parts.recall.search(query, limit, checked_filters(filters))

    def tools(self, format: Format | None = None) -> list[dict[str, Any]]:  # noqa: A002
        """Return `context_recall` and `context_search` as tools of a request, for the model to call.

        Taking them says that you send them and answer their calls with `answer`; the session remembers it.
        Only then tombstones name calls, and text leaves for the price alone. Without a format the tools are
        those of the session's, else of OpenAI chat.

        Raises:
            InputError: there is no such format.
        """
        parts = self._parts
        form = format or parts.view.format or "openai"
        if form not in FORMATS:
            raise InputError(
                f"the format cannot be {form!r}", hint=f"use {', '.join(FORMATS)}", field="format"
            )
        parts.take_recall_tools()
        return [tool.schema(form) for tool in RECALL_TOOLS]

    def answer(self, call: object) -> dict[str, Any] | None:
        """Return the message that answers a call of `tools()`, in its format; None for another tool's call.

        `call` is an item of `tool_calls`, a `function_call` or a `tool_use` block, as a dict or as the SDK's
        object. Append the answer like the result of any tool. What goes wrong is told to the model.

        Raises:
            InputError: it is not a tool call.
        """
        return reply_to(RecallAnswers(self, self._parts.recall.note_fault), call)

    def segments(self) -> list[ContextSegment]:
        """Return all segments of the session, stashed ones included."""
        return list(self._parts.heap)

    # -- what is deleted ----------------------------------------------------------------------------

    def delete(self, ids: Sequence[str], *, confirm: bool = False) -> list[str]:
        """Delete segments for good and return their ids. Only with `confirm=True`."""
        if not confirm:
            raise InputError(
                "deleting is for good and must be confirmed",
                hint="pass confirm=True, or stash instead",
                field="confirm",
            )
        return self._parts.deletion.delete(checked_ids(ids, "ids"))

    def collect_stash(
        self, *, max_age_seconds: float | None = None, max_bytes: int | None = None
    ) -> list[str]:
        """Delete stashed segments that are too old or too many, never under a live handle."""
        age = self.config.stash_max_age_seconds if max_age_seconds is None else max_age_seconds
        size = self.config.stash_max_bytes if max_bytes is None else max_bytes
        return self._parts.stash_collector.collect(max_age_seconds=age, max_bytes=size)

    # -- checkpoints --------------------------------------------------------------------------------

    def checkpoint(
        self,
        label: str = "",
        *,
        task_queue: Sequence[Any] = (),
        system_state: Mapping[str, Any] | None = None,
        files: Iterable[str] | None = None,
        triggers: Sequence[str] = (),
    ) -> Checkpoint:
        """Store the view, the pins and the state as they are now, durably, and return the checkpoint.

        `files` names those whose checksums are stored; by default the files worked on last. `triggers`
        says what caused it.
        """
        return self._parts.guard.checkpoint(
            label, triggers=triggers, task_queue=task_queue, system_state=system_state, files=files
        )

    def restore(self, checkpoint_id: str) -> Restored:
        """Make the view what it was at a checkpoint, byte for byte; what came in since is stashed.

        Raises:
            CheckpointError: there is no such checkpoint, or it does not verify.
        """
        checkpoints = self._parts.checkpoints
        return checkpoints.restore(checkpoints.shelf.get(checkpoint_id))

    def checkpoints(self) -> tuple[CheckpointInfo, ...]:
        """Return the checkpoints of this session, oldest first."""
        return self._parts.checkpoints.shelf.list()

    def progress(
        self,
        *,
        phase: str | None = None,
        tasks_completed: int | None = None,
        next_operation: str | None = None,
    ) -> Checkpoint | None:
        """Report how the work goes; a new phase, every fifth task or a risky step makes a checkpoint."""
        return self._parts.guard.checkpoint_if_due(
            phase=phase, tasks_completed=tasks_completed, next_operation=next_operation
        )

    # -- the inside, and the end --------------------------------------------------------------------

    def inspect(self) -> SessionParts:
        """Return the parts of the session, to be read and not changed: for tests, tools and dashboards."""
        return self._parts

    @property
    def is_unsaved(self) -> bool:
        """Whether something came in, or was changed by hand, that the store does not hold yet."""
        return self._parts.archive.is_unsaved

    def flush(self) -> None:
        """Make everything durable that is not yet."""
        self._parts.archive.save_all()

    def close(self) -> None:
        """Make everything durable and let go of the store."""
        stop_flushing(self)
        if not self._call_lock.is_broken:
            self._parts.archive.save_all()
        try:
            self.plugin.shutdown()
        finally:
            self._parts.archive.store.close()

    def __repr__(self) -> str:
        tokens, limit = self.budget.total_tokens(), self.context_limit
        return (
            f"<Session {self.session_id!r}: {tokens:,} of {limit:,} tokens, "
            f"{len(self._parts.view.messages):,} messages, {self.plugin.name}>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_format(asked: Format | None, known: Format | None) -> None:
    """Check that a format exists and is the session's own.

    Raises:
        MessageError: it is not.
    """
    if asked is not None and asked not in FORMATS:
        raise MessageError(
            f"`format` {asked!r} is unknown",
            hint=f"known formats: {', '.join(FORMATS)}",
            field="format",
        )
    if asked is not None and known is not None and asked != known:
        raise wrong_format(known, asked)


def collect(
    messages: Sequence[RawMessage],
    context_limit: int | None = None,
    *,
    format: Format | None = None,  # noqa: A002 - the word of the public face
    target_tokens: int | None = None,
    **options: Any,
) -> tuple[list[dict[str, Any]], GCResult]:
    """Return a history that fits and what was done to make it fit; `messages` is not changed.

    Args:
        messages: a whole history in one wire format.
        context_limit: the size of the window in tokens; else that of the `model` among the options.
        format: the wire format; detected when it is not given.
        target_tokens: where to land; else `target_percent` of the limit.
        options: anything that `Session` takes, such as `plugin` or `config`.
    """
    options.setdefault("store", "memory:")
    with Session(context_limit=context_limit, **options) as session:
        session.extend(messages, format=format or detect_format(list(messages)))
        result = session.collect(target_tokens)
        return session.view(), result
