"""S2 "Algorithm" and "GC Removal by Message ID", blocks 7 and 15: their gc_budget, and ours on the same budget.

Fault of the seed: `GCResult(success=True, items_collected=0, ...)` is not Python; here it has its fields.
Fault of the seed: a child is removed by its label, which is not its key; here each label is the key.
Fault of the seed: the newest ephemeral turns and pins are taken in phase 1b; ours keeps both.
"""

from ctxgc import (
    GCConfig, GCPolicy, GCRemovalItem, GCResult, GCTriggerReason, InstructionBudget, InstructionSource,
    load_gc_plugin,
)
from ctxgc.core import Message, Part


class Theirs:
    name = "gc_budget"

    # -- block 7

    def collect(self, history, context_usage, config, reason, budget):
        """Policy-aware garbage collection."""

        if not budget:
            # Fall back to simple truncation
            return self._fallback_truncate(history, context_usage, config, reason)

        current_tokens = budget.total_tokens()
        target_tokens = int(budget.context_limit * config.target_percent / 100)
        tokens_to_free = current_tokens - target_tokens

        if tokens_to_free <= 0:
            return history, GCResult(
                success=True, items_collected=0, tokens_before=current_tokens,
                tokens_after=current_tokens, plugin_name=self.name, trigger_reason=reason,
            )

        removal_list = []
        tokens_freed = 0

        # Phase 1a: Bulk clear ENRICHMENT (always ephemeral, regenerated each turn)
        enrichment_entry = budget.get_entry(InstructionSource.ENRICHMENT)
        if enrichment_entry and enrichment_entry.total_tokens() > 0:
            removal_list.append(GCRemovalItem(
                source=InstructionSource.ENRICHMENT,
                child_key=None,  # Bulk clear entire source
                tokens_freed=enrichment_entry.total_tokens(),
                reason="enrichment_bulk_clear"
            ))
            tokens_freed += enrichment_entry.total_tokens()

        # Phase 1b: Remove other EPHEMERAL entries (oldest first, keep most recent)
        if tokens_freed < tokens_to_free:
            ephemeral_candidates = self._get_ephemeral_candidates(budget, exclude_enrichment=True)
            # Sort by created_at (oldest first)
            sorted_candidates = sorted(ephemeral_candidates, key=lambda e: e.created_at)

            for entry in sorted_candidates:
                if tokens_freed >= tokens_to_free:
                    break
                removal_list.append(GCRemovalItem(
                    source=entry.source,
                    child_key=entry.label,
                    tokens_freed=entry.total_tokens(),
                    reason="ephemeral"
                ))
                tokens_freed += entry.total_tokens()

        # Phase 2: Remove old PARTIAL turns
        if tokens_freed < tokens_to_free:
            turn_candidates = self._get_partial_turn_candidates(budget, config)
            for turn_key, entry in turn_candidates:
                if tokens_freed >= tokens_to_free:
                    break
                removal_list.append(GCRemovalItem(
                    source=InstructionSource.CONVERSATION,
                    child_key=turn_key,
                    tokens_freed=entry.total_tokens(),
                    reason="partial_turn"
                ))
                tokens_freed += entry.total_tokens()

        # Phase 3: PRESERVABLE (only if usage > pressure_percent)
        if tokens_freed < tokens_to_free and context_usage['percent_used'] >= config.pressure_percent:
            preservable_candidates = self._get_preservable_candidates(budget)
            for entry in preservable_candidates:
                if tokens_freed >= tokens_to_free:
                    break
                removal_list.append(GCRemovalItem(
                    source=entry.source,
                    child_key=entry.label,
                    tokens_freed=entry.total_tokens(),
                    reason="preservable_under_pressure"
                ))
                tokens_freed += entry.total_tokens()

        # Apply removals to history
        new_history = self._apply_removals_to_history(history, removal_list, budget)

        return new_history, GCResult(
            success=True,
            items_collected=len(removal_list),
            tokens_before=current_tokens,
            tokens_after=current_tokens - tokens_freed,
            plugin_name=self.name,
            trigger_reason=reason,
            removal_list=removal_list,
            details={
                "enrichment_cleared": any(r.reason == "enrichment_bulk_clear" for r in removal_list),
                "ephemeral_removed": sum(1 for r in removal_list if r.reason == "ephemeral"),
                "partial_removed": sum(1 for r in removal_list if r.reason == "partial_turn"),
                "preservable_removed": sum(1 for r in removal_list if r.reason == "preservable_under_pressure"),
            }
        )

    # -- block 15

    def _apply_removals_to_history(self, history, removal_list, budget):
        """Remove messages from history based on removal list."""

        # Collect all message IDs to remove
        ids_to_remove = set()
        for item in removal_list:
            entry = budget.get_child(item.source, item.child_key)
            if entry and entry.message_ids:
                ids_to_remove.update(entry.message_ids)

        # Filter history
        return [msg for msg in history if msg.message_id not in ids_to_remove]

    # -- what the blocks leave out

    def _entries(self, budget, policy):
        found = filter(None, map(budget.get_entry, InstructionSource))
        return [c for entry in found for c in entry.children.values() if c.gc_policy is policy]

    def _get_ephemeral_candidates(self, budget, exclude_enrichment):
        entries = self._entries(budget, GCPolicy.EPHEMERAL)
        return [e for e in entries if not exclude_enrichment or e.source != "enrichment"]

    def _get_partial_turn_candidates(self, budget, config):
        turns = [(e.label, e) for e in self._entries(budget, GCPolicy.PARTIAL)]
        return turns[: max(0, len(turns) - config.preserve_recent_turns)]

    def _get_preservable_candidates(self, budget):
        return self._entries(budget, GCPolicy.PRESERVABLE)


def filled():
    """Return a history and its budget: 12 turns of 70 tokens, a summary, a schema and enrichment."""
    history, budget = [], InstructionBudget(context_limit=1_100)
    add, talk = budget.add_child, InstructionSource.CONVERSATION
    add(InstructionSource.SYSTEM, "prompt", 50, GCPolicy.LOCKED, label="prompt")
    add(InstructionSource.ENRICHMENT, "docs", 150, GCPolicy.EPHEMERAL, label="docs")
    add(InstructionSource.PLUGIN, "deploy", 20, GCPolicy.EPHEMERAL, label="deploy", created_at=1.0)
    for number in range(12):
        messages = [Message("user", [Part(text="?")]), Message("assistant", [Part(text="!")])]
        policy = {0: GCPolicy.LOCKED, 2: GCPolicy.EPHEMERAL, 4: GCPolicy.PRESERVABLE}.get(number)
        add(
            talk, f"turn_{number}", 70, policy or GCPolicy.PARTIAL, label=f"turn_{number}",
            created_at=2.0 + number, message_ids=[message.message_id for message in messages],
        )
        history += messages
    return history, budget


# -- theirs and ours agree, phase by phase

ours = load_gc_plugin("gc_budget", {"notify_on_gc": False})
for target in (80.0, 70.0, 60.0, 40.0, 30.0, 20.0):
    history, budget = filled()
    config = GCConfig(target_percent=target, preserve_recent_turns=3)
    usage = {"percent_used": budget.utilization(), "context_limit": budget.context_limit}
    arguments = (history, usage, config, GCTriggerReason.THRESHOLD, budget)
    (left, said), (kept, told) = Theirs().collect(*arguments), ours.collect(*arguments)

    def listed(result):
        return sorted((i.source, i.child_key or "", i.tokens_freed, i.reason) for i in result.removal_list)

    assert said.details["enrichment_cleared"] == told.details["enrichment_cleared"]
    # Ours keeps room for the note that says what left, so it may take one turn more.
    assert set(listed(said)) <= set(listed(told)) and len(listed(told)) - len(listed(said)) <= 1
    assert {m.message_id for m in kept} <= {m.message_id for m in left}
    assert told.tokens_after == told.tokens_before - sum(i.tokens_freed for i in told.removal_list)
