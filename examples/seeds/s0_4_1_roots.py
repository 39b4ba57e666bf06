"""S0 4.1, block 3: root computation; ours takes the same state, or finds the roots of a heap."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import ctxgc
from ctxgc import ContextSegment, GCEngine, GCState, Heap


@dataclass
class ServerState:
    current_task_segment_ids: set[str] = field(default_factory=set)
    last_n_message_ids: set[str] = field(default_factory=set)
    pinned_segment_ids: set[str] = field(default_factory=set)
    active_file_context_segment_ids: set[str] = field(default_factory=set)


# -- the block


def compute_roots(state: ServerState) -> set[str]:
    roots: set[str] = set()
    roots |= state.current_task_segment_ids
    roots |= state.last_n_message_ids  # sliding window
    roots |= state.pinned_segment_ids
    roots |= state.active_file_context_segment_ids
    return roots


# -- ours, on the same state

state = ServerState({"goal"}, {"m1", "m2"}, {"rule", "goal"}, {"cart"})
roots = GCEngine().compute_roots(state)
assert roots == compute_roots(state) == {"goal", "m1", "m2", "rule", "cart"}
assert roots.why("goal") == ("current task", "pinned")

# -- ours, on a heap that finds those ids itself

heap = Heap()
heap.add_all([
    ContextSegment(segment_id="goal", text="mend the cart", type="note", task_id="t1", pinned=True),
    ContextSegment(segment_id="m1", text="please", type="message", role="user"),
    ContextSegment(segment_id="m2", text="yes", type="message", role="assistant"),
    ContextSegment(segment_id="rule", text="no new packages", type="note", pinned=True),
    ContextSegment(segment_id="cart", text="class Cart: ...", type="code", file_path="cart.py"),
    ContextSegment(segment_id="noise", text="ok ok ok", type="log"),
])
found = GCState(heap=heap, now=datetime.now(UTC), current_task_id="t1", active_file="cart.py")
assert ctxgc.GCEngine().compute_roots(found) == compute_roots(state)
