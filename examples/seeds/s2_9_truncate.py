"""S2 "gc_truncate", block 9: their removal list, in a Session of ours, and the list of our gc_truncate."""

from typing import NamedTuple

from ctxgc import GCRemovalItem, GCResult, InstructionSource, Session, load_gc_plugin
from ctxgc.collector import turn_ids


class Turn(NamedTuple):
    index: int
    messages: list
    estimated_tokens: int


def split_into_turns(history):
    by_id = {message.message_id: message for message in history}
    turns = [[by_id[i] for i in ids] for ids in turn_ids(history)]
    return [Turn(n, turn, sum(len(m.text()) // 4 for m in turn)) for n, turn in enumerate(turns)]


class Theirs:
    name = "gc_theirs"

    def initialize(self, config=None):
        """Take no options."""

    def shutdown(self):
        """Hold nothing."""

    def should_collect(self, context_usage, config):
        return False, None

    # -- the block

    def collect(self, history, context_usage, config, reason, budget=None):
        # ... existing logic ...
        turns = split_into_turns(history)
        preserved_indices = {0, *(turn.index for turn in turns[-3:])}
        new_history = [m for turn in turns if turn.index in preserved_indices for m in turn.messages]

        removal_list = []
        for turn in turns:
            if turn.index not in preserved_indices:
                removal_list.append(GCRemovalItem(
                    source=InstructionSource.CONVERSATION,
                    child_key=f"turn_{turn.index}",
                    tokens_freed=turn.estimated_tokens,
                    reason="truncated"
                ))

        result = GCResult(
            # ... existing fields ...
            success=True, items_collected=len(removal_list),
            tokens_before=context_usage["total_tokens"], tokens_after=0,
            plugin_name=self.name, trigger_reason=reason,
            removal_list=removal_list
        )
        return new_history, result


# -- ours: the session understands `turn_3`, and lists what left by message, with true tokens

with Session(8_000, store="memory:", plugin=Theirs()) as session:
    for number in range(8):
        session.append({"role": "user", "content": f"Question {number} " + "word " * 20})
        session.append({"role": "assistant", "content": f"Answer {number} " + "word " * 20})
    before = session.history
    result = session.collect()
    assert (result.success, result.error) == (True, None)
    assert [item.message_ids[0] for item in result.removal_list] == [m.message_id for m in before[2:10]]
    assert {item.reason for item in result.removal_list} == {"truncated"}
    assert session.history == [*before[:2], *before[10:]]
    assert result.tokens_after == session.budget.total_tokens()

    # Without a budget, a whole turn has the name that the block gives it.
    plugin = load_gc_plugin("gc_truncate", {"preserve_recent_turns": 3, "notify_on_gc": False})
    usage = {"context_limit": 1, "percent_used": 100.0}
    _, result = plugin.collect(before, usage, session.config, result.trigger_reason)
    keys = [item.child_key for item in result.removal_list]
    assert keys == [before[1].message_id, "turn_1", "turn_2", "turn_3", "turn_4"]
