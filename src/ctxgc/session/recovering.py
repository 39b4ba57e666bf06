"""A session as the guard sees it: measured, checkpointed, pruned, and brought back."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.budget import InstructionSource
from ctxgc.core.message import Message
from ctxgc.guard.checkpoint import Checkpoint
from ctxgc.guard.recoverable import FixedPart, Outlook
from ctxgc.invariants import check
from ctxgc.session.checkpoints import make_checkpoint, restore_checkpoint, shelf_of
from ctxgc.session.collecting import collect
from ctxgc.session.essentials import bare_view, minimal_view
from ctxgc.session.messages import message_from_doc
from ctxgc.session.saving import save
from ctxgc.session.swapping import swap
from ctxgc.session.verdict import compare
from ctxgc.session.workings import Workings
from ctxgc.strategies.base import GCTriggerReason

EMERGENCY = "emergency"


class RecoverableSession:
    """What `ctxgc.guard.Recovery` asks of a session."""

    def __init__(self, workings: Workings) -> None:
        self._w = workings

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
        return not check(messages, complete=False) and self._w.kept_messages() <= here

    def minimal(self) -> bool:
        """Reduce the view to what cannot go and the work done last."""
        return self._show(self._minimal())

    def aggressive(self) -> bool:
        """Keep only the absolute essentials of the view."""
        return self._show(bare_view(self._w.view.messages, self._w.kept_messages()))

    def checkpoint_minimum(self) -> int | None:
        """Return how small the last checkpoint that verifies can be made; None without one."""
        last = self._last()
        if last is None:
            return None
        messages = [message_from_doc(doc) for doc in last.conversation_history]
        return self._beside() + self._tokens(bare_view(messages, self._w.kept_messages()))

    def load_last_checkpoint(self) -> bool:
        """Go back to the last checkpoint that verifies, an emergency one only if there is no other."""
        last = self._last()
        if last is None:
            return False
        restore_checkpoint(self._w, last)
        return True

    def resume(self) -> None:
        """Note that work goes on from the loaded checkpoint."""
        save(self._w)

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

    def _minimal(self) -> list[Message]:
        return minimal_view(self._w.view.messages, self._w.kept_messages())

    def _show(self, new: list[Message]) -> bool:
        change = compare(self._w.view.messages, new)
        if not change:
            return False
        swap(self._w, new, change)
        save(self._w)
        return True

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(map(self._w.books.tokens, messages))

    def _beside(self) -> int:
        """What is sent beside the messages: system prompt, tools, enrichment."""
        return self.size() - self._tokens(self._w.view.messages)

    def _last(self) -> Checkpoint | None:
        shelf = shelf_of(self._w)
        for info in sorted(shelf.list(), key=lambda each: each.timestamp, reverse=True):
            checkpoint = shelf.get(info.checkpoint_id)
            if EMERGENCY not in checkpoint.triggers:
                return checkpoint
        return shelf.latest_good().checkpoint
