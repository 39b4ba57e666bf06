"""A session as the guard sees it: measured, checkpointed, pruned, and brought back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.core.message import Message
from ctxgc.errors import CheckpointError
from ctxgc.guard.checkpoint import Checkpoint
from ctxgc.guard.recoverable import FixedPart, Outlook
from ctxgc.invariants import check
from ctxgc.invariants.verbatim import first_difference
from ctxgc.session.checkpoints import make_checkpoint, messages_of, restore_checkpoint, shelf_of
from ctxgc.session.collecting import collect, impose
from ctxgc.session.digests import leaving, notice_of, show_notice
from ctxgc.session.essentials import bare_view, minimal_view, whole_groups
from ctxgc.session.saving import save
from ctxgc.session.verdict import compare
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCTriggerReason
from ctxgc.strategies.turns import opens_turn
from ctxgc.wire import strip_bound_thinking

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
