"""Saving: what is new or changed goes to the archive and is made durable."""

from __future__ import annotations

from typing import Any

from ctxgc.session.workings import Workings


def state_of(w: Workings) -> dict[str, Any]:
    """Return what a session knows beside its messages and segments, as JSON values."""
    heap, recent = w.heap, w.heap.recent
    return {
        "context_limit": w.books.budget.context_limit,
        "secret": w.stash.secret.hex(),
        "summaries": w.summaries,
        "turns_taken": w.turns_taken,
        "numbered": w.segmenter.numbered,
        "ingested_tokens": w.ingested_tokens,
        "pinned_messages": sorted(w.pinned_messages),
        "held_until": dict(w.held_until),
        "undone": w.undone.to_doc(),
        "requests": w.requests,
        "sent_messages": w.sent_messages,
        "sent_before": w.sent_before,
        "sent_at": w.sent_at.isoformat() if w.sent_at else None,
        "stuck_at": w.stuck_at,
        "ghosts": w.ghosts.to_doc(),
        "thrash": dict(w.thrash),
        "thrashing": w.thrashing.to_doc(),
        "savings": w.savings.sums(),
        "task_id": w.task_id,
        "task_dependencies": sorted(w.task_dependencies),
        "active_file": w.active_file,
        "active_range": list(w.active_range) if w.active_range else None,
        "zone": w.zone.value,
        "step": heap.step,
        "opened": list(recent.opened),
        "first_request": recent.first_request,
        "policies": {key: policy.value for key, policy in w.books.policies.items()},
        "beside": w.books.beside(),
    }


def note_state(w: Workings) -> None:
    """Write with the next commit what is neither message nor segment, where it changed."""
    w.archive.note_state("session", state_of(w))


def note_changes(w: Workings) -> None:
    """Write with the next commit what came in or was changed by hand since the last one."""
    note_state(w)
    segments = [s for s in map(w.heap.peek, w.unsaved) if s is not None]
    w.archive.note_segments(segments, w.handle)
    w.unsaved.clear()


def save(w: Workings) -> None:
    """Make everything durable that came in or was changed by hand since the last time."""
    note_changes(w)
    w.archive.commit()


def save_all(w: Workings) -> None:
    """Make everything durable, every header included."""
    w.archive.note_segments(w.heap, w.handle)
    w.archive.note_state("common", {"names": w.heap.mentions.common()})
    save(w)
