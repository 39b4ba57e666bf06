"""Segments leave because an agent said so, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.errors import CheckpointError, InputError, UnknownSegmentError
from ctxgc.mcp import NewSegment
from ctxgc.stores import SearchFilters
from tests.mcp.contexts import QUIET, everything, filled, log, make, opened, put
from tests.requirements import requirement


@requirement(
    "S0.tools.prune",
    "S0.tools.prune-strategy-stash",
    "S0.tools.prune-report",
    "S0.tools.prune-savings",
    "S0.behavior.before-after",
    "S0.behavior.approve-specific",
)
def test_the_named_segments_are_stashed_and_the_answer_says_so() -> None:
    service = make()
    ids = filled(service, 40)
    done = service.prune([ids[3], ids[5]], strategy="stash")
    assert done == {
        "collection": 1,
        "trigger": "prune",
        "stashed": [ids[3], ids[5]],
        "deleted": [],
        "tokens_saved": 20,
        "usage": {
            "before": 400, "after": 380, "context_limit": 1_000, "percent": 38.0, "zone": "safe",
        },
        "next": "context_recall(handle) brings a stashed segment back",
    }  # fmt: skip
    assert service.recall(ids[3])["text"] == log(3).text


@requirement("S0.tools.prune-strategy-delete", "S0.behavior.delete-reserved")
def test_deleting_needs_to_be_confirmed_and_is_for_good() -> None:
    store = opened()
    service = make(store)
    ids = filled(service, 40)
    service.checkpoint("before")
    before = everything(store)

    with pytest.raises(InputError) as caught:
        service.prune([ids[3]], strategy="delete")
    assert caught.value.details["field"] == "confirm"
    assert caught.value.details["segment_ids"] == [ids[3]]
    assert everything(store) == before

    done = service.prune([ids[3]], strategy="delete", confirm=True)
    assert (done["deleted"], done["stashed"], done["tokens_saved"]) == ([ids[3]], [], 10)
    assert log(3).text not in str(everything(store))
    with pytest.raises(UnknownSegmentError):
        service.recall(ids[3])
    with pytest.raises(CheckpointError, match="no checkpoint"):
        service.restore("before")


def test_a_stashed_segment_can_be_deleted_too_and_its_stub_goes_with_it() -> None:
    service = make(limit=100_000)
    big = NewSegment(text="\n".join(["nothing new here"] * 200), type="log", name="big")
    put(service, big, NewSegment(text="see big", references=("big",)))
    service.pin(["see big"], None, pinned=True)
    put(service, *[log(n) for n in range(1, 12)])
    evacuated = service.analyze(dry_run=False, target_tokens=150)["replaced"]
    (original, stub), *rest = evacuated.items()
    assert not rest
    assert f'context_recall(handle="{original}")' in service.segment(stub)["text"]

    done = service.prune([original], strategy="delete", confirm=True)

    assert sorted(done["deleted"]) == sorted([original, stub])
    assert service.usage()["segments"]["stashed"]["segments"] == 1


@requirement("S0.tools.prune-strategy-auto", "S0.behavior.stash-by-default")
def test_auto_deletes_only_confirmed_unreachable_copies_and_stashes_the_rest() -> None:
    service = make()
    first, second = put(service, log(1, 14), log(2))
    copy = put(service, NewSegment(text=log(1, 14).text, type="log", task_id="again"))[0]
    put(service, *[log(n) for n in range(10, 22)])

    uncertain = service.prune([first], strategy="auto", dry_run=True)
    assert (uncertain["would_stash"], uncertain["would_delete"]) == ([first], [])

    done = service.prune([first, second], strategy="auto", confirm=True)
    assert (done["deleted"], done["stashed"]) == ([first], [second])
    assert service.recall(copy)["text"] == log(1, 14).text


def test_without_a_strategy_segments_are_stashed() -> None:
    service = make()
    ids = filled(service, 20)
    assert service.prune([ids[0]])["stashed"] == [ids[0]]


@requirement("S0.behavior.pin-protects", "S0.platform.working-state")
def test_pins_and_what_the_host_works_on_stay_whoever_asks() -> None:
    service = make()
    put(
        service,
        log(1, name="pinned"),
        log(2, name="in task", task_id="t1"),
        log(3, name="active", file_path="src/a.py", line_range=(10, 20)),
        log(4, name="open", file_path="src/b.py"),
        log(5, name="breakpoint", file_path="src/c.py", line_range=(1, 9)),
        log(6, name="elsewhere", file_path="src/c.py", line_range=(50, 60)),
    )
    service.pin(["pinned"], None, pinned=True)
    service.task(
        {
            "task_id": "t1",
            "active_file": "src/a.py",
            "line_range": (15, 15),
            "open_files": ["src/b.py", "src/c.py:5"],
        }
    )
    names = ["pinned", "in task", "active", "open", "breakpoint", "elsewhere"]
    for ask in ({"strategy": "stash"}, {"strategy": "delete", "confirm": True}):
        kept = service.prune(names[:-1], **ask)  # type: ignore[arg-type]
        assert sorted(kept["kept"].values()) == [
            "active file", "breakpoint", "current task", "open file", "pinned: unpin it first",
        ]  # fmt: skip
        assert kept["tokens_saved"] == 0
    assert service.prune(["elsewhere"])["tokens_saved"] == 10


def test_a_query_takes_what_no_root_holds_and_needs_every_word() -> None:
    service = make()
    put(service, *[NewSegment(text=f"pytest output number {n}", type="log") for n in range(5)])
    put(service, NewSegment(text="pytest is our test runner", type="decision"))
    put(service, *[log(n) for n in range(12)])
    done = service.prune(query="pytest output")
    assert len(done["stashed"]) == 5
    with pytest.raises(UnknownSegmentError):
        service.prune(query="pytest nowhere")


def test_names_handles_and_words_work_where_ids_do() -> None:
    service = make()
    first, second, third = put(
        service, log(1, name="alpha"), log(2), NewSegment(text="the quick brown fox", type="log")
    )
    put(service, *[log(n) for n in range(10, 22)])
    handle = service.segment(second)["handle"]
    done = service.prune(["alpha", handle, "brown fox"])
    assert done["stashed"] == [first, second, third]
    assert done["found_by_words"] == {"brown fox": third}


@pytest.mark.parametrize(
    "ask",
    [{}, {"query": "x", "plan_id": "y"}, {"references": ["a"], "query": "b"}],
)
def test_what_to_prune_is_named_in_exactly_one_way(ask: dict[str, Any]) -> None:
    service = make()
    filled(service, 20)
    with pytest.raises(InputError, match="exactly one way"):
        service.prune(**ask)


def test_a_dry_run_of_pruning_changes_nothing_and_tells_what_would() -> None:
    store = opened()
    service = make(store)
    ids = filled(service, 20)
    before = everything(store)
    told = service.prune([ids[0]], strategy="delete", dry_run=True)
    assert told["would_delete"] == [ids[0]]
    assert told["usage"]["after"] == 190
    assert everything(store) == before


def test_a_call_and_its_result_leave_together() -> None:
    service = make()
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a long output"},
    ]
    ids = service.ingest((), messages)["segment_ids"]
    put(service, *[log(n) for n in range(12)])
    assert sorted(service.prune([ids[1]])["stashed"]) == sorted(ids)


def test_collections_are_kept_in_a_history_with_their_reasons() -> None:
    service = make()
    ids = filled(service, 40)
    service.prune([ids[0]])
    service.prune([ids[1]])
    history = service.collections(10)
    assert [c["number"] for c in history["collections"]] == [2, 1]
    assert history["collections"][1]["stashed"] == [ids[0]]
    assert "asked for" in history["collections"][1]["reasons"][ids[0]]


def test_what_was_pruned_is_found_again() -> None:
    service = make()
    ids = filled(service, 20)
    service.prune([ids[3]])
    hits = service.search("log3", SearchFilters(tier="stashed"), 5, 0)["hits"]
    assert [hit["segment_id"] for hit in hits] == [ids[3]]


def _anthropic(number: int) -> list[dict[str, Any]]:
    """A request, a call that shares its message with a text, its result, and an answer."""
    call = {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {"n": number}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": log(number, 50).text}
    return [
        {"role": "user", "content": [{"type": "text", "text": f"go on {number}"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "look"}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": f"done {number}"},
    ]


def test_a_result_is_deleted_whose_call_stays_with_the_text_of_its_message() -> None:
    store = opened()
    service = make(store)
    ids = [i for n in range(4) for i in service.ingest((), _anthropic(n))["segment_ids"]]
    call, result = ids[7], ids[8]
    told = service.prune([result], strategy="delete", dry_run=True)
    done = service.prune([result], strategy="delete", confirm=True)
    assert told["would_delete"] == done["deleted"] == [result]
    assert told["kept"] == done["kept"] == {call: "a tool_call that its message needs"}
    assert told["usage"]["after"] == done["usage"]["after"]
    assert log(1, 50).text not in str(everything(store))


@pytest.mark.parametrize("stub", ["tombstone", "summary"])
def test_the_original_behind_a_stub_is_deleted_with_the_stub(stub: str) -> None:
    store = opened()
    service = make(store)
    ids = [i for n in range(4) for i in service.ingest((), _anthropic(n))["segment_ids"]]
    result = ids[8]
    if stub == "summary":
        draft = service.draft([result], None)
        service.compress(draft, service.summarise(draft, "in short"))
    else:
        service.prune([result])
    told = service.prune([result], strategy="delete", dry_run=True)
    done = service.prune([result], strategy="delete", confirm=True)
    assert told["would_delete"] == done["deleted"]
    assert result in done["deleted"]
    assert told["usage"]["after"] == done["usage"]["after"]
    assert log(1, 50).text not in str(everything(store))
    with pytest.raises(UnknownSegmentError):
        service.segment(result)


def test_what_cannot_leave_is_kept_with_the_reason_in_a_dry_run_too() -> None:
    service = make(config=QUIET.replace(recent_messages=0, recent_user_messages=0))
    ids = [i for n in range(4) for i in service.ingest((), _anthropic(n))["segment_ids"]]
    look = ids[6]
    told, done = service.prune([look], dry_run=True), service.prune([look])
    assert told["would_stash"] == done["stashed"] == []
    assert (
        told["kept"]
        == done["kept"]
        == {look: "the view would be invalid without it, and a stub in its place no shorter"}
    )


def test_a_prune_accounts_for_all_that_is_named() -> None:
    service = make(config=QUIET.replace(recent_messages=0, recent_user_messages=0))
    ids = [i for n in range(5) for i in service.ingest((), _anthropic(n))["segment_ids"]]
    told, done = service.prune(ids, dry_run=True), service.prune(ids)
    assert sorted(told["would_stash"]) == sorted(done["stashed"])
    assert sorted([*done["stashed"], *done["kept"]]) == sorted(ids)
    assert told["usage"]["after"] == done["usage"]["after"]
