"""S0 4.2, block 4: the mark phase; `compute_reachability` of ours reaches the same."""

from ctxgc import ContextSegment, GCEngine, Heap

heap = Heap()
heap.add_all([
    ContextSegment(segment_id="root", text="the request", type="message", references=["a"]),
    ContextSegment(segment_id="a", text="its plan", type="note", references=["b"]),
    ContextSegment(segment_id="b", text="a step", type="note", references=["a"]),  # a cycle
    ContextSegment(segment_id="c", text="noise", type="log", references=["b"]),
])
references = heap.references

# -- the block


def mark_reachable(roots: set[str]) -> set[str]:
    reachable: set[str] = set()
    stack: list[str] = list(roots)

    while stack:
        seg_id = stack.pop()
        if seg_id in reachable:
            continue
        reachable.add(seg_id)
        for child_id in references.get(seg_id, ()):
            if child_id not in reachable:
                stack.append(child_id)

    return reachable


# -- ours

for roots in (set(), {"root"}, {"b"}, {"c"}, {"a", "c"}):
    assert GCEngine().compute_reachability(roots, references) == mark_reachable(roots)
assert mark_reachable({"root"}) == {"root", "a", "b"}
