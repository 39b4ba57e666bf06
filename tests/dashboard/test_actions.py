"""Actions on sessions: each does what it says, and is undone where that can be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.session import Store, open_stored, utc_now
from tests.dashboard.places import RECORDED, Page, dashboard, memory, recorded, worked

ROW = "stored.s"
Json = dict[str, Any]


@pytest.fixture
def store() -> Store:
    """A store with a session that worked for a while."""
    found = memory()
    worked(found)
    return found


def view(store: Store) -> list[Json]:
    """Return what the session in a store shows."""
    return open_stored(store, "s", utc_now()).view()


def a_result(store: Store, *, tier: str = "working") -> str:
    """Return the id of a tool result that came in whole."""
    segments = open_stored(store, "s", utc_now()).segments()
    return next(
        s.segment_id
        for s in segments
        if s.part == "tool_result" and s.tier == tier and s.derived_from is None
    )


def undone(page: Page, answer: Json) -> Json:
    """Undo an action with what its answer says, and return the answer to that."""
    assert answer.get("ok") is True, answer
    again = page.act(ROW, answer["undo"]["action"], answer["undo"]["body"])
    assert again.get("ok") is True, again
    found: Json = again
    return found


def pinned(store: Store) -> set[str]:
    return {s.segment_id for s in open_stored(store, "s", utc_now()).segments() if s.pinned}


def test_a_pin_is_made_and_undone(store: Store) -> None:
    page, segment = Page(dashboard(store)), a_result(store)
    answer = page.act(ROW, "pin", {"segment": segment})
    label = page.get(f"api/sessions/{ROW}/segments/{segment}")["seg"]["label"]
    assert answer["done"] == f"{label} ({segment}) is pinned: no collection removes it."
    assert label.startswith("/repo/f")
    assert segment in pinned(store)
    undone(page, answer)
    assert pinned(store) == set()


def test_a_segment_that_is_put_away_is_in_the_stash_and_comes_back_whole(store: Store) -> None:
    page, segment, before = Page(dashboard(store)), a_result(store), view(store)
    answer = page.act(ROW, "stash", {"segment": segment})
    assert view(store) != before
    detail = page.get(f"api/sessions/{ROW}/segments/{segment}")
    assert detail["handle"].startswith("h-")
    undone(page, answer)
    assert view(store) == before


def test_a_recall_by_handle_is_undone(store: Store) -> None:
    page, segment = Page(dashboard(store)), a_result(store, tier="stashed")
    before = len(json.dumps(view(store)))
    handle = page.get(f"api/sessions/{ROW}/segments/{segment}")["handle"]
    answer = page.act(ROW, "recall", {"handle": handle})
    assert len(json.dumps(view(store))) > before
    undone(page, answer)
    assert len(json.dumps(view(store))) < before + 1_000


def test_a_collection_reaches_its_target_and_is_undone_and_that_is_undone_too(store: Store) -> None:
    page, before = Page(dashboard(store)), view(store)
    answer = page.act(ROW, "collect", {"target": 4_000})
    after = view(store)
    assert len(after) < len(before) or json.dumps(after) != json.dumps(before)
    again = undone(page, answer)
    assert view(store) == before
    undone(page, again)
    assert view(store) == after


def test_a_checkpoint_is_listed_and_restored_and_the_restore_undone(store: Store) -> None:
    page, before = Page(dashboard(store)), view(store)
    assert page.act(ROW, "checkpoint", {"label": "mine"})["ok"] is True
    made = page.get(f"api/sessions/{ROW}")["checkpoints"][-1]
    assert made["label"] == "mine"
    page.act(ROW, "collect", {"target": 4_000})
    after = view(store)
    answer = page.act(ROW, "restore", {"checkpoint": made["id"]})
    assert view(store) == before
    undone(page, answer)
    assert view(store) == after


def test_a_policy_is_changed_and_undone(store: Store) -> None:
    page, segment = Page(dashboard(store)), a_result(store)
    before = page.get(f"api/sessions/{ROW}/segments/{segment}")["seg"]["policy"]
    answer = page.act(ROW, "policy", {"segment": segment, "policy": "preservable"})
    assert page.get(f"api/sessions/{ROW}/segments/{segment}")["seg"]["policy"] == "preservable"
    undone(page, answer)
    assert page.get(f"api/sessions/{ROW}/segments/{segment}")["seg"]["policy"] == before


def test_an_export_has_the_session_without_its_keys(store: Store) -> None:
    key = "sk-ant-api03-" + "Zq9" * 31 + "AA"
    session = open_stored(store, "s", utc_now())
    session.append({"role": "assistant", "content": f"the key is {key}"})
    session.flush()
    file = Page(dashboard(store)).act(ROW, "export")["file"]
    assert file["name"] == f"{ROW}.jsonl"
    assert "fix the bug" in file["text"]
    assert key not in file["text"]


@pytest.mark.parametrize(
    ("action", "body", "said"),
    [
        ("pin", {}, "segment must be a text"),
        ("pin", {"segment": 5}, "segment must be a text"),
        ("pin", {"segment": "no such"}, "no such"),
        ("recall", {"handle": "h-aaaaaaaaaaaaaaaa"}, "no segment with the handle"),
        ("collect", {"target": -1}, "the target cannot be -1"),
        ("collect", {"target": True}, "the target cannot be True"),
        ("restore", {"checkpoint": "none"}, "none"),
        ("policy", {"segment": "s-1", "policy": "gone"}, "the policy cannot be 'gone'"),
        ("delete", {"segment": "s-1"}, "deleting is for good and must be confirmed"),
        ("explode", {}, "'explode' cannot be done"),
        ("continue_from", {"request": 3}, "'continue_from' cannot be done"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    store: Store, action: str, body: Json, said: str
) -> None:
    before = view(store)
    answer = Page(dashboard(store)).act(ROW, action, body)
    assert said in answer["error"]["message"]
    assert view(store) == before


def test_a_segment_that_is_deleted_is_gone_from_window_stash_and_checkpoints(store: Store) -> None:
    page, segment = Page(dashboard(store)), a_result(store)
    text = page.get(f"api/sessions/{ROW}/segments/{segment}")["text"].splitlines()[0]
    page.act(ROW, "checkpoint", {"label": "with the text"})
    assert text in page.act(ROW, "export")["file"]["text"]
    answer = page.act(ROW, "delete", {"segment": segment, "confirm": True})
    assert answer["done"] == (
        f"{segment} is deleted for good, in the window, the stash and every checkpoint."
    )
    assert answer["undo"] is None
    assert text not in page.act(ROW, "export")["file"]["text"]
    assert segment not in {s.segment_id for s in open_stored(store, "s", utc_now()).segments()}
    checkpoints = page.get(f"api/sessions/{ROW}")["checkpoints"]
    assert "with the text" not in {each["label"] for each in checkpoints}


def test_a_root_is_not_put_away_or_deleted(store: Store) -> None:
    page, segment = Page(dashboard(store)), a_result(store)
    page.act(ROW, "pin", {"segment": segment})
    answer = page.act(ROW, "stash", {"segment": segment})
    assert f"{segment} stays" in answer["error"]["message"]
    answer = page.act(ROW, "delete", {"segment": segment, "confirm": True})
    assert answer["error"]["message"] == f"'{segment}' is pinned"


def test_a_recorded_session_goes_on_from_before_its_compaction(home: Path) -> None:
    path = recorded(home, compact_after=4)
    before, page, row = path.read_bytes(), Page(dashboard()), f"recorded.{RECORDED}"
    assert page.get(f"api/sessions/{row}")["actions"] == ["continue_from"]
    requests = page.get(f"api/sessions/{row}/timeline")["requests"]
    n = next(each["n"] for each in requests if "compaction" in each["marks"])
    answer = page.act(row, "continue_from", {"request": n})
    new = answer["undo"]["body"]["session"]
    assert new in answer["done"]
    earlier = page.get(f"api/sessions/recorded.{new}/timeline")["requests"]
    assert [each["tokens"] for each in earlier[:-1]] == [
        each["tokens"] for each in requests[: n - 1]
    ]
    assert path.read_bytes() == before
    assert page.act(row, "discard", answer["undo"]["body"])["ok"] is True
    assert [each.name for each in path.parent.rglob("*.jsonl")] == [path.name]


def test_a_session_that_its_agent_has_gone_on_with_is_not_discarded(home: Path) -> None:
    recorded(home, compact_after=4)
    page, row = Page(dashboard()), f"recorded.{RECORDED}"
    answer = page.act(row, "continue_from", {"request": 99})
    new = next((home / "claude").rglob(f"{answer['undo']['body']['session']}.jsonl"))
    new.write_bytes(new.read_bytes() + b"{}\n")
    assert (
        "has gone on since" in page.act(row, "discard", answer["undo"]["body"])["error"]["message"]
    )
    assert new.exists()
    refused = page.act(row, "discard", {"session": RECORDED})
    assert "no session" in refused["error"]["message"]
