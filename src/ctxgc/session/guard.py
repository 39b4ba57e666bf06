"""A session as the guard sees it: measured, checkpointed, pruned, and brought back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.core import Message
from ctxgc.errors import CheckpointError
from ctxgc.guard import (
    Checkpoint,
    CheckpointStore,
    FileDifference,
    FixedPart,
    Outlook,
    checksum_files,
    compare_files,
)
from ctxgc.invariants import check, first_difference
from ctxgc.session.apply import swap
from ctxgc.session.archive import message_from_doc, message_to_doc
from ctxgc.session.collection import collect, impose
from ctxgc.session.delete import leaving, notice_of, show_notice
from ctxgc.session.plugin_check import compare
from ctxgc.session.recall import pinning
from ctxgc.session.rollback import trying
from ctxgc.session.state import Workings, note_changes, save, state_of
from ctxgc.session.view import bare_view, minimal_view, whole_groups
from ctxgc.strategies import GCTriggerReason, opens_turn
from ctxgc.wire import strip_bound_thinking

# -- Checkpoints of a session: all that it takes to have the same view again


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A restored checkpoint, and the files that are not what they were when it was made."""

    checkpoint: Checkpoint
    differences: tuple[FileDifference, ...]


def shelf_of(w: Workings) -> CheckpointStore:
    """Return where the checkpoints of this session are kept."""
    return CheckpointStore(w.archive.store, w.archive.session_id)


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
            "pinned_segments": list(w.heap.root_index.pinned),
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
        for segment_id in w.heap.root_index.pinned
        if w.heap.get(segment_id).message_id not in spared
    }
    return loose | {segment_id: True for segment_id in wanted if segment_id in w.heap}


def _known_files(w: Workings) -> list[str]:
    recent = w.heap.root_index
    newest = dict.fromkeys([*reversed(recent.opened), *reversed(recent.files)])
    return [path for path in list(newest)[:20] if Path(path).is_file()]


# -- A session as the guard sees it: measured, checkpointed, pruned, and brought back


EMERGENCY = "emergency"


class RecoverableSession:
    """What `ctxgc.guard.Recovery` asks of a session."""

    def __init__(self, workings: Workings) -> None:
        self._w = workings
        self._left: list[str] = []

    @property
    def limit(self) -> int:
        """The size of the window."""
        return self._w.books.budget.context_limit

    def size(self) -> int:
        """Return the size of what would be sent now."""
        return self._w.books.budget.total_tokens()

    def checkpoint(self, *, emergency: bool) -> bool:
        """Make a checkpoint of the present state, durably."""
        make_checkpoint(self._w, triggers=[EMERGENCY if emergency else "danger_zone"])
        return True

    def plan(self, target: int) -> Outlook:  # noqa: ARG002 - what must stay does not depend on it
        """Return how much must stay whatever happens, and how much may leave."""
        must_stay = self._beside() + self._tokens(self._minimal())
        return Outlook(must_stay=must_stay, prunable=max(0, self.size() - must_stay))

    def prune(self, target: int) -> bool:
        """Collect down to a target, or as near as the strategy can."""
        return collect(self._w, GCTriggerReason.CONTEXT_LIMIT, target).tokens_freed > 0

    def validate(self) -> bool:
        """Tell whether the view is valid and everything essential still in it."""
        messages = self._w.view.messages
        here = {message.message_id for message in messages}
        return not check(messages) and self._kept() <= here

    def minimal(self) -> bool:
        """Reduce the view to what cannot go and the work done last."""
        return self._show(self._minimal())

    def aggressive(self) -> bool:
        """Keep only the absolute essentials of the view."""
        return self._show(bare_view(self._w.view.messages, self._kept()))

    def checkpoint_minimum(self) -> int | None:
        """Return how small the last checkpoint that verifies can be made; None without one."""
        last = self._last()
        if last is None:
            return None
        messages = [*messages_of(last), *self._since(last)]
        return self._beside() + self._tokens(bare_view(messages, self._kept()))

    def load_last_checkpoint(self) -> bool:
        """Go back to the last checkpoint that verifies, an emergency one only if there is no other.

        Pins and the newest request stay in the view: that is what the call is about.
        """
        last = self._last()
        if last is None:
            return False
        also = self._since(last)
        self._left += leaving(self._w, [*messages_of(last), *also])
        restore_checkpoint(self._w, last, also=also, pinned=self._kept())
        return True

    def resume(self) -> None:
        """Note that work goes on from the loaded checkpoint."""
        save(self._w)

    def tell_left(self, limit: int) -> None:
        """Let the view tell of what left in need, if there is room for that below a limit."""
        notice = notice_of(self._w, self._left)
        self._left = []
        if notice is not None and self.size() + self._tokens([notice]) < limit:
            show_notice(self._w, notice)

    def parts(self) -> Sequence[FixedPart]:
        """Return what must stay, largest first."""
        budget = self._w.books.budget
        beside = [
            FixedPart(f"{source.value}: {key}", child.tokens)
            for source in (InstructionSource.SYSTEM, InstructionSource.PLUGIN)
            if (entry := budget.get_entry(source)) is not None
            for key, child in entry.children.items()
            if not child.message_ids
        ]
        said = [
            FixedPart(f"{m.role} message {m.message_id}", self._w.books.tokens(m))
            for m in self._minimal()
        ]
        return sorted([*beside, *said], key=lambda part: -part.tokens)

    def _kept(self) -> set[str]:
        """The messages that stay whatever happens: pinned, held after a recall, or locked."""
        budget = self._w.books.budget
        locked = {
            message_id
            for source in InstructionSource
            if (entry := budget.get_entry(source)) is not None
            for child in entry.children.values()
            if child.gc_policy is GCPolicy.LOCKED
            for message_id in child.message_ids
        }
        return self._w.kept_messages() | locked

    def _minimal(self) -> list[Message]:
        return minimal_view(self._w.view.messages, self._kept())

    def _show(self, new: list[Message]) -> bool:
        now = self._w.view.messages
        if self._w.binds_thinking:
            new = strip_bound_thinking(new, first_difference(now, new))
        if not compare(now, new):
            return False
        self._left += leaving(self._w, new)
        impose(self._w, new, "guard")
        save(self._w)
        return True

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(map(self._w.books.tokens, messages))

    def _beside(self) -> int:
        """What is sent beside the messages: system prompt, tools, enrichment."""
        return self.size() - self._tokens(self._w.view.messages)

    def _since(self, checkpoint: Checkpoint) -> list[Message]:
        """What must not leave and came in after a checkpoint: pins, and the newest request."""
        messages = self._w.view.messages
        known = {message.message_id for message in messages_of(checkpoint)}
        requests = [m.message_id for m in messages if opens_turn(m)]
        kept = whole_groups(messages, {*self._kept(), *requests[-1:]})
        return [m for m in kept if m.message_id not in known]

    def _last(self) -> Checkpoint | None:
        """The newest checkpoint that verifies and could be sent; one of need only without another."""
        shelf = shelf_of(self._w)
        oldest = sorted(shelf.list(), key=lambda info: EMERGENCY not in info.triggers)
        for info in reversed(oldest):
            with suppress(CheckpointError):
                checkpoint = shelf.get(info.checkpoint_id)
                if not check(messages_of(checkpoint)):
                    return checkpoint
        return None
