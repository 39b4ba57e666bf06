"""The guard of a session: checkpoints when they are due, and a request that always fits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ctxgc.budget import InstructionSource
from ctxgc.collector import (
    CollectionRun,
    GCTriggerReason,
    Host,
    frame_of,
    pending_tokens,
    shorten_pending,
    whole_groups,
)
from ctxgc.config import GCConfig
from ctxgc.core import ContextSegment, Evidence, Message, find_secrets
from ctxgc.errors import CheckpointError
from ctxgc.guard import (
    Alert,
    Checkpoint,
    CheckpointStore,
    CheckpointTriggers,
    ContextMetrics,
    ContextMonitor,
    FileDifference,
    FixedPart,
    Outlook,
    Recovery,
    RecoveryReport,
    checksum_files,
    compare_files,
)
from ctxgc.invariants import check
from ctxgc.session.annotations import Annotations
from ctxgc.session.apply import ViewEditor
from ctxgc.session.collection import Collector
from ctxgc.session.delete import StashCollector
from ctxgc.session.documents import message_from_doc, message_to_doc
from ctxgc.session.notices import Notices
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.recall import AutoRecall, ProtectedMessages
from ctxgc.session.usage import UsageMeter
from ctxgc.session.view import Original, compare, digest
from ctxgc.stores import Write, masked_document
from ctxgc.strategies import (
    BuiltinStrategy,
    GCPlugin,
    MarkSweepStrategy,
    NoneStrategy,
    serving,
)
from ctxgc.wire import Overflow

EMERGENCY = "emergency"
_DIGEST = "digest"
"""Of a message that a checkpoint holds without its keys: the digest of the message with them."""
_MOST_FILES = 20
_NEVER = f"{NoneStrategy.name} never collects"


def why_not_by_itself(plugin: GCPlugin, config: GCConfig) -> str | None:
    """Return why a session never collects by itself; None if it does."""
    if plugin.name == NoneStrategy.name:
        return _NEVER
    return None if config.auto_trigger else "collecting is switched off (auto_trigger=False)"


def why_not_before_requests(plugin: GCPlugin, config: GCConfig) -> str | None:
    """Return why a session does not collect before a request; None if it does."""
    off = "collecting before a request is switched off (check_before_send=False)"
    return why_not_by_itself(plugin, config) or (None if config.check_before_send else off)


class SessionGuard(SessionPart):
    """Watches every request of one session."""

    def __init__(
        self,
        core: SessionCore,
        *,
        checkpoints: Checkpoints,
        subject: RecoverableSession,
        stash_collector: StashCollector,
        new_auto_recall: Callable[[], AutoRecall],
    ) -> None:
        super().__init__(core)
        self._checkpoints = checkpoints
        self._subject = subject
        self._stash_collector = stash_collector
        self._new_auto_recall = new_auto_recall
        self.restart()

    def restart(self) -> None:
        """Watch by the configuration of the options, from a fresh start."""
        config, clock = self._options.config, self._options.clock
        self._monitor = ContextMonitor(
            config, on_alert=self._alert, zone=self._state.zone, clock=clock
        )
        self._state.triggers = self._triggers().seen
        self._subject.restart()
        self._recovery = Recovery(self._subject, config, self._monitor)
        self._collections = len(self._log.applied)
        self._refused_at: int | None = None
        self.auto_recall = self._new_auto_recall()

    def before_request(self) -> RecoveryReport:
        """Bring back what was named, make a checkpoint that is due, and make the view fit.

        Where collecting is switched off the view stays as it is, and is watched all the same.

        Raises:
            ContextOverflowError: what must stay does not fit; `details` names the parts.
        """
        off = why_not_before_requests(self._options.plugin, self._options.config)
        if off is None:
            self.auto_recall.bring_back()
        self.checkpoint_if_due()
        if off is None:
            self._collect_stash_if_due()
        # The same call again, if nothing came in since the refusal: its retries are counted together.
        again, self._refused_at = self._refused_at == len(self._view.arrivals), None
        return self._with_notice(self._recovery.before_call(off, again=again))

    def after_refusal(self, overflow: Overflow) -> RecoveryReport:
        """Make the view strictly smaller, because the provider refused it.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
        """
        off = why_not_by_itself(self._options.plugin, self._options.config)
        with self._subject.refused():
            report = self._with_notice(self._recovery.after_refusal(overflow, off))
        self._refused_at = len(self._view.arrivals)
        return report

    def checkpoint_if_due(self, **progress: Any) -> Checkpoint | None:
        """Make a checkpoint if one of S4's triggers says so."""
        why = self.triggers_due(**progress)
        return self.checkpoint(triggers=why) if why else None

    def triggers_due(self, **progress: Any) -> list[str]:
        """Return which of S4's triggers ask for a checkpoint; see `CheckpointTriggers.check`."""
        triggers, budget = self._triggers(), self._accounting.budget
        metrics = ContextMetrics(
            context_size=budget.total_tokens(), context_limit=budget.context_limit
        )
        _, why = triggers.check(metrics, task=self._state.task_id, **progress)
        self._state.triggers = triggers.seen
        return why

    def checkpoint(self, label: str = "", **contents: Any) -> Checkpoint:
        """Make a checkpoint, for all that is due too; see `Checkpoints.make`."""
        with self._state.rollback_on_error():
            self.triggers_due()
            triggers, now = self._triggers(), self._options.clock()
            triggers.made(now)
            self._state.triggers = triggers.seen
            return self._checkpoints.make(label, at=now, **contents)

    def _triggers(self) -> CheckpointTriggers:
        options = self._options
        return CheckpointTriggers(options.config, clock=options.clock, seen=self._state.triggers)

    def _collect_stash_if_due(self) -> None:
        """Apply the configured limits, once after each collection that added to the stash."""
        done, config = len(self._log.applied), self._options.config
        limits = config.stash_max_age_seconds, config.stash_max_bytes
        if limits != (None, None) and done != self._collections:
            self._stash_collector.collect(max_age_seconds=limits[0], max_bytes=limits[1])
        self._collections = done

    def _with_notice(self, report: RecoveryReport) -> RecoveryReport:
        self._subject.show_notice(report.limit)
        return report

    def _alert(self, alert: Alert) -> None:
        self._events.emit("alert", **alert.to_dict())


# -- Checkpoints


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A restored checkpoint, and the files that are not what they were when it was made."""

    checkpoint: Checkpoint
    differences: tuple[FileDifference, ...]


def check_has_messages(checkpoint: Checkpoint) -> None:
    """Check that a session can restore a checkpoint.

    Raises:
        CheckpointError: it holds no messages: the MCP server made it.
    """
    if any("segment_id" in doc for doc in checkpoint.conversation_history):
        raise CheckpointError(
            f"the MCP server made the checkpoint '{checkpoint.checkpoint_id}'",
            hint="context_checkpoint(action='restore') restores it",
            checkpoint_id=checkpoint.checkpoint_id,
        )


def messages_of(checkpoint: Checkpoint) -> list[Message]:
    """Return the view that a checkpoint holds.

    Raises:
        CheckpointError: it holds no messages: the MCP server made it.
    """
    check_has_messages(checkpoint)
    return [message_from_doc(doc) for doc in checkpoint.conversation_history]


class Checkpoints(SessionPart):
    """Makes checkpoints, with all that it takes to have the same view again, and restores them."""

    def __init__(
        self, core: SessionCore, *, meter: UsageMeter, annotations: Annotations, editor: ViewEditor
    ) -> None:
        super().__init__(core)
        self._meter = meter
        self._annotations = annotations
        self._editor = editor

    @property
    def shelf(self) -> CheckpointStore:
        """Where the checkpoints of this session are kept."""
        return CheckpointStore(self._archive.store, self._archive.session_id)

    def make(
        self,
        label: str = "",
        *,
        at: datetime | None = None,
        triggers: Sequence[str] = (),
        task_queue: Sequence[Any] = (),
        system_state: Mapping[str, Any] | None = None,
        files: Iterable[str] | None = None,
    ) -> Checkpoint:
        """Store the view, the pins and the state of the session, durably.

        `files` names those whose checksums are stored; by default the files worked on last that exist.
        """
        known = self._known_files() if files is None else list(files)
        messages = self._view.messages
        checkpoint = Checkpoint(
            label=label,
            timestamp=self._options.clock() if at is None else at,
            triggers=list(triggers),
            context_snapshot={
                "state": self._archive.state_doc(),
                "places": {m.message_id: self._view.place_of(m.message_id) for m in messages},
                "pinned_segments": list(self._heap.root_index.pinned),
            },
            **self._unmarked(system_state=dict(system_state or {}), task_queue=list(task_queue)),
            metrics=self._meter.usage().to_dict(),
            conversation_history=[self._doc(message) for message in messages],
            file_checksums=checksum_files(known),
        )
        self._archive.note_changes()
        self._archive.commit(*self.shelf.writes(checkpoint))
        self._events.emit(
            "checkpoint",
            checkpoint_id=checkpoint.checkpoint_id,
            label=label,
            triggers=checkpoint.triggers,
        )
        return checkpoint

    def restore(
        self,
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
        view = self._view
        here = {message.message_id: message for message in view.messages}
        check_has_messages(checkpoint)
        view.remember_places(checkpoint.context_snapshot["places"])
        wanted = [*map(self._message, checkpoint.conversation_history), *also]
        wanted.sort(key=lambda m: view.place_of(m.message_id))
        new = [_same_or(here.get(message.message_id), message) for message in wanted]
        if also:
            new = self._thinking.strip(new)
        change = compare(view.messages, new)
        gone = {message.message_id for message in change.gone}
        spared = {*pinned, *(message.message_id for message in also)}
        later = self._came_after(wanted)
        with (
            self._taken_again(change.added) as arrivals,
            self._pinned_as(checkpoint, new, spared),
            self._accounting.forgetting(gone),
        ):
            scrubbed = self._archive.scrubbed_records(self._log, later)
            self._editor.apply(new, change, "restore", more=[*arrivals, *scrubbed])
        self._log.forget(later)
        self._events.emit("restored", checkpoint_id=checkpoint.checkpoint_id)
        return Restored(checkpoint=checkpoint, differences=tuple(compare_files(checkpoint)))

    def _came_after(self, wanted: Sequence[Message]) -> frozenset[str]:
        """Return what collections moved of the time after a view, which no undo may bring back."""
        place_of = self._view.place_of
        last = max((place_of(message.message_id) for message in wanted), default=0.0)
        records = self._log.applied
        moved = ((m.message_id, record) for record in records for m in record.before)
        return frozenset(i for i, record in moved if i not in record.places and place_of(i) > last)

    def _unmarked(self, **contents: Any) -> dict[str, Any]:
        """Return what a host adds, without likely keys if the configuration says so."""
        if self._options.config.secrets != "mask":
            return contents
        return masked_document("messages", contents)

    def _doc(self, message: Message) -> dict[str, Any]:
        """Return a message as a checkpoint holds it: without likely keys that the session itself has.

        A form of a message that the session may not have later is masked only if the configuration says so.
        """
        doc, mode = message_to_doc(message), self._options.config.secrets
        if mode == "off" or not any(find_secrets(part.text) for part in message.parts):
            return doc
        name = message.message_id
        stays = self._view.arrival_of(name) is not None and name not in self._view.originals
        if not stays and mode != "mask":
            return doc
        return {**masked_document("messages", doc), _DIGEST: digest(message).hex()}

    def _message(self, doc: Mapping[str, Any]) -> Message:
        """Return a message of a checkpoint, as it was if the session still has it so."""
        masked = message_from_doc(doc)
        if _DIGEST not in doc:
            return masked
        name = masked.message_id
        here = (m for m in self._view.messages if m.message_id == name)
        left = self._view.originals.get(name)
        known = [*here, *(() if left is None else (left.message,))]
        return next((m for m in known if digest(m).hex() == doc[_DIGEST]), masked)

    def newest_valid(self) -> Checkpoint | None:
        """Return the newest checkpoint that verifies and could be sent; an emergency one only if no other."""
        oldest = sorted(self.shelf.list(), key=lambda info: EMERGENCY not in info.triggers)
        for info in reversed(oldest):
            with suppress(CheckpointError):
                checkpoint = self.shelf.get(info.checkpoint_id)
                if not check(messages_of(checkpoint)):
                    return checkpoint
        return None

    @contextmanager
    def _taken_again(self, added: Sequence[Message]) -> Iterator[list[Write]]:
        """Let messages that the host had taken back come in again as the segments they were.

        Pins, handles and links are those of segments, so they stay with the content. Yields what must be
        stored for it.
        """
        originals = self._view.originals
        known = self._forgotten([m for m in added if m.message_id not in originals])
        originals.update(known)
        try:
            yield [self._archive.arrival(original.message) for original in known.values()]
        except BaseException:
            for message_id in known:
                originals.pop(message_id, None)
            raise

    def _forgotten(self, messages: Sequence[Message]) -> dict[str, Original]:
        """Return those of the messages whose segments the stash still has, whole and with the same texts."""
        wanted = {message.message_id: message for message in messages}
        found: dict[str, list[ContextSegment]] = {}
        stashed = self._heap.index.stashed.values() if wanted else ()
        for segment in sorted(stashed, key=lambda segment: segment.position):
            if segment.message_id in wanted and segment.derived_from is None:
                found.setdefault(str(segment.message_id), []).append(segment)
        return {
            message_id: Original(
                kept=wanted[message_id], segment_ids=tuple(s.segment_id for s in segments)
            )
            for message_id, segments in found.items()
            if [s.text for s in segments] == [part.text for part in wanted[message_id].parts]
        }

    @contextmanager
    def _pinned_as(
        self, checkpoint: Checkpoint, new: Sequence[Message], spared: set[str]
    ) -> Iterator[None]:
        """Pin what was pinned, and nothing else that is not spared, while another view is shown."""
        state, snapshot = self._state, checkpoint.context_snapshot
        shown = {message.message_id for message in new}
        pinned = (state.pinned_messages & spared) | set(snapshot["state"]["pinned_messages"])
        pinned |= shown.intersection(self._made_anew(snapshot["pinned_segments"]))
        segments = self._segment_pins(set(snapshot["pinned_segments"]), spared)
        with state.rollback_on_error():
            state.held_until = {name: n for name, n in state.held_until.items() if name in shown}
            with self._annotations.pinned_as(pinned, segments):
                yield

    def _made_anew(self, pinned_segments: Iterable[str]) -> Iterator[str]:
        """Yield the messages of pinned segments that a restore cannot show again: they are pinned whole."""
        for segment in filter(None, map(self._heap.peek, pinned_segments)):
            message_id = segment.message_id
            if message_id is not None and segment.tier == "stashed":
                known = self._view.originals.get(message_id)
                if known is None or segment.segment_id not in known.segment_ids:
                    yield message_id

    def _segment_pins(self, wanted: set[str], spared: set[str]) -> dict[str, bool]:
        """Return which segments are to be pinned, and which no longer."""
        loose = {
            segment_id: False
            for segment_id in self._heap.root_index.pinned
            if self._heap.get(segment_id).message_id not in spared
        }
        return loose | {segment_id: True for segment_id in wanted if segment_id in self._heap}

    def _known_files(self) -> list[str]:
        recent = self._heap.root_index
        newest = dict.fromkeys([*reversed(recent.opened), *reversed(recent.files)])
        return [path for path in list(newest)[:_MOST_FILES] if Path(path).is_file()]


def _same_or(here: Message | None, wanted: Message) -> Message:
    """A message that did not change since stays the object that it is."""
    same = here is not None and here.data == wanted.data and here.source == wanted.source
    return here if here is not None and same else wanted


# -- Recovery


class RecoverableSession(SessionPart):
    """A session as `ctxgc.guard.Recovery` sees it: measured, checkpointed, pruned, and brought back."""

    def __init__(
        self,
        core: SessionCore,
        *,
        protected: ProtectedMessages,
        collector: Collector,
        checkpoints: Checkpoints,
        notices: Notices,
        host: Host,
    ) -> None:
        super().__init__(core)
        self._protected = protected
        self._collector = collector
        self._checkpoints = checkpoints
        self._notices = notices
        self._host = host
        self._is_refused = False
        self._left: list[str] = []

    def restart(self) -> None:
        """Forget what left so far."""
        self._left = []

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Inside the block the view was refused: other strategies help out, and new results may be cut."""
        self._is_refused = True
        try:
            yield
        finally:
            self._is_refused = False

    @property
    def limit(self) -> int:
        """The size of the window."""
        return self._accounting.budget.context_limit

    def size(self) -> int:
        """Return the size of what would be sent now."""
        return self._accounting.budget.total_tokens()

    def checkpoint(self, *, emergency: bool) -> bool:
        """Make a checkpoint of the present state, durably."""
        self._checkpoints.make(triggers=[EMERGENCY if emergency else "danger_zone"])
        return True

    def plan(self, target: int) -> Outlook:  # noqa: ARG002 - what must stay does not depend on it
        """Return how much must stay whatever happens, and how much may leave."""
        must_stay = self._beside() + self._tokens(self._minimal())
        if self._is_refused:
            must_stay -= pending_tokens(self._view.messages, self._accounting.tokens)
        return Outlook(must_stay=must_stay, prunable=max(0, self.size() - must_stay))

    def prune(self, target: int) -> bool:
        """Collect down to a target, or as near as the strategy can; after a refusal others help out."""
        collect, reason = self._collector.collect, GCTriggerReason.CONTEXT_LIMIT
        freed = collect(reason, target).tokens_freed
        for plugin in self._last_resorts() if self._is_refused else ():
            if self.size() > target:
                freed += collect(reason, target, plugin=plugin).tokens_freed
        return freed > 0

    def _last_resorts(self) -> Iterator[GCPlugin]:
        if self._options.plugin.name != MarkSweepStrategy.name:
            yield serving(MarkSweepStrategy(), self._host)
        yield serving(CutPendingStrategy(), self._host)

    def validate(self) -> bool:
        """Return whether the view is valid and everything essential still in it."""
        messages = self._view.messages
        here = {message.message_id for message in messages}
        return not check(messages) and self._protected.held_or_locked() <= here

    def minimal(self) -> bool:
        """Reduce the view to what must stay and the work done last."""
        return self._show(self._minimal())

    def aggressive(self) -> bool:
        """Keep only the absolute essentials of the view."""
        return self._show(self._protected.bare_view(self._view.messages))

    def checkpoint_minimum(self) -> int | None:
        """Return how small the last checkpoint that verifies can be made; None without one."""
        last = self._checkpoints.newest_valid()
        if last is None:
            return None
        messages = [*messages_of(last), *self._since(last)]
        return self._beside() + self._tokens(self._protected.bare_view(messages))

    def load_last_checkpoint(self) -> bool:
        """Go back to the last checkpoint that verifies, an emergency one only if there is no other.

        Pins and the newest request stay in the view: that is what the call is about.
        """
        last = self._checkpoints.newest_valid()
        if last is None:
            return False
        also = self._since(last)
        self._left += self._notices.leaving([*messages_of(last), *also])
        self._checkpoints.restore(last, also=also, pinned=self._protected.held_or_locked())
        return True

    def resume(self) -> None:
        """Note that work goes on from the loaded checkpoint."""
        self._archive.save()

    def show_notice(self, limit: int) -> None:
        """Show what left in the emergency, if there is room for that below a limit."""
        if not self._left:
            return
        notice = self._notices.notice_of(self._left)
        self._left = []
        if notice is not None and self.size() + self._tokens([notice]) < limit:
            self._notices.show(notice)

    def parts(self) -> Sequence[FixedPart]:
        """Return what must stay, largest first: everything where nothing may leave."""
        budget, options = self._accounting.budget, self._options
        off = why_not_before_requests(options.plugin, options.config)
        beside = [
            FixedPart(f"{source.value}: {key}", child.tokens)
            for source in (InstructionSource.SYSTEM, InstructionSource.PLUGIN)
            if (entry := budget.get_entry(source)) is not None
            for key, child in entry.children.items()
            if not child.message_ids
        ]
        said = [
            FixedPart(f"{m.role} message {m.message_id}", self._accounting.tokens(m))
            for m in (self._minimal() if off is None else self._view.messages)
        ]
        return sorted([*beside, *said], key=lambda part: -part.tokens)

    def _minimal(self) -> list[Message]:
        return self._protected.minimal_view(self._view.messages)

    def _show(self, new: list[Message]) -> bool:
        new = self._thinking.strip_edited(new)
        change = compare(self._view.messages, new)
        if not change:
            return False
        self._left += self._notices.leaving(new)
        leaving = dict.fromkeys((m.message_id for m in change.gone), self._emergency())
        self._collector.impose(new, "guard", evidence=leaving)
        self._archive.save()
        return True

    def _emergency(self) -> Evidence:
        """Return why all but the smallest view leaves: the critical zone, or a refusal below it."""
        ceiling = self.limit * self._options.config.critical_percent / 100
        over = self.size() - int(ceiling)
        refused = "the provider refused the view as too large" if self._is_refused else ""
        return Evidence(kind="oldest", tokens=max(0, over), how=refused)

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(map(self._accounting.tokens, messages))

    def _beside(self) -> int:
        return self._accounting.beside_tokens()

    def _since(self, checkpoint: Checkpoint) -> list[Message]:
        """What must stay and came in after a checkpoint: pins, and the newest request."""
        messages = self._view.messages
        known = {message.message_id for message in messages_of(checkpoint)}
        wanted = {*self._protected.held_or_locked(), *frame_of(messages).last_request}
        return [m for m in whole_groups(messages, wanted) if m.message_id not in known]


class CutPendingStrategy(BuiltinStrategy):
    """Shortens the results that the model has not read yet, the last resort."""

    name: ClassVar[str] = "gc_cut_pending"

    def shrink(self, run: CollectionRun) -> None:
        """Shorten the largest results first, until the target is met."""
        shorten_pending(run)
