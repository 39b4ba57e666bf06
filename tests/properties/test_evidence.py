"""P26: the reason shown is the evidence that decided; without it the segment stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from ctxgc import ContextSegment, GCConfig, GCEngine, PruningCandidate, PruningPlan, Session
from ctxgc.collector.calls import read_call
from ctxgc.collector.liveness import Clues, evidence, evidence_for
from ctxgc.collector.reader import Item
from ctxgc.collector.worth import Census, whole
from ctxgc.core import EngineOptions, Text
from tests.collector.agent import HOW, view_of
from tests.examples import one_in
from tests.properties import heaps
from tests.strategies.build import rows, step

# -- for the price: a naive judge of what speaks against a view -------------------------------------

READ = read_call("Read", '{"file_path": "src/a.py"}')
EDIT = read_call("Edit", '{"file_path": "src/a.py"}')
OTHER = read_call("Edit", '{"file_path": "src/b.py"}')

HAPPENINGS = st.lists(st.sampled_from(["read", "edit", "other", "nothing"]), max_size=30)


def _verdict(happenings: list[str], *, copied: bool) -> tuple[str | None, Item, Clues, int]:
    clues, census = Clues(), Census()
    item = Item("m", 0, Text(view_of(0, 0, 10)), kind="view", call=READ, born=1)
    for _ in range(2 if copied else 1):
        census.enter(whole(item.text), new=True)
    for request, happening in enumerate(happenings, 1):
        if happening != "nothing":
            clues.call({"read": READ, "edit": EDIT, "other": OTHER}[happening], request)
    request = len(happenings) + 1
    found, _ = evidence(item, clues, census, HOW, request)
    return found, item, clues, request


def _speaks_against(happenings: list[str], *, copied: bool) -> set[str]:
    """All that speaks against a view of src/a.py that request 1 carried, found in the plainest way."""
    request = len(happenings) + 1
    if request == 1:
        return set()
    named = [n for n, what in enumerate(happenings, 1) if what in ("read", "edit")]
    idle = request - max(named, default=0) - 1
    found = {"elsewhere"} if copied else set()
    if "edit" in happenings:
        return {"edited"} if idle >= 1 else set()
    return found | ({"idle"} if min(request - 1, idle) >= HOW.hold else set())


@given(HAPPENINGS, st.booleans())
def test_a_view_leaves_for_the_price_only_by_evidence_that_is_there(
    happenings: list[str], copied: bool
) -> None:
    found, item, clues, request = _verdict(happenings, copied=copied)
    against = _speaks_against(happenings, copied=copied)
    assert (found in against) if against else found is None
    if found is None:
        return
    said = evidence_for(item, found, clues, request)
    if said.kind == "idle":
        still = _verdict([*happenings[:-1], "read"], copied=copied)[0]
        assert still is None
        assert said.requests == min(request - 1, clues.idle(item, request))
    elif said.kind == "copy":
        assert _verdict(happenings, copied=False)[0] in (None, "idle")
    else:
        assert happenings[said.request - 1] == "edit"
        unedited = ["other" if what == "edit" else what for what in happenings]
        assert _verdict([*unedited[:-1], "read"], copied=copied)[0] in (None, "elsewhere")


# -- for room --------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(5, 60), min_size=4, max_size=10)
CONFIG = GCConfig(auto_recall=False, recent_messages=1, recent_files=0, preserve_recent_turns=0)


def _session(sizes: list[int], again: int | None = None) -> Session:
    """A session that views one file after the other; one of them twice."""
    session = Session(50_000, config=CONFIG, store="memory:", handle_key=b"the same for all")
    session.append({"role": "user", "content": "Fix the pool."})
    for number, size in enumerate(sizes):
        session.extend(step(number, rows(f"x{number}", size), path=f"src/pool_{number}.py"))
    if again is not None:
        shown = rows(f"x{again}", sizes[again])
        session.extend(step(len(sizes), f"{shown}\nend", path=f"src/pool_{again}.py"))
    return session


def _left(plan: PruningPlan) -> dict[str, str]:
    return {c.segment_id: c.evidence.kind for c in plan.candidates}


@one_in(4)
@given(SIZES, st.integers(10, 90))
def test_what_leaves_as_unreachable_stays_once_a_root_names_it(
    sizes: list[int], percent: int
) -> None:
    with _session(sizes) as session:
        target = session.usage().total_tokens * percent // 100
        heap = session.inspect().heap
        gone = [i for i, kind in _left(session.plan(target)).items() if kind == "unreachable"]
        views = [heap.get(i) for i in gone if heap.get(i).part == "tool_result"]
        for segment in views[:2]:
            session.set_active_file(segment.file_path)
            assert segment.segment_id not in _left(session.plan(target))
        session.set_active_file(None)


@one_in(4)
@given(SIZES, st.integers(10, 90))
def test_what_leaves_only_for_room_stays_when_there_is_room(sizes: list[int], percent: int) -> None:
    with _session(sizes) as session:
        total = session.usage().total_tokens
        plan = session.plan(total * percent // 100)
        assert all(candidate.reason == str(candidate.evidence) for candidate in plan.candidates)
        assert len(session.plan(total)) == 0


@one_in(4)
@given(SIZES, st.data())
def test_what_leaves_as_superseded_stays_if_nothing_newer_took_its_place(
    sizes: list[int], data: st.DataObject
) -> None:
    again = data.draw(st.integers(0, len(sizes) - 2))
    sizes[again] = 60
    with _session(sizes, again) as session:
        target = session.usage().total_tokens - 100
        plan = session.plan(target)
        (candidate,) = plan.candidates
        assert candidate.evidence.kind == "superseded"
        assert candidate.evidence.by == f"the read of src/pool_{again}.py"
    with _session(sizes) as session:
        # The same room is there without the newer view, and nothing has to leave for it.
        assert len(session.plan(max(target, session.usage().total_tokens))) == 0


# -- in the engine ---------------------------------------------------------------------------------


def _plan(segments: list[ContextSegment], options: EngineOptions, need: int | None) -> PruningPlan:
    return GCEngine(options).plan(heaps.heap_of(segments), now=heaps.NOW, free_tokens=need)


def _plan_without(
    segments: list[ContextSegment], options: EngineOptions, candidate: PruningCandidate
) -> PruningPlan:
    """The plan for all garbage of the same heap, but for what decided about one candidate."""
    name, heap = candidate.segment_id, heaps.heap_of(segments)
    if candidate.evidence.kind == "unreachable":
        heap.add(
            ContextSegment(segment_id="root", text="a", type="note", pinned=True, references=[name])
        )
    else:
        force_setattr(heap.get(name), "superseded_by", None)
    return GCEngine(options).plan(heap, now=heaps.NOW)


@given(
    heaps.segment_lists(), heaps.options(), st.one_of(st.none(), st.integers(0, 4_000)), st.data()
)
def test_what_leaves_an_engine_stays_without_its_evidence(
    segments: list[ContextSegment], options: EngineOptions, need: int | None, data: st.DataObject
) -> None:
    plan = _plan(segments, options, need)
    assert all(str(c.evidence) == c.reason for c in (*plan.candidates, *plan.proposals))
    if not plan.candidates:
        return
    chosen = data.draw(st.sampled_from(plan.candidates))
    if chosen.evidence.kind == "least_worth":
        assert chosen.evidence.tokens == need
        with_room = _plan(segments, options, None)
        # A superseded result leaves a stub while there is room, and with its bond when there is not.
        stubs = () if chosen.reachable else with_room.evacuate_segments
        assert chosen.segment_id not in {c.segment_id for c in with_room.candidates}.difference(
            stubs
        )
    else:
        without = _plan_without(segments, options, chosen)
        assert chosen.segment_id not in {c.segment_id for c in without.candidates}
