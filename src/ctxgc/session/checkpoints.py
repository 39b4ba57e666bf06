"""Checkpoints of a session: all that it takes to have the same view again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.core.message import Message
from ctxgc.guard.checkpoint import Checkpoint
from ctxgc.guard.checksums import FileDifference, checksum_files, compare_files
from ctxgc.guard.shelf import CheckpointShelf
from ctxgc.session.keeping import pinning
from ctxgc.session.messages import message_from_doc, message_to_doc
from ctxgc.session.saving import note_changes, state_of
from ctxgc.session.swapping import swap
from ctxgc.session.trying import trying
from ctxgc.session.verdict import compare
from ctxgc.session.workings import Workings


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A restored checkpoint, and the files that are not what they were when it was made."""

    checkpoint: Checkpoint
    differences: tuple[FileDifference, ...]


def shelf_of(w: Workings) -> CheckpointShelf:
    """Return where the checkpoints of this session are kept."""
    return CheckpointShelf(w.archive.store, w.archive.session_id)


def make_checkpoint(
    w: Workings,
    label: str = "",
    *,
    triggers: Sequence[str] = (),
    task_queue: Sequence[Any] = (),
    system_state: Mapping[str, Any] | None = None,
    files: Iterable[str] | None = None,
) -> Checkpoint:
    """Keep the view, the pins and the state of the session, durably.

    `files` names those whose checksums are kept; by default the files worked on last that exist.
    """
    known = _known_files(w) if files is None else list(files)
    checkpoint = Checkpoint(
        label=label,
        timestamp=w.clock(),
        triggers=list(triggers),
        context_snapshot={
            "state": state_of(w),
            "places": {m.message_id: w.view.place_of(m.message_id) for m in w.view.messages},
            "pinned_segments": list(w.heap.recent.pinned),
        },
        system_state=dict(system_state or {}),
        task_queue=list(task_queue),
        metrics=w.usage().to_dict(),
        conversation_history=[message_to_doc(message) for message in w.view.messages],
        file_checksums=checksum_files(known),
    )
    note_changes(w)
    w.archive.commit(*shelf_of(w).writes(checkpoint))
    w.events.emit("checkpoint", checkpoint_id=checkpoint.checkpoint_id, label=label)
    return checkpoint


def messages_of(checkpoint: Checkpoint) -> list[Message]:
    """Return the view that a checkpoint holds."""
    return [message_from_doc(doc) for doc in checkpoint.conversation_history]


def restore_checkpoint(
    w: Workings,
    checkpoint: Checkpoint,
    *,
    also: Sequence[Message] = (),
    pinned: Collection[str] = (),
) -> Restored:
    """Make the view what it was, byte for byte; what came in since is stashed.

    Messages in `also` stay in their places, with their pins; so do the pins of those in `pinned`.

    Raises:
        CheckpointError: the checkpoint does not verify.
        StoreError: the change could not be made durable; nothing has changed.
    """
    checkpoint.verify()
    here = {message.message_id: message for message in w.view.messages}
    w.view.remember_places(checkpoint.context_snapshot["places"])
    wanted = sorted([*messages_of(checkpoint), *also], key=lambda m: w.view.place_of(m.message_id))
    new = [_same_or(here.get(message.message_id), message) for message in wanted]
    if also and w.binds_thinking:
        new = w.bound.strip(w.view.messages, new)
    change = compare(w.view.messages, new)
    gone = {message.message_id for message in change.gone}
    spared = {*pinned, *(message.message_id for message in also)}
    with _pinned_as(w, checkpoint, new, spared), w.books.forgetting(gone):
        swap(w, new, change)
    w.events.emit("restored", checkpoint_id=checkpoint.checkpoint_id)
    return Restored(checkpoint=checkpoint, differences=tuple(compare_files(checkpoint)))


def _same_or(here: Message | None, wanted: Message) -> Message:
    """A message that did not change since stays the object that it is."""
    same = here is not None and here.data == wanted.data and here.source == wanted.source
    return here if here is not None and same else wanted


@contextmanager
def _pinned_as(
    w: Workings, checkpoint: Checkpoint, new: Sequence[Message], spared: set[str]
) -> Iterator[None]:
    """Pin what was pinned, and nothing else that is not spared, while another view is shown."""
    snapshot, shown = checkpoint.context_snapshot, {message.message_id for message in new}
    pinned = (w.pinned_messages & spared) | set(snapshot["state"]["pinned_messages"])
    held = {name: until for name, until in w.held_until.items() if name in shown}
    segments = _pins(w, set(snapshot["pinned_segments"]), spared)
    with trying(w, held_until=held), pinning(w, pinned, segments):
        yield


def _pins(w: Workings, wanted: set[str], spared: set[str]) -> dict[str, bool]:
    """Return which segments are to be pinned, and which no longer."""
    loose = {
        segment_id: False
        for segment_id in w.heap.recent.pinned
        if w.heap.get(segment_id).message_id not in spared
    }
    return loose | {segment_id: True for segment_id in wanted if segment_id in w.heap}


def _known_files(w: Workings) -> list[str]:
    recent = w.heap.recent
    newest = dict.fromkeys([*reversed(recent.opened), *reversed(recent.files)])
    return [path for path in list(newest)[:20] if Path(path).is_file()]
