"""Checkpoints of a context: which segments were in which tier, and the saved state.

A checkpoint holds headers and digests, never a text: what is deleted later is gone for good, and a
restore says so. All other texts are in the store anyway, working or stashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.core import ContextSegment, Heap, segment_from_dict, segment_to_dict, without_strays
from ctxgc.errors import CheckpointError
from ctxgc.guard import (
    Checkpoint,
    CheckpointStore,
    CheckpointTriggers,
    ContextMetrics,
    checksum_files,
    compare_files,
)
from ctxgc.mcp import usage
from ctxgc.mcp.context import AllowedRoots, Context, saved_from_doc
from ctxgc.mcp.request import MOST_LISTED, Json, RequestContext
from ctxgc.stores import Put

MOST_FILES = 20
_OWN = (
    "secret", "version", "step", "updates", "deleted", "collections", "imports", "ghosts", "thrashing",
)  # fmt: skip
"""What a restore does not change."""


class RestoredContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did: segments recalled, stashed, and deleted since, and files that changed."""

    checkpoint_id: str
    label: str
    recalled: list[str]
    stashed: list[str]
    lost: list[str]
    files: list[dict[str, str]]


def checkpoint(request: RequestContext, context: Context, label: str) -> Json:
    """Make a checkpoint."""
    made = _make(context, label, request.roots, ["request"])
    context.writes.extend(request.shelf().writes(made))
    return {
        "checkpoint_id": made.checkpoint_id,
        "label": label,
        "segments": len(made.conversation_history),
        "usage": usage.change(context, context.tokens),
        "next": f"context_checkpoint(action='restore', checkpoint_id='{made.checkpoint_id}')",
    }


def list_checkpoints(request: RequestContext, context: Context) -> Json:
    """List the checkpoints."""
    return {
        "checkpoints": _described(request.shelf()),
        "usage": usage.size(context),
        "next": "context_checkpoint(action='restore', checkpoint_id)",
    }


def restore(request: RequestContext, context: Context, wanted: str | None) -> Json:
    """Go back to a checkpoint."""
    before = context.tokens
    heap, done = _restored_heap(context, _find(request.shelf(), wanted))
    context.replace_heap(heap)
    listed = msgspec.to_builtins(done)
    return {
        **{k: v[:MOST_LISTED] if isinstance(v, list) else v for k, v in listed.items()},
        "usage": usage.change(context, before),
        "next": usage.next_call(context),
    }


# -- Making and restoring


class DueCheckpoints:
    """Makes a checkpoint when S4's triggers ask for one: the size, or the time since the last one."""

    def __init__(self, request: RequestContext, clock: Callable[[], datetime]) -> None:
        self._request = request
        self._triggers = CheckpointTriggers(clock=clock)

    @contextmanager
    def watching(self, context: Context) -> Iterator[None]:
        """Add a checkpoint that is due to what is saved; it counts as made once it is saved."""
        self._triggers.config = context.config
        limit = context.saved.context_limit
        metrics = ContextMetrics(context_size=context.tokens, context_limit=limit)
        due, why = self._triggers.check(metrics)
        if due and not _has_checkpoint(context):
            made = _make(context, "", self._request.roots, why)
            context.writes.extend(self._request.shelf().writes(made))
        is_made = _has_checkpoint(context)
        yield
        if is_made:
            self._triggers.made()


def _has_checkpoint(context: Context) -> bool:
    return any(isinstance(w, Put) and w.collection == "checkpoints" for w in context.writes)


def _make(context: Context, label: str, roots: AllowedRoots, triggers: Sequence[str]) -> Checkpoint:
    """Return a checkpoint of a context as it is now."""
    return Checkpoint(
        label=label,
        timestamp=context.clock(),
        triggers=list(triggers),
        context_snapshot={"state": msgspec.to_builtins(context.saved)},
        metrics={"tokens": context.tokens, "segments": len(context.heap)},
        conversation_history=[_header(segment) for segment in context.heap.working()],
        file_checksums=checksum_files(_files(context, roots)),
    )


def _restored_heap(context: Context, checkpoint: Checkpoint) -> tuple[Heap, RestoredContext]:
    """Return the heap as it was then; what was added since is stashed, so nothing is lost.

    Raises:
        CheckpointError: a text has changed since.
    """
    checkpoint.verify()
    if any("segment_id" not in doc for doc in checkpoint.conversation_history):
        raise CheckpointError(
            f"a session made the checkpoint '{checkpoint.checkpoint_id}'",
            hint="ctxgc checkpoint restore, or Session.restore, restores it",
            checkpoint_id=checkpoint.checkpoint_id,
        )
    heap = context.heap
    wanted = {doc["segment_id"]: doc for doc in checkpoint.conversation_history}
    now = {segment.segment_id for segment in heap.working()}
    lost = [segment_id for segment_id in wanted if segment_id not in heap]
    then = _then(heap, {i: doc for i, doc in wanted.items() if i not in lost})
    rebuilt = _rebuilt(context, then)
    _restore_saved(context, checkpoint, rebuilt)
    return rebuilt, RestoredContext(
        checkpoint_id=checkpoint.checkpoint_id,
        label=checkpoint.label,
        recalled=[i for i in wanted if i in heap and i not in now],
        stashed=sorted(now - wanted.keys()),
        lost=lost,
        files=[{"path": d.path, "kind": d.kind} for d in compare_files(checkpoint)],
    )


def _described(shelf: CheckpointStore) -> list[dict[str, Any]]:
    """Return what is on the shelf, newest first."""
    return [
        {
            "checkpoint_id": info.checkpoint_id,
            "label": info.label,
            "made_at": info.timestamp.isoformat(),
            "triggers": list(info.triggers),
        }
        for info in reversed(shelf.list())
    ]


def _find(shelf: CheckpointStore, wanted: str | None) -> Checkpoint:
    """Return a checkpoint by id or label, verified; the newest that verifies if none is given.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    if wanted is None:
        latest = shelf.latest_good().checkpoint
        if latest is None:
            raise CheckpointError(
                "there is no checkpoint yet", hint="context_checkpoint(action='create') makes one"
            )
        return latest
    labelled = [info.checkpoint_id for info in shelf.list() if info.label == wanted]
    return shelf.get(labelled[-1] if labelled else wanted)


def _header(segment: ContextSegment) -> dict[str, Any]:
    doc = segment_to_dict(segment)
    return {**doc, "text": "", "digest": text_digest(segment.text)}


def _then(heap: Heap, wanted: dict[str, dict[str, Any]]) -> list[ContextSegment]:
    """Return all segments, those of the checkpoint with the headers they had then."""
    found = []
    for segment in heap:
        doc = wanted.get(segment.segment_id)
        if doc is None:
            found.append(msgspec.structs.replace(segment, tier="stashed"))
            continue
        if doc["digest"] != text_digest(segment.text):
            raise CheckpointError(
                f"the text of '{segment.segment_id}' is not the one of the checkpoint",
                hint="the store was changed by other means; use another checkpoint",
                segment_id=segment.segment_id,
            )
        header = {key: value for key, value in doc.items() if key != "digest"}
        found.append(segment_from_dict({**header, "text": segment.text}))
    return found


def _rebuilt(context: Context, segments: list[ContextSegment]) -> Heap:
    old, heap = context.heap, Heap(context.heap.count)
    heap.ledger.restate_deleted(old.ledger.deleted)
    heap.mentions.restate_common(old.mentions.common())
    known = {segment.segment_id for segment in segments}
    heap.rebuild([without_strays(segment, known) for segment in segments])
    heap.version, heap.step, heap.updates = old.version + 1, old.step, old.updates
    return heap


def _restore_saved(context: Context, checkpoint: Checkpoint, heap: Heap) -> None:
    then = saved_from_doc(checkpoint.context_snapshot["state"])
    for name in _OWN:
        setattr(then, name, getattr(context.saved, name))
    heap.root_index.opened.update(dict.fromkeys(then.opened))
    heap.root_index.files = dict.fromkeys(then.files)
    heap.root_index.first_request = then.first_request
    context.saved = then


def _files(context: Context, roots: AllowedRoots) -> Iterable[str]:
    recent = context.heap.root_index
    newest = dict.fromkeys([*reversed(recent.opened), *reversed(recent.files)])
    return [path for path in list(newest)[:MOST_FILES] if roots.holds(Path(path))]


def text_digest(text: str) -> str:
    """Return a digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
