"""Checkpoints of a context: the session's own, which every door can restore.

With a checkpoint the server keeps what only it knows, and goes back to that too. Checkpoints of older servers
hold the headers of segments instead of messages, and are restored by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.errors import CheckpointError
from ctxgc.mcp import usage
from ctxgc.mcp.context import AllowedRoots, Context, saved_from_doc
from ctxgc.mcp.request import MOST_LISTED, Json, RequestContext
from ctxgc.session import (
    Checkpoint,
    CheckpointStore,
    compare_files,
)

MOST_FILES = 20
_SERVER = "mcp"
_OWN = ("is_own", "imports", "deleted")
"""What a restore does not change."""


def checkpoint(request: RequestContext, context: Context, label: str) -> Json:
    """Make a checkpoint."""
    made = _make(context, label, request.roots, ["request"])
    return {
        "checkpoint_id": made.checkpoint_id,
        "label": label,
        "segments": len(list(context.heap.working())),
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
    """Go back to a checkpoint; what was added since is stashed, so nothing is lost.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    before, tokens = _working(context), context.tokens
    found = _find(request.shelf(), wanted)
    found.verify()
    lost = _restore(context, found)
    now = _working(context)
    return {
        "checkpoint_id": found.checkpoint_id,
        "label": found.label,
        "recalled": [i for i in now if i not in before][:MOST_LISTED],
        "stashed": sorted(i for i in before if i not in now and i in context.heap)[:MOST_LISTED],
        "lost": lost[:MOST_LISTED],
        "files": [{"path": d.path, "kind": d.kind} for d in compare_files(found)][:MOST_LISTED],
        "usage": usage.change(context, tokens),
        "next": usage.next_call(context),
    }


def _restore(context: Context, found: Checkpoint) -> list[str]:
    """Make the view, and what the server knows, what they were; return what is gone for good since."""
    if any("segment_id" in doc for doc in found.conversation_history):
        ids = [doc["segment_id"] for doc in found.conversation_history]
        context.work().restore_tiers(ids)
        _restore_saved(context, found.context_snapshot["state"])
        return [i for i in ids if i not in context.heap]
    context.session.restore(found.checkpoint_id)
    if _SERVER in found.system_state:
        _restore_saved(context, found.system_state[_SERVER])
    return []


def _restore_saved(context: Context, doc: dict[str, Any]) -> None:
    then = saved_from_doc(doc)
    for name in _OWN:
        setattr(then, name, getattr(context.saved, name))
    context.saved = then
    context.configure(then.settings)
    context.session.set_task(doc.get("task_id"), doc.get("depends_on", ()))
    context.session.set_active_file(doc.get("active_file"), doc.get("active_range"))


def make_if_due(request: RequestContext, context: Context) -> None:
    """Make a checkpoint if one of S4's triggers asks for it; it is written with the change."""
    why = context.parts.guard.triggers_due()
    if why:
        _make(context, "", request.roots, why)


def _make(context: Context, label: str, roots: AllowedRoots, triggers: list[str]) -> Checkpoint:
    """Return a checkpoint of a context as it is now."""
    state = context.parts.state
    known = {
        **msgspec.to_builtins(context.saved),
        "task_id": state.task_id,
        "depends_on": sorted(state.task_dependencies),
        "active_file": state.active_file,
        "active_range": list(state.active_range) if state.active_range else None,
    }
    return context.session.checkpoint(
        label,
        system_state={_SERVER: known},
        files=_files(context, roots),
        triggers=triggers,
    )


def _working(context: Context) -> dict[str, None]:
    return dict.fromkeys(segment.segment_id for segment in context.heap.working())


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


def _files(context: Context, roots: AllowedRoots) -> Iterable[str]:
    recent = context.heap.root_index
    newest = dict.fromkeys([*reversed(recent.opened), *reversed(recent.files)])
    return [path for path in list(newest)[:MOST_FILES] if roots.holds(Path(path))]
