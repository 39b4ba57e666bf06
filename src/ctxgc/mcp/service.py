"""ContextService: everything the server can do for one context, without a word of protocol.

Every answer is JSON-ready data that says what changed, how full the context was and is, and which
call is useful next. Every failure is a `CtxgcError`, and then nothing changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import utc_now
from ctxgc.errors import StoreBusyError
from ctxgc.mcp import checkpoints as checkpointing
from ctxgc.mcp import ingest as arriving
from ctxgc.mcp import prune as leaving
from ctxgc.mcp import recall as finding
from ctxgc.mcp import recall as listing
from ctxgc.mcp import settings as staying
from ctxgc.mcp import usage
from ctxgc.mcp.compress import CompressionDraft, Summary, draft, summarise
from ctxgc.mcp.context import AllowedRoots, Context, PruneStrategy
from ctxgc.mcp.find import Bench, Plans
from ctxgc.mcp.ingest import NewSegment
from ctxgc.mcp.repository import Keeper
from ctxgc.stores import SearchFilters, Store, open_store
from ctxgc.tokens import CountingCache, TokenCounter, counter_for

# -- Turns: one caller at a time, and each change whole: durable when its answer is given, or undo


Json = dict[str, Any]
T = TypeVar("T")

TRIES = 20
"""How often a change is repeated because another server changed the context first."""


class ContextLock:
    """Lets work be done on the context of a keeper. Safe to call from several threads."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._lock = threading.Lock()

    def ask(self, work: Callable[[Context], T]) -> T:
        """Return what work that changes nothing finds out."""
        with self._lock:
            return work(self._current())

    def rehearse(self, work: Callable[[Context], T]) -> T:
        """Return what a change would answer; it is not made."""
        with self._lock:
            try:
                return work(self._current())
            finally:
                self._keeper.forget()

    def change(self, work: Callable[[Context], Json]) -> Json:
        """Make a change durable and return its answer; repeat it where another server was faster.

        Raises:
            StoreError: it could not be made durable; nothing changed.
        """
        with self._lock:
            for _ in range(TRIES):
                try:
                    return self._once(work)
                except StoreBusyError as error:
                    if "found" not in error.details:
                        raise
            return self._once(work)

    def _once(self, work: Callable[[Context], Json]) -> Json:
        context = self._current()
        before = _stamp(context)
        try:
            answer = _watched(context, work(context))
            self._keeper.save(context)
        except BaseException as error:
            # What is in memory must never differ from what is stored.
            if isinstance(error, StoreBusyError) or _stamp(context) != before or context.writes:
                self._keeper.forget()
            raise
        return answer

    def _current(self) -> Context:
        for _ in range(TRIES):
            try:
                return self._keeper.current()
            except StoreBusyError:
                self._keeper.forget()
        return self._keeper.current()


def _watched(context: Context, answer: Json) -> Json:
    """Note the zone; the answer that follows an arrival in a fuller one carries the alert."""
    zone, alert = usage.watch(context)
    context.saved.zone = zone.value
    return answer if alert is None else {**answer, "alert": alert}


def _stamp(context: Context) -> tuple[int, Any]:
    return context.heap.version, msgspec.to_builtins(context.saved)


DEFAULT_SESSION = "mcp"


class ContextService:
    """One context with its store. All methods may be called from several threads.

    Args:
        store: where the context is kept: a URL or an open store.
        session_id: its name there; one that is known goes on where it was.
        config: the configuration; the agent's own settings go over it.
        context_limit: the size of the model's window; None keeps the one of a known context.
        roots: directories that transcripts may be imported from.
        model: the model whose tokens are counted.
        alone: whether this is the store's only caller, who may recall handles of its other doors.
        counter: counts tokens, in place of the model's.
        clock: gives the present time.
    """

    def __init__(
        self,
        store: str | Store,
        session_id: str = DEFAULT_SESSION,
        *,
        config: GCConfig | None = None,
        context_limit: int | None = None,
        roots: Iterable[str | Path] = (),
        model: str | None = None,
        alone: bool = True,
        counter: TokenCounter | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = open_store(store)
        self._counter = CountingCache(counter if counter is not None else counter_for(model))
        keeper = Keeper(
            self._store,
            session_id,
            config if config is not None else GCConfig(),
            context_limit=context_limit,
            counter=self._counter,
            clock=clock,
        )
        self._turns = ContextLock(keeper)
        self._bench = Bench(
            store=self._store,
            session_id=session_id,
            plans=Plans(),
            roots=AllowedRoots(roots),
            counter=self._counter,
            alone=alone,
        )

    # -- what is asked ------------------------------------------------------------------------------

    def usage(self) -> Json:
        """Return how full the context is, what fills it, and what to do about it."""
        return self._turns.ask(usage.overview)

    def search(self, query: str, filters: SearchFilters, limit: int, offset: int) -> Json:
        """Return the segments that match best, working or stashed."""
        return self._turns.ask(
            lambda c: finding.search(self._bench, c, query, filters, (offset, limit))
        )

    def segments(self, limit: int, offset: int) -> Json:
        """Return a page of all segments in the order of arrival, without their texts."""
        return self._turns.ask(lambda c: listing.segments(c, limit, offset))

    def segment(self, reference: str) -> Json:
        """Return one segment with its text; it stays where it is."""
        return self._turns.ask(lambda c: listing.segment(self._bench, c, reference))

    def collections(self, limit: int) -> Json:
        """Return the last collections, newest first."""
        return self._turns.ask(lambda c: listing.collections(self._bench, c, limit))

    def plans(self) -> Json:
        """Return the plans that can be applied now."""
        return self._turns.ask(lambda c: listing.usable_plans(self._bench, c))

    def checkpoints(self) -> Json:
        """Return the checkpoints that there are."""
        return self._turns.ask(lambda c: checkpointing.list_checkpoints(self._bench, c))

    # -- what changes -------------------------------------------------------------------------------

    def ingest(self, segments: Sequence[NewSegment], messages: Sequence[Mapping[str, Any]]) -> Json:
        """Take in segments and messages, all of them or none; what is known comes in once."""
        return self._turns.change(lambda c: arriving.ingest(self._bench, c, segments, messages))

    def import_piece(self, path: str) -> Json:
        """Take in the next piece of a transcript; `done` tells whether it was the last for now."""
        return self._turns.change(lambda c: arriving.import_piece(self._bench, c, path))

    def analyze(
        self,
        max_candidates: int = 20,
        *,
        include_scores: bool = True,
        dry_run: bool = True,
        target_tokens: int | None = None,
    ) -> Json:
        """Return what may leave and why, as a plan; with `dry_run=False` the plan is applied too."""

        def work(context: Context) -> Json:
            return leaving.analyze(
                self._bench, context, max_candidates, include_scores=include_scores,
                target_tokens=target_tokens, apply=not dry_run,
            )  # fmt: skip

        return self._turns.ask(work) if dry_run else self._turns.change(work)

    def prune(
        self,
        references: Sequence[str] = (),
        *,
        plan_id: str | None = None,
        query: str | None = None,
        strategy: PruneStrategy | None = None,
        confirm: bool = False,
        dry_run: bool = False,
    ) -> Json:
        """Stash or delete what is named by ids, by a plan or by words."""

        def work(context: Context) -> Json:
            return leaving.prune(
                self._bench, context, references, plan_id=plan_id, query=query,
                strategy=strategy, confirm=confirm, dry_run=dry_run,
            )  # fmt: skip

        return self._turns.ask(work) if dry_run else self._turns.change(work)

    def pin(self, references: Sequence[str], query: str | None, *, pinned: bool) -> Json:
        """Protect segments from every collection, or no longer."""
        return self._turns.change(
            lambda c: staying.pin(self._bench, c, references, query, pinned=pinned)
        )

    def recall(
        self, handle: str, lines: tuple[int, int] | None = None, pattern: str | None = None
    ) -> Json:
        """Return a text by handle, name or words; a whole one comes back into the working tier."""
        return self._turns.change(lambda c: finding.recall(self._bench, c, handle, lines, pattern))

    def expand(self, reference: str) -> Json:
        """Put the originals back in the place of their summary."""
        return self._turns.change(lambda c: finding.expand(self._bench, c, reference))

    def configure(self, asked: Mapping[str, Any]) -> Json:
        """Set limits, windows, batch size and strategy, durably; without any, return them."""
        return self._turns.change(lambda c: staying.configure(c, asked))

    def task(self, said: Mapping[str, Any]) -> Json:
        """Note the current task, the active file and what else the host works on."""
        return self._turns.change(lambda c: staying.task(c, said))

    def checkpoint(self, label: str) -> Json:
        """Keep the context as it is now."""
        return self._turns.change(lambda c: checkpointing.checkpoint(self._bench, c, label))

    def restore(self, wanted: str | None, *, dry_run: bool = False) -> Json:
        """Make the context what it was at a checkpoint; what came in since is stashed."""

        def work(context: Context) -> Json:
            return checkpointing.restore(self._bench, context, wanted)

        return self._turns.rehearse(work) if dry_run else self._turns.change(work)

    # -- compressing: a model may be asked in between, so nothing is held while it thinks -----------

    def draft(self, references: Sequence[str], query: str | None) -> CompressionDraft:
        """Return what would be summarised."""
        return self._turns.ask(
            lambda c: draft(self._bench.finder(c).all(references, query).segments)
        )

    def summarise(self, asked: CompressionDraft, given: str | None = None) -> Summary:
        """Return a summary by the client, else by the configured summarizer, else the extractive one."""
        return summarise(asked, self._turns.ask(lambda c: c.config), self._counter, given)

    def compress(self, asked: CompressionDraft, summary: Summary, *, dry_run: bool = False) -> Json:
        """Put a summary in the place of what it was made of."""

        def work(context: Context) -> Json:
            return finding.compress(context, asked, summary)

        return self._turns.rehearse(work) if dry_run else self._turns.change(work)

    def close(self) -> None:
        """Let go of the store; everything is durable already."""
        self._store.close()
