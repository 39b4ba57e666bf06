"""Faults of a context: what is recalled makes its like stay longer, and too much of it stops the steps."""

from __future__ import annotations

from ctxgc.config import GCConfig
from ctxgc.guard.monitor import FIRST_PAUSE, LEAST_BACK
from ctxgc.mcp import ContextService, NewSegment
from tests.mcp.contexts import log, make, opened

EAGER = GCConfig.from_dict({"recent_messages": 1, "recent_files": 0})


def views(count: int, path: str) -> list[NewSegment]:
    texts = (f"{path} {n} " + "word " * 8 for n in range(count))
    return [NewSegment(text=text, type="log", file_path=path) for text in texts]


def left(service: ContextService, *given: NewSegment) -> list[str]:
    """Ingest segments; return what a collection moved out for them."""
    done = service.ingest(given, ())
    found: list[str] = done["collected"]["stashed"] if "collected" in done else []
    return found


def insist(service: ContextService, number: int = 0) -> int:
    """Recall all that leaves until nothing does; return how many segments came in."""
    for arrival in range(number, number + 200):
        gone = left(service, log(arrival))
        for segment_id in gone:
            service.recall(segment_id)
        if arrival > number + 80 and not gone:
            return arrival + 1
    raise AssertionError("it goes on and on")


def leave(service: ContextService) -> list[str]:
    """Fill a context step by step; return what left."""
    batches = [[log(n) for n in range(start, start + 10)] for start in range(0, 80, 10)]
    return [segment_id for batch in batches for segment_id in left(service, *batch)]


def test_small_steps_spare_the_like_of_what_was_recalled() -> None:
    service, other = make(config=EAGER), make(config=EAGER)
    for each in (service, other):
        first, *like = each.ingest(views(9, "a.py"), ())["segment_ids"]
        each.prune([first])
    service.recall(first, lines=(1, 1))
    assert set(like).isdisjoint(leave(service))
    assert not set(like).isdisjoint(leave(other))
    assert service.usage()["usage"]["tokens"] <= 700


def test_an_agent_that_recalls_all_that_left_has_its_peace_for_a_while() -> None:
    service = make(config=EAGER)
    number = insist(service)
    assert all(left(service, log(1_000 + n, words=1)) == [] for n in range(FIRST_PAUSE - 2))
    assert number > LEAST_BACK


def test_the_peace_and_the_ghosts_survive_a_restart_of_the_server() -> None:
    store = opened()
    service = make(store, config=EAGER)
    only = service.ingest(views(1, "a.py"), ())["segment_ids"][0]
    service.prune([only])
    service.recall(only)
    insist(service)
    again = make(store, config=EAGER)
    assert left(again, log(1_000, words=1)) == []
    known = again._lock.ask(lambda context: context.parts.state)
    assert list(known.ghosts.to_doc()) == ["file a.py"]
    assert known.thrashing.to_doc()["paused_until"] > 0


def test_the_hard_limit_is_kept_during_the_peace_and_room_is_made_more_deeply() -> None:
    calm, thrashing = make(config=EAGER), make(config=EAGER)
    for number in range(69):
        calm.ingest([log(number)], ())
    insist(thrashing)
    sizes = []
    for service in (calm, thrashing):
        done = service.ingest([log(2_000 + n) for n in range(30)], ())
        assert done["collected"]["trigger"] == "hard limit"
        sizes.append(done["usage"]["after"])
    assert sizes[1] <= 450 < sizes[0] <= 600
