"""Survival: each piece of evidence is in the view, behind a handle that works, or lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import price_sheet
from ctxgc.lab import PolicyTask, Regime, Run, parse_regime, policy, replay_run
from ctxgc.lab.evidence import evidence_in, shown_in
from ctxgc.lab.facts import texts_of
from ctxgc.lab.policies import Never
from ctxgc.lab.policies_ctxgc import SessionPlayer
from ctxgc.lab.results import RunSurvival, SurvivalCount
from ctxgc.lab.survival import HOST, survival_rows
from tests.lab.builders import (
    Edits,
    EditsPlayer,
    Json,
    answer,
    generated_run,
    result,
    run_of,
    runs,
    user,
)  # fmt: skip

SHEET = price_sheet("anthropic-5m")
KEPT = SurvivalCount


def survival(policy: Any, run: Run, regime: Regime | None = None) -> RunSurvival:
    got = replay_run(policy, run, regime or Regime(), SHEET, survival=True)
    assert got.error == ""
    assert got.survival is not None
    return got.survival


class Recalling(EditsPlayer):
    """Replaces a result by a stub, and gives what it is told to when asked for it."""

    def __init__(self, stub: str, gives: list[str]) -> None:
        super().__init__([0])
        self._stub, self._gives = stub, gives

    def view(self, history: list[Json]) -> list[Json]:
        old = len(history) > 3
        return [
            {**m, "content": self._stub} if old and n == 2 else m for n, m in enumerate(history)
        ]

    def recalled(self, index: int) -> list[str]:
        return self._gives if index == 2 else []


class Stub(Edits):
    def __init__(self, stub: str, gives: list[str]) -> None:
        super().__init__([0])
        self._player = Recalling(stub, gives)

    def open(self, task: object) -> Recalling:
        return self._player


TEXT = "listening on 48151\nerror: no such table"


def example() -> Run:
    asked = answer("reading", command="cat server.log")
    return run_of(
        user("You must not stop."),
        asked,
        result(asked, TEXT),
        answer("I see"),
        user("on"),
        answer("ok"),
    )


def test_what_is_not_pruned_is_all_in_view() -> None:
    found = survival(Never(), example())
    every = {"command": 1, "number": 1, "error": 1, "constraint": 1}
    assert found.at_end == {kind: KEPT(view=count) for kind, count in every.items()}
    assert (found.at_collections, found.by_host, found.host_tokens) == ({}, {}, 0)


def test_behind_a_handle_is_only_what_the_handle_brings_back() -> None:
    """A stub names the number; its handle brings one of the two lines back."""
    kept = survival(Stub("[moved: 48151]", ["error: no such table"]), example())
    assert kept.at_end["number"] == KEPT(view=1)
    assert kept.at_end["error"] == KEPT(handle=1)
    empty = survival(Stub("[moved: 48151]", []), example())
    assert empty.at_end["error"] == KEPT(lost=1)


def test_a_policy_without_handles_loses_what_is_not_in_view() -> None:
    """It says that message 2 is recallable, and cannot be asked to prove it."""
    found = survival(policy("mask-keep-1"), generated_run(1, 40))
    assert sum(count.handle for count in found.at_end.values()) == 0
    assert sum(count.lost for count in found.at_end.values()) > 0


def test_requests_that_changed_what_was_sent_are_counted_besides_the_last() -> None:
    found = survival(Stub("[gone]", []), example())
    assert found.at_collections["error"] == KEPT(lost=1)
    assert found.at_collections["constraint"] == KEPT(view=1)


def test_what_the_host_made_of_a_run_is_judged_like_a_view() -> None:
    left = [user("Summary: the server is listening on 48151. You must not stop.")]
    run = Run(id="r", group="r", source="made", messages=example().messages, compacted=left)
    found = survival(Stub("[gone]", [TEXT]), run)
    assert found.by_host == {
        "command": KEPT(lost=1),
        "number": KEPT(view=1),
        "error": KEPT(lost=1),
        "constraint": KEPT(view=1),
    }
    assert 0 < found.host_tokens < found.tokens


@given(runs(), st.sampled_from(["cost", "window:50%", "window:300"]))
def test_everything_is_counted_once_whatever_becomes_of_it(run: Run, regime: str) -> None:
    whole = survival(Never(), run).at_end
    found = survival(policy("ctxgc"), run, parse_regime(regime)).at_end
    assert {kind: count.whole for kind, count in found.items()} == {
        kind: count.whole for kind, count in whole.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_our_own_policy_loses_nothing_in_a_window_that_has_room_for_handles(seed: int) -> None:
    found = survival(policy("ctxgc"), generated_run(seed, 60), parse_regime("window:50%")).at_end
    assert sum(count.handle for count in found.values()) > 0
    assert {kind: count.lost for kind, count in found.items() if count.lost} == {}


@pytest.mark.parametrize("seed", [3, 4])
def test_what_is_called_behind_a_handle_comes_back_by_a_real_recall(seed: int) -> None:
    """The judge reads the stash; an agent recalls, and then it is in its view."""
    run = generated_run(seed, 60)
    task = PolicyTask(limit=4_000, regime="window", sheet=SHEET, run=run)
    player = SessionPlayer(task, {})
    answers = [n for n, m in enumerate(run.messages) if m["role"] == "assistant" and n]
    for index in answers:
        view = player.view(run.messages[:index])
    proven = 0
    for index in range(answers[-1]):
        texts = player.recalled(index)
        missing = {said for _, said in evidence_in(run.messages[index])}
        missing -= shown_in(t for m in view for t in texts_of(m))
        if not texts or not missing:
            continue
        session = player.session
        segments = [s for s in session.segments() if s.text in texts and s.tier == "stashed"]
        given = [session.recall(session.handle(s.segment_id)).text for s in segments]  # type: ignore[attr-defined]
        assert missing <= shown_in(t for text in given for t in texts_of({"content": text}))
        proven += 1
        break
    assert proven == 1


def test_a_report_has_a_row_for_each_policy_and_moment_and_one_for_the_host() -> None:
    left = [user("You must not stop.")]
    run = Run(id="r", group="r", source="made", messages=example().messages, compacted=left)
    plain = Run(id="s", group="s", source="made", messages=example().messages)
    results = [
        replay_run(p, r, Regime(), SHEET, survival=True)
        for p in (Never(), Stub("[gone]", []))
        for r in (run, plain)
    ]
    rows = survival_rows(["never", "edits"], results)
    assert [(row.policy, row.moment, row.runs) for row in rows] == [
        ("never", "end", 2), ("edits", "end", 2), ("edits", "collections", 2),
        (HOST, "host", 1), ("never", "host", 1), ("edits", "host", 1),
    ]  # fmt: skip
    shares = {row.policy: row.kinds["all"] for row in rows if row.moment == "host"}
    assert {name: (s.view.value, s.handle.value, s.lost.value) for name, s in shares.items()} == {
        HOST: (0.25, 0.0, 0.75), "never": (1.0, 0.0, 0.0), "edits": (0.5, 0.0, 0.5),
    }  # fmt: skip
    assert survival_rows(["never"], [replay_run(Never(), plain, Regime(), SHEET)]) == []
