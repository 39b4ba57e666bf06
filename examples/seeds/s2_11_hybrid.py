"""S2 "gc_hybrid", block 11: their list of ancient and middle turns, in a Session of ours, and ours.

Fault of the seed: the removal list is made and never put into the result; here it is.
"""

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
        ancient_turns, middle_turns = turns[1:3], turns[3:5]
        new_history = [m for turn in (turns[0], *turns[5:]) for m in turn.messages]
        result = GCResult(True, 4, context_usage["total_tokens"], 0, self.name, reason)

        removal_list = []

        # Ancient turns (truncated)
        for turn in ancient_turns:
            removal_list.append(GCRemovalItem(
                source=InstructionSource.CONVERSATION,
                child_key=f"turn_{turn.index}",
                tokens_freed=turn.estimated_tokens,
                reason="ancient_truncated"
            ))

        # Middle turns (summarized)
        for turn in middle_turns:
            removal_list.append(GCRemovalItem(
                source=InstructionSource.CONVERSATION,
                child_key=f"turn_{turn.index}",
                tokens_freed=turn.estimated_tokens,
                reason="middle_summarized"
            ))

        result.removal_list = removal_list
        return new_history, result


# -- ours: the same reasons


def reasons(result):
    return [item.reason for item in result.removal_list]


with Session(8_000, store="memory:", plugin=Theirs()) as session:
    for number in range(8):
        session.append({"role": "user", "content": f"Question {number} " + "word " * 20})
        session.append({"role": "assistant", "content": f"Answer {number} " + "word " * 20})
    before = session.history
    result = session.collect()
    assert (result.success, result.error) == (True, None)
    assert reasons(result) == ["ancient_truncated"] * 4 + ["middle_summarized"] * 4

    plugin = load_gc_plugin(
        "gc_hybrid",
        {"summarizer": lambda _: "In brief.", "preserve_recent_turns": 3, "summarize_middle_turns": 2},
    )
    session.undo()
    session.set_gc_plugin(plugin)
    result = session.collect(0)
    # The answer to the first request is ancient, too; the request itself stays.
    assert reasons(result) == ["ancient_truncated"] * 5 + ["middle_summarized"] * 4
