"""ContextService: everything the server can do for one context, without the protocol.

Every answer is JSON-ready data that says what changed, how full the context was and is, and which
call is useful next. Every failure is a `CtxgcError`, and then nothing changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ctxgc.config import GCConfig
from ctxgc.errors import StoreBusyError
from ctxgc.mcp import checkpoints, compress, ingest, prune, recall, settings, usage
from ctxgc.mcp.compress import CompressionDraft, Summary
from ctxgc.mcp.context import AgentWindow, AllowedRoots, Context
from ctxgc.mcp.ingest import NewSegment
from ctxgc.mcp.repository import ContextRepository
from ctxgc.mcp.request import Json, KeptPlans, RequestContext
from ctxgc.session import (
    CountingCache,
    PruneStrategy,
    SearchFilters,
    Store,
    TokenCounter,
    counter_for,
    open_store,
    utc_now,
)

T = TypeVar("T")

TRIES = 20
"""How often a change is repeated because another server changed the context first."""

DEFAULT_SESSION = "mcp"


class ContextService:
    """One context with its store. All methods may be called from several threads.

    Args:
        store: where the context is kept: a URL or an open store.
        session_id: its name there; a known one is continued.
        config: the configuration; the agent's own settings override it.
        context_limit: the size of the model's window; a known context keeps its own, see `configure`.
        roots: directories that transcripts may be imported from.
        model: the model whose tokens are counted.
        alone: whether this is the store's only caller, who may recall handles of its other sessions.
        window: tells how full the window of the agent is that started the server.
        counter: counts tokens instead of the model's counter.
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
        window: AgentWindow | None = None,
        counter: TokenCounter | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = open_store(store)
        self._counter = CountingCache(counter if counter is not None else counter_for(model))
        repository = ContextRepository(
            self._store,
            session_id,
            config if config is not None else GCConfig(),
            context_limit=context_limit,
            counter=self._counter,
            clock=clock,
            window=window,
        )
        self._request = RequestContext(
            store=self._store,
            session_id=session_id,
            plans=KeptPlans(),
            roots=AllowedRoots(roots),
            alone=alone,
            revision=lambda: repository.revision,
        )
        self._lock = ContextWork(repository, self._request)

    def usage(self) -> Json:
        """Return how full the context is, what fills it, and what to do about it."""
        return self._lock.ask(usage.overview)

    def search(self, query: str, filters: SearchFilters, limit: int, offset: int) -> Json:
        """Return the segments that match best, working or stashed."""
        return self._lock.ask(
            lambda c: recall.search(self._request, c, query, filters, (offset, limit))
        )

    def segments(self, limit: int, offset: int) -> Json:
        """Return a page of all segments in the order of arrival, without their texts."""
        return self._lock.ask(lambda c: recall.segments(c, limit, offset))

    def segment(self, reference: str) -> Json:
        """Return one segment with its text; it stays where it is."""
        return self._lock.ask(lambda c: recall.segment(self._request, c, reference))

    def collections(self, limit: int) -> Json:
        """Return the last collections, newest first."""
        return self._lock.ask(lambda c: recall.collections(self._request, c, limit))

    def plans(self) -> Json:
        """Return the plans that can be applied now."""
        return self._lock.ask(lambda c: recall.usable_plans(self._request, c))

    def checkpoints(self) -> Json:
        """Return the checkpoints."""
        return self._lock.ask(lambda c: checkpoints.list_checkpoints(self._request, c))

    def ingest(self, segments: Sequence[NewSegment], messages: Sequence[Mapping[str, Any]]) -> Json:
        """Add segments and messages, all of them or none; known ones are not added again."""
        return self._lock.change(lambda c: ingest.ingest(self._request, c, segments, messages))

    def import_piece(self, path: str) -> Json:
        """Import the next piece of a transcript; `done`: it was the last for now."""
        return self._lock.change(lambda c: ingest.import_piece(self._request, c, path))

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
            return prune.analyze(
                self._request, context, max_candidates, include_scores=include_scores,
                target_tokens=target_tokens, apply=not dry_run,
            )  # fmt: skip

        return self._lock.ask(work) if dry_run else self._lock.change(work)

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
        """Stash or delete segments, given by ids, by a plan or by words."""

        def work(context: Context) -> Json:
            return prune.prune(
                self._request, context, references, plan_id=plan_id, query=query,
                strategy=strategy, confirm=confirm, dry_run=dry_run,
            )  # fmt: skip

        return self._lock.ask(work) if dry_run else self._lock.change(work)

    def pin(self, references: Sequence[str], query: str | None, *, pinned: bool) -> Json:
        """Pin or unpin segments."""
        return self._lock.change(
            lambda c: settings.pin(self._request, c, references, query, pinned=pinned)
        )

    def recall(
        self, handle: str, lines: tuple[int, int] | None = None, pattern: str | None = None
    ) -> Json:
        """Return a text by handle, name or words; a whole one comes back into the working tier."""
        return self._lock.change(lambda c: recall.recall(self._request, c, handle, lines, pattern))

    def expand(self, reference: str) -> Json:
        """Replace a summary by its originals."""
        return self._lock.change(lambda c: recall.expand(self._request, c, reference))

    def configure(self, asked: Mapping[str, Any]) -> Json:
        """Set limits, windows, batch size and strategy, durably; without any, return them."""
        return self._lock.change(lambda c: settings.configure(c, asked))

    def task(self, said: Mapping[str, Any]) -> Json:
        """Set the current task, the active file and what else the host works on."""
        return self._lock.change(lambda c: settings.task(c, said))

    def checkpoint(self, label: str) -> Json:
        """Make a checkpoint of the context."""
        return self._lock.change(lambda c: checkpoints.checkpoint(self._request, c, label))

    def restore(self, wanted: str | None, *, dry_run: bool = False) -> Json:
        """Restore the context to a checkpoint; what was added since is stashed."""

        def work(context: Context) -> Json:
            return checkpoints.restore(self._request, context, wanted)

        return self._lock.rehearse(work) if dry_run else self._lock.change(work)

    # Between these a model may be asked, so no lock is held meanwhile.

    def draft(self, references: Sequence[str], query: str | None) -> CompressionDraft:
        """Return what would be summarised."""
        return self._lock.ask(
            lambda c: compress.draft_compression(
                c, self._request.finder(c).all(references, query).segments
            )
        )

    def summarise(self, asked: CompressionDraft, given: str | None = None) -> Summary:
        """Return a summary by the client, else by the configured summarizer, else the extractive one."""
        return compress.summarise(asked, self._lock.ask(lambda c: c.config), self._counter, given)

    def compress(self, asked: CompressionDraft, summary: Summary, *, dry_run: bool = False) -> Json:
        """Replace segments by their summary."""

        def work(context: Context) -> Json:
            return compress.compress(context, asked, summary)

        return self._lock.rehearse(work) if dry_run else self._lock.change(work)

    def close(self) -> None:
        """Close the store; everything is durable already."""
        self._store.close()


# -- Locking: one caller at a time, and each change durable as a whole or undone


class ContextWork:
    """Runs work on the context of a repository, one caller at a time; safe to call from several threads."""

    def __init__(self, repository: ContextRepository, request: RequestContext) -> None:
        self._repository = repository
        self._request = request
        self._lock = threading.Lock()

    def ask(self, work: Callable[[Context], T]) -> T:
        """Return the result of work that changes nothing."""
        with self._lock:
            return work(self._current())

    def rehearse(self, work: Callable[[Context], T]) -> T:
        """Return what a change would answer, without making it."""
        with self._lock:
            try:
                return work(self._current())
            finally:
                self._repository.forget()

    def change(self, work: Callable[[Context], Json]) -> Json:
        """Make a change durable and return its answer; repeat it if another server was faster.

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
        zone = context.zone
        try:
            answer = work(context)
            now, alert = usage.watch(context, zone)
            context.parts.state.zone = now
            checkpoints.make_if_due(self._request, context)
            self._repository.save(context)
        except BaseException:
            # What is in memory must never differ from what is stored.
            self._repository.forget()
            raise
        return answer if alert is None else {**answer, "alert": alert}

    def _current(self) -> Context:
        for _ in range(TRIES):
            try:
                return self._repository.current()
            except StoreBusyError:
                self._repository.forget()
        return self._repository.current()
