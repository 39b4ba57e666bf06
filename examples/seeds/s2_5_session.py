"""S2 5 "Handle Removal List" and "Budget Sync After Summary", blocks 5 and 12: their own loop.

Fault of the seed: block 12 reads `result` in a method that is given only the removal list; here it is an argument.
"""

from typing import List, Optional

from ctxgc import (
    GCConfig, GCPolicy, GCRemovalItem, GCResult, GCTriggerReason, InstructionBudget, InstructionSource,
    counter_for, load_gc_plugin,
)
from ctxgc.core import Message, Part
from ctxgc.tokens import message_tokens


class Session:
    def __init__(self, plugin, config, limit):
        self._gc_plugin = plugin
        self._gc_config = config
        self._history = []
        self._instruction_budget = InstructionBudget(context_limit=limit)
        self.updates = []

    # -- block 5

    def _execute_gc(self, reason: GCTriggerReason) -> Optional[GCResult]:
        """Execute garbage collection and sync budget."""

        # Call GC plugin with budget
        new_history, result = self._gc_plugin.collect(
            history=self._history,
            context_usage=self.get_context_usage(),
            config=self._gc_config,
            reason=reason,
            budget=self._instruction_budget  # Pass budget
        )

        if result.success:
            # Update history
            self._history = new_history

            # Sync budget from removal list
            self._apply_gc_removal_list(result.removal_list, result)

            # Emit budget update
            self._emit_instruction_budget_update()

        return result

    def _apply_gc_removal_list(self, removal_list: List[GCRemovalItem], result: GCResult) -> None:
        """Apply removal list to budget."""
        if not self._instruction_budget:
            return

        for item in removal_list:
            if item.child_key:
                # Remove specific child
                self._instruction_budget.remove_child(item.source, item.child_key)
            else:
                # Clear entire source (rare)
                entry = self._instruction_budget.get_entry(item.source)
                if entry:
                    entry.tokens = 0
                    entry.children.clear()

        # -- block 12
        if "summary_tokens" in result.details:
            # Add summary as a new conversation child
            self._instruction_budget.add_child(
                source=InstructionSource.CONVERSATION,
                child_key="gc_summary",
                tokens=result.details["summary_tokens"],
                gc_policy=GCPolicy.PRESERVABLE,  # Summaries are worth keeping
                label="Context Summary",
                metadata={"created_by": result.plugin_name}
            )

    # -- what the blocks leave out

    def get_context_usage(self):
        budget = self._instruction_budget
        return {"percent_used": budget.utilization(), "context_limit": budget.context_limit}

    def _emit_instruction_budget_update(self):
        self.updates.append(self._instruction_budget.total_tokens())

    def add_turn(self, number, *messages):
        self._history += messages
        self._instruction_budget.add_child(
            InstructionSource.CONVERSATION, f"turn_{number}", size_of(messages), GCPolicy.PARTIAL,
            message_ids=[message.message_id for message in messages],
        )


counter = counter_for(None)


def size_of(messages):
    return sum(message_tokens(message, counter) for message in messages)


for name, options in (
    ("gc_truncate", {}),
    ("gc_budget", {}),
    ("gc_summarize", {"summarizer": lambda text: "They counted words."}),
    ("gc_hybrid", {"summarizer": lambda text: "They counted words.", "summarize_middle_turns": 3}),
):
    plugin = load_gc_plugin(name, {"preserve_recent_turns": 2, "notify_on_gc": False, **options})
    session = Session(plugin, GCConfig(), limit=800)
    session._instruction_budget.add_child(
        InstructionSource.ENRICHMENT, "docs", 40, GCPolicy.EPHEMERAL
    )
    for number in range(10):
        session.add_turn(
            number,
            Message("user", [Part(text=f"Question {number}: " + "word " * 30)]),
            Message("assistant", [Part(text=f"Answer {number}: " + "word " * 30)]),
        )
    before = session._history
    result = session._execute_gc(GCTriggerReason.THRESHOLD)
    budget = session._instruction_budget

    gone = {i for item in result.removal_list for i in item.message_ids}
    keys = [item.child_key for item in result.removal_list]
    assert [m for m in before if m.message_id not in gone] == [m for m in session._history if m in before]
    assert "turn_1" in keys and "turn_9" not in keys  # the oldest, whole; the first request stays
    assert all(budget.get_child(InstructionSource.CONVERSATION, key) is None for key in keys if key)
    booked = budget.tokens_by_source()[InstructionSource.CONVERSATION]
    assert booked == size_of(session._history) and session.updates == [budget.total_tokens()]
