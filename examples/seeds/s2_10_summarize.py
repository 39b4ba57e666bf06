"""S2 "gc_summarize", block 10: their removal list and the tokens of the summary, in a Session of ours.

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
        summarized_turns = turns[1:-3]
        summary_text = "They spoke of words."
        summary = {"role": "user", "content": summary_text}
        kept = [m for turn in turns[-3:] for m in turn.messages]
        new_history = [*turns[0].messages, summary, *kept]
        result = GCResult(
            True, len(summarized_turns), context_usage["total_tokens"], 0, self.name, reason
        )

        removal_list = []
        for turn in summarized_turns:
            removal_list.append(GCRemovalItem(
                source=InstructionSource.CONVERSATION,
                child_key=f"turn_{turn.index}",
                tokens_freed=turn.estimated_tokens,
                reason="summarized"
            ))

        # Add the summary as a new entry (handled by session)
        result.details["summary_tokens"] = estimate_tokens(summary_text)

        result.removal_list = removal_list
        return new_history, result


def estimate_tokens(text):
    return len(text) // 4


# -- ours: the same reason and the same detail; the session books the summary as a child

with Session(8_000, store="memory:", plugin=Theirs()) as session:
    for number in range(8):
        session.append({"role": "user", "content": f"Question {number} " + "word " * 20})
        session.append({"role": "assistant", "content": f"Answer {number} " + "word " * 20})
    before = session.history
    result = session.collect()
    assert (result.success, result.error) == (True, None)
    assert {item.reason for item in result.removal_list} == {"summarized"}
    assert [item.message_ids[0] for item in result.removal_list] == [m.message_id for m in before[2:10]]
    assert result.details["summary_tokens"] == 5
    assert session.view()[2] == {"role": "user", "content": "They spoke of words."}

    plugin = load_gc_plugin(
        "gc_summarize",
        {"summarizer": lambda _: "In brief.", "preserve_recent_turns": 3, "notify_on_gc": False},
    )
    session.undo()
    session.set_gc_plugin(plugin)
    result = session.collect(0)
    summary = session.budget.get_child(InstructionSource.CONVERSATION, "gc_summary_1")
    assert {item.reason for item in result.removal_list} == {"summarized"}
    assert (summary.tokens, summary.label) == (result.details["summary_tokens"], "Context Summary")
