"""`ctxgc stash gc`: a rehearsal by default, and never under a live handle."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ctxgc import Session
from ctxgc.stores import Store, open_store, session_digest
from tests.cli.stash_cases import STORE, make_session

Run = Callable[..., Result]
_HANDLE = re.compile(r"h-[a-z2-7]{16}")


def gc(run: Run, *options: str) -> Any:
    done = run("stash", "gc", "--json", *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def reopened(name: str = "work") -> Session:
    return Session(store=STORE, session_id=name)


def digest() -> str:
    store: Store = open_store(STORE)
    return session_digest(store, "work")


def test_nothing_changes_before_apply_and_then_what_was_shown_is_gone(run: Run) -> None:
    with make_session() as session:
        view = session.view()
    before = digest()
    shown = gc(run, "--older-than", "9d")
    assert shown["applied"] is False
    assert len(shown["segments"]) == 1
    assert digest() == before
    done = gc(run, "--older-than", "9d", "--apply")
    assert done == {**shown, "applied": True}
    with reopened() as session:
        left = {segment.segment_id for segment in session.segments()}
        assert left.isdisjoint(each["segment_id"] for each in done["segments"])
        assert session.view() == view
    assert gc(run, "--older-than", "9d", "--apply")["segments"] == []


def test_what_a_tombstone_names_stays(run: Run) -> None:
    make_session().close()
    gc(run, "--older-than", "0s", "--apply")
    with reopened() as session:
        handles = set(_HANDLE.findall(json.dumps(session.view())))
        assert handles
        for handle in handles:
            assert session.read(handle)


def test_young_segments_stay_and_limits_are_those_of_the_configuration(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_session().close()
    assert gc(run, "--older-than", "2w")["segments"] == []
    assert gc(run, "--max-size", "1gb")["segments"] == []
    by_size = gc(run, "--max-size", "0")["segments"]
    assert by_size == gc(run, "--older-than", "1d")["segments"] != []
    monkeypatch.setenv("CTXGC_STASH_MAX_AGE_SECONDS", "86400")
    assert gc(run)["segments"] == by_size


def test_the_window_of_the_session_stays_what_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_session().close()
    monkeypatch.setenv("CTXGC_CONTEXT_LIMIT", "123")
    gc(run, "--older-than", "1d", "--apply")
    monkeypatch.delenv("CTXGC_CONTEXT_LIMIT")
    with reopened() as session:
        assert session.context_limit == 8_000


def test_sessions_are_collected_one_by_one_or_all(run: Run) -> None:
    make_session().close()
    make_session(name="other").close()
    one = gc(run, "--older-than", "1d", "--session", "other")["segments"]
    assert {each["session"] for each in one} == {"other"}
    both = gc(run, "--older-than", "1d")
    assert {each["session"] for each in both["segments"]} == {"other", "work"}
    said = run("stash", "gc", "--older-than", "1d").stdout.splitlines()
    assert said[-1] == (
        f"ok: {len(said) - 2} segments, {both['tokens']:,} tokens would be deleted; --apply does it"
    )
    assert run("stash", "gc", "--older-than", "1d", "-q").output == ""


def test_files_of_others_can_be_collected(run: Run, project: Path) -> None:
    entry = {"text": "old", "type": "log", "segment_id": "l1", "tier": "stashed"}
    old, new = ({**entry, "segment_id": i, "created_at": t} for i, t in
                (("l1", "2020-01-01T00:00:00Z"), ("l2", "2999-01-01T00:00:00Z")))  # fmt: skip
    path = project / "artifacts/context_stash.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"segments": [old, new]}), encoding="utf-8")
    done = gc(run, "--older-than", "1d", "--apply")
    assert [each["segment_id"] for each in done["segments"]] == ["l1"]
    store = open_store(STORE)
    assert [key for key, _ in store.load("default", "segments")] == ["l2"]


def test_without_a_limit_it_asks_for_one(run: Run) -> None:
    make_session().close()
    done = run("stash", "gc")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("(next: give --older-than or --max-size)\n")
    done = run("stash", "gc", "--older-than", "5 parsecs")
    assert done.exit_code == 2
    assert "'5 parsecs' is not a number with one of: s, m, h, d, w" in done.stderr
