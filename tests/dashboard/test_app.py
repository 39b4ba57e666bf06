"""The server of the dashboard: who may call, and what its answers hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from ctxgc.dashboard.app import MOST_BYTES, PATH, csrf_of
from ctxgc.dashboard.changes import SessionChanges, events
from ctxgc.insight import analyze_transcript, open_transcript
from ctxgc.session import Store
from tests.dashboard.places import (
    HOST,
    RECORDED,
    TOKEN,
    Page,
    dashboard,
    memory,
    recorded,
    worked,
)

ROW = "stored.s"
KEY = "sk-ant-api03-" + "Zq9" * 31 + "AA"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[2J"


@pytest.fixture
def store() -> Store:
    """A store with a session that worked for a while."""
    found = memory()
    worked(found)
    return found


# -- Who may call


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:9"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"cookie": ""}, 401),
        ({"cookie": "ctxgc_dashboard_8788=guessed"}, 401),
        ({"cookie": f"ctxgc_dashboard_9={TOKEN}"}, 401),
        ({"cookie": "", "authorization": f"Basic {TOKEN}"}, 401),
        ({"cookie": "", "authorization": f"Bearer {TOKEN}"}, 200),
        ({"origin": f"http://{HOST}"}, 200),
    ],
)
def test_only_the_owner_reads_from_this_origin(headers: dict[str, str], status: int) -> None:
    answer = Page(dashboard()).call("GET", "api/sessions", headers=headers)
    assert answer.status_code == status


@pytest.mark.parametrize("csrf", [None, "", "wrong", csrf_of("another token")])
def test_an_action_needs_the_word_that_came_with_the_data(store: Store, csrf: str | None) -> None:
    headers = {} if csrf is None else {"x-ctxgc-csrf": csrf}
    path = f"api/sessions/{ROW}/actions/undo"
    answer = Page(dashboard(store)).call("POST", path, json={}, headers=headers)
    assert (answer.status_code, store.revision("s")) == (403, store.revision("s"))


def test_no_action_is_done_by_get_or_with_a_form(store: Store) -> None:
    page, before = Page(dashboard(store)), store.revision("s")
    path = f"api/sessions/{ROW}/actions/undo"
    assert page.call("GET", path).status_code == 404
    headers = {"x-ctxgc-csrf": csrf_of(TOKEN)}
    assert page.call("POST", path, data={"a": "b"}, headers=headers).status_code == 400
    assert store.revision("s") == before


@pytest.mark.parametrize(
    "body", [b"[]", b"7", b"{", b'{"a":' * 9_000, b'"' + b"x" * (MOST_BYTES + 1) + b'"', b"\xff"]
)
def test_a_body_that_is_not_a_small_object_is_refused(store: Store, body: bytes) -> None:
    headers = {"x-ctxgc-csrf": csrf_of(TOKEN), "content-type": "application/json"}
    path = f"api/sessions/{ROW}/actions/pin"
    answer = Page(dashboard(store)).call("POST", path, content=body, headers=headers)
    assert answer.status_code == 400
    assert "body" in answer.json()["error"]["message"]


def test_the_address_with_the_token_sets_a_cookie_that_no_script_reads() -> None:
    page = Page(dashboard(), token=None)
    answer = page.call("GET", "", params={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PATH}/")
    assert {"HttpOnly", "Path=/dashboard/", "SameSite=strict"} <= set(cookie.split("; "))
    wrong = page.call("GET", "", params={"token": "guessed"})
    assert "set-cookie" not in wrong.headers


def test_every_answer_forbids_what_the_page_does_not_need(store: Store) -> None:
    page = Page(dashboard(store))
    for path in ("", "app.js", "api/sessions", "no/such", "api/none"):
        headers = page.call("GET", path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "unsafe" not in headers["content-security-policy"]


def test_no_file_outside_of_the_page_is_served() -> None:
    page = Page(dashboard())
    for path in ("../app.py", "..%2fapp.py", "page_files.py", "/etc/passwd", "lib/../../app.py"):
        assert page.call("GET", path).status_code == 404


# -- What answers hold


def test_the_list_has_recorded_and_stored_sessions(home: Path, store: Store) -> None:
    recorded(home)
    found = Page(dashboard(store)).get("api/sessions")
    rows = {row["id"]: row for row in found["sessions"]}
    assert set(rows) == {ROW, f"recorded.{RECORDED}"}
    assert rows[ROW]["requests"] == 15
    assert rows[ROW]["cost"] > 0
    assert [row["cost_today"] for row in rows.values()] == [0.0, 0.0]
    assert found["trends"]["projects"][0]["sessions"] == 1
    assert found["actions"] is True
    assert found["csrf"] == csrf_of(TOKEN)


def test_a_stored_session_says_which_tools_were_never_called(store: Store) -> None:
    found = Page(dashboard(store)).get(f"api/sessions/{ROW}")
    (read,) = found["tools"]
    assert (read["tool"], read["calls"]) == ("read", 14)
    assert read["tokens"] == sum(each["tokens"] for each in found["files"])  # results are in it
    assert [each["tool"] for each in found["uncalled_tools"]] == ["never"]
    assert {each["path"] for each in found["files"]} == {f"/repo/f{n}.py" for n in range(9)}


def test_every_segment_of_a_timeline_can_be_opened(home: Path, store: Store) -> None:
    recorded(home)
    page = Page(dashboard(store))
    for row in (ROW, f"recorded.{RECORDED}"):
        for segment in page.get(f"api/sessions/{row}/timeline")["segments"][:40]:
            detail = page.get(f"api/sessions/{row}/segments/{segment['id']}")
            assert detail["seg"] == segment
            assert detail["text"]


def test_a_plan_says_what_a_collection_then_does(store: Store) -> None:
    page, before = Page(dashboard(store)), store.revision("s")
    plan = page.get(f"api/sessions/{ROW}/plan?target=4000")
    assert store.revision("s") == before
    assert {each["segment"] for each in plan["diff"]} <= {e["segment"] for e in plan["entries"]}
    assert plan["dollars_saved_per_request"] > 0
    done = page.act(ROW, "collect", {"target": 4_000})["done"]
    assert done == f"Collected: {plan['tokens_before']:,} tokens are {plan['tokens_after']:,} now."


def test_a_session_is_saved_as_a_page_of_its_own_without_keys(home: Path, store: Store) -> None:
    recorded(home)
    worked(store, "t", steps=1).append({"role": "assistant", "content": f"take {KEY}"})
    page = Page(dashboard(store))
    for row in (ROW, "stored.t", f"recorded.{RECORDED}"):
        answer = page.call("GET", f"api/sessions/{row}/report.html")
        assert answer.headers["content-disposition"] == f'attachment; filename="{row}.html"'
        assert 'id="time-machine-data"' in answer.text
        assert "Zq9Zq9" not in answer.text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("api/sessions/stored.none", "there is no session 'stored.none'"),
        ("api/sessions/recorded.none/timeline", "there is no session 'recorded.none'"),
        (f"api/sessions/{ROW}/segments/none", "there is no segment 'none'"),
        ("api/none", "there is no such thing"),
    ],
)
def test_what_is_not_there_is_said(store: Store, path: str, said: str) -> None:
    answer = Page(dashboard(store)).call("GET", path)
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, said)


@pytest.mark.parametrize("target", ["-1", "x", "1e9", "9" * 30, "٣"])
def test_a_plan_for_no_number_is_refused(store: Store, target: str) -> None:
    answer = Page(dashboard(store)).call(
        "GET", f"api/sessions/{ROW}/plan", params={"target": target}
    )
    assert answer.status_code == 400


# -- Strangers' texts and damaged files


def test_keys_are_masked_wherever_text_appears_unless_they_are_asked_for() -> None:
    store = memory()
    session = worked(store, steps=2)
    ids = session.append({"role": "assistant", "content": f"take {KEY}"})
    session.messages()
    session.flush()
    for shows in (False, True):
        page = Page(dashboard(store, show_secrets=shows))
        for path in ("timeline", f"segments/{ids[0]}", "plan?target=100", ""):
            text = page.call("GET", f"api/sessions/{ROW}/{path}".rstrip("/")).text
            assert ("Zq9Zq9" in text) is (shows and path.startswith("segments")), path


def test_hostile_names_and_texts_arrive_as_text(home: Path) -> None:
    store = memory()
    worked(store, HOSTILE, steps=2).append({"role": "assistant", "content": HOSTILE})
    page = Page(dashboard(store))
    answer = page.call("GET", "api/sessions")
    assert answer.headers["content-type"] == "application/json"
    (row,) = answer.json()["sessions"]
    assert row["title"] == HOSTILE
    assert row["id"].replace(".", "").isalnum()
    assert page.get(f"api/sessions/{row['id']}/timeline")["row"]["session_id"] == HOSTILE


def test_a_damaged_transcript_hides_no_other_session(home: Path, store: Store) -> None:
    path = recorded(home)
    path.with_name("broken.jsonl").write_bytes(b"\x00\xff{not json\n" * 50)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:20], b'{"type": "user", "mess\n', *lines[20:]]))
    page = Page(dashboard(store))
    ids = {row["id"] for row in page.get("api/sessions")["sessions"]}
    assert ids == {ROW, f"recorded.{RECORDED}", "recorded.broken"}
    assert page.get(f"api/sessions/recorded.{RECORDED}/timeline")["requests"]
    refused = page.call("GET", "api/sessions/recorded.broken/timeline")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unreadable_transcript")


def test_the_same_figures_as_analyze(home: Path) -> None:
    path = recorded(home)
    page, row = Page(dashboard()), f"recorded.{RECORDED}"
    insight = analyze_transcript(open_transcript(path))
    about, timeline = page.get(f"api/sessions/{row}"), page.get(f"api/sessions/{row}/timeline")
    assert {t["tool"]: (t["tokens"], t["calls"]) for t in about["tools"]} == {
        t.name: (t.tokens, t.count) for t in insight.tools
    }
    now = timeline["requests"][-1]
    assert (now["tokens"], now["limit"]) == (insight.window.tokens, insight.window.limit)
    assert about["row"]["percent"] == insight.window.percent


# -- What changed


def test_a_listening_page_is_told_of_each_session_that_changes(home: Path, store: Store) -> None:
    path = recorded(home)
    changes = SessionChanges(store)
    assert changes.look() == []
    assert changes.look() == []
    with path.open("ab") as file:
        file.write(b"{}\n")
    worked(store, "t", steps=1)
    told = [json.loads(each.split(b"data: ")[1])["id"] for each in changes.look()]
    assert told == [f"recorded.{RECORDED}", "stored.t"]
    assert changes.look() == []


def test_the_stream_tells_it_as_an_event(home: Path) -> None:
    store, found = memory(), list[bytes]()

    async def listen() -> None:
        async for event in events(store, every=0.01):
            found.append(event)
            if len(found) == 1:
                worked(store, steps=1)
            else:
                return

    anyio.run(listen)
    said: Any = json.loads(found[1].split(b"data: ")[1])
    assert found[1].startswith(b"event: session\n")
    assert said["id"] == ROW
