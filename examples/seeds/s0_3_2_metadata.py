"""S0 3.2, block 2: the reference graph and the lookup are those of a heap."""

from collections.abc import Mapping

from ctxgc import ContextSegment, Heap

heap = Heap()
heap.add(ContextSegment(segment_id="a", text="the plan", type="note"))
heap.add(ContextSegment(segment_id="b", text="a step of it", type="note", references=["a"]))

# -- the block

# Reachability graph (lightweight)
references: dict[str, set[str]] = heap.references  # from_id -> {to_id, ...}
backrefs: dict[str, set[str]] = heap.backrefs      # to_id   -> {from_id, ...}

# Segment lookup
segments: Mapping[str, ContextSegment] = heap.segments

# -- what they hold

assert references == {"b": {"a"}}
assert backrefs == {"a": {"b"}}
assert list(segments) == ["a", "b"]
assert segments["a"].refcount == 1
