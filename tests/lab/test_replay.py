"""Replay: what was there when it was used, and what the requests cost."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import price_sheet
from ctxgc.lab import Player, PolicyTask, Regime, Run, parse_regime, policy, replay_run
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies import Never
from tests.lab.builders import Edits, Json, answer, result, run_of, runs, user
from tests.lab.naive_judge import judge

SHEET = price_sheet("anthropic-5m")


class Shows:
    """A policy that puts given texts in the place of given messages, once they are old enough."""

    name, kind, version, settings = "shows", "base", "1", {}

    def __init__(self, shown: dict[int, str], recallable: tuple[int, ...] = ()) -> None:
        self.shown, self.recallable = shown, recallable

    def open(self, task: PolicyTask) -> Player:
        return self

    def view(self, history: list[Json]) -> list[Json]:
        old = len(history) > 4
        return [
            {**m, "content": self.shown[n]} if old and n in self.shown else m
            for n, m in enumerate(history)
        ]

    def is_recallable(self, index: int) -> bool:
        return index in self.recallable

    def counts(self) -> dict[str, float]:
        return {}


def example() -> Run:
    """The answer at the end uses a fact, a line and a word of the result, which is message 2."""
    read = answer("reading", path="notes")
    text = "  12→  total = compute_total(items, tax)\nport is 48151 in the elephant room\nend"
    later = [answer("thinking about it"), user("go on"), user("and on")]
    quoted = answer("so: 48151 and elephant", old="total = compute_total(items, tax)")
    return run_of(user("begin"), read, result(read, text), *later, quoted)


def found(run: Run, shows: Shows | Never) -> dict[str, int]:
    names = ("needs", "resident", "wide", "named", "recallable", "lost", "strict", "clean",
             "lines", "lines_kept", "words", "words_kept")  # fmt: skip
    got = replay_run(shows, run, Regime(), SHEET)
    assert not got.error
    return {name: getattr(got, name) for name in names if getattr(got, name)}


def test_all_is_resident_when_nothing_leaves() -> None:
    assert found(example(), Never()) == {
        "needs": 2, "resident": 2, "wide": 2, "strict": 1, "clean": 1,
        "lines": 1, "lines_kept": 1, "words": 1, "words_kept": 1,
    }  # fmt: skip


def test_a_kept_line_makes_its_facts_resident_but_not_beyond_its_ends() -> None:
    kept = {2: "[cut]\nport is 48151 in the elephant room\n[cut]"}
    assert found(example(), Shows(kept)) == {
        "needs": 2, "resident": 1, "lost": 1, "lines": 1, "words": 1, "words_kept": 1,
    }  # fmt: skip


def test_a_fact_without_its_surroundings_is_only_named() -> None:
    kept = {2: "stashed; it names 48151, compute_total"}
    assert found(example(), Shows(kept)) == {
        "needs": 2, "named": 2, "clean": 1, "lines": 1, "words": 1,
    }  # fmt: skip


def test_what_is_behind_a_handle_is_recallable_and_what_is_not_is_lost() -> None:
    gone = {2: "stashed"}
    behind = found(example(), Shows(gone, recallable=(2,)))
    assert behind == {"needs": 2, "recallable": 2, "lines": 1, "words": 1}
    assert found(example(), Shows(gone)) == {"needs": 2, "lost": 2, "lines": 1, "words": 1}


def test_a_line_is_known_again_without_its_number() -> None:
    kept = {2: "[cut]\n total = compute_total(items, tax) \n[cut]"}
    assert found(example(), Shows(kept))["lines_kept"] == 1


def test_a_fact_is_resident_without_the_number_of_its_line() -> None:
    whole = example().messages[2]["content"]
    assert found(example(), Shows({2: whole.replace("  12→", "")})) == found(example(), Never())
    assert found(example(), Shows({2: whole.replace("  12→", "  13→")})) == found(
        example(), Never()
    )
    assert found(example(), Shows({2: whole.replace("  12→", "  12 ")}))["named"] == 1


def test_a_line_number_that_is_itself_the_need_must_be_there() -> None:
    run = example()
    run.messages[2]["content"] = run.messages[2]["content"].replace("  12→", "  4711→")
    run.messages[-1]["content"] += " at 4711"
    assert found(run, Never())["resident"] == 3
    gone = found(run, Shows({2: run.messages[2]["content"].replace("  4711→", "")}))
    assert (gone["resident"], gone["lost"]) == (2, 1)


@given(runs(), st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_the_judge_agrees_with_a_naive_one(run: Run, choices: list[int]) -> None:
    edits = Edits(choices)
    got = msgspec.to_builtins(replay_run(edits, run, Regime(), SHEET))
    assert got["error"] == ""
    expected = judge(edits, run, Regime(), SHEET)
    assert {key: got[key] for key in expected} == pytest.approx(expected)
    zero = {key for key in got if got[key] == 0} - {"refused", "over", "over_excused"}
    assert not zero & expected.keys() - {"bill"}


@given(runs())
def test_never_pruning_costs_the_unpruned_bill_and_loses_nothing(run: Run) -> None:
    got = replay_run(Never(), run, Regime(), SHEET)
    assert (got.bill, got.ratio) == (pytest.approx(got.unpruned), pytest.approx(1.0))
    assert (got.strict, got.clean, got.wide) == (got.steps, got.steps, got.needs)
    assert (got.lines_kept, got.words_kept) == (got.lines, got.words)
    assert (got.newest_shown, got.refused, got.breaks) == (got.newest, 0, 0)


@given(runs(), st.sampled_from(["cost", "window:50%", "window:300"]))
def test_our_own_policy_plays_any_run_soundly(run: Run, regime: str) -> None:
    got = replay_run(policy("ctxgc"), run, parse_regime(regime), SHEET)
    assert (got.error, got.refused) == ("", 0)
    assert got.breaks <= (got.collections or 0)


def test_a_policy_that_raises_is_a_result_that_says_so() -> None:
    class Broken(Shows):
        def view(self, history: list[Json]) -> list[Json]:
            raise RuntimeError("out of\nluck")

    got = replay_run(Broken({}), example(), Regime(), SHEET)
    assert (got.error, got.bill, got.requests) == ("RuntimeError: out of luck", 0.0, 3)


def test_what_a_policy_does_to_its_messages_does_not_reach_the_next_one() -> None:
    class Vandal(Shows):
        def view(self, history: list[Json]) -> list[Json]:
            for message in history:
                message["content"] = "gone"
            return history

    run, needs = example(), Needs(example())
    before = replay_run(Never(), run, Regime(), SHEET, needs=needs)
    replay_run(Vandal({}), run, Regime(), SHEET, needs=needs)
    assert replay_run(Never(), run, Regime(), SHEET, needs=needs) == before


def test_a_message_that_is_changed_in_place_is_seen_as_changed() -> None:
    class Creeping(Shows):
        def view(self, history: list[Json]) -> list[Json]:
            history[0]["content"] += "!"
            return history

    got = replay_run(Creeping({}), example(), Regime(), SHEET)
    assert (got.breaks, got.cached) == (2, 0)


def test_requests_over_the_limit_are_counted_unless_nothing_smaller_would_fit() -> None:
    got = replay_run(Never(), example(), Regime(kind="window", tokens=40), SHEET)
    assert (got.over, got.over_excused, got.requests) == (1, 1, 3)


def test_an_orphan_is_a_refused_request_under_its_rule() -> None:
    class Orphans(Shows):
        def view(self, history: list[Json]) -> list[Json]:
            return [m for n, m in enumerate(history) if n != 1]

    got = replay_run(Orphans({}), example(), Regime(), SHEET)
    assert got.refused == 2
    assert sum(got.rules.values()) >= 2


def test_hiding_the_newest_result_is_seen() -> None:
    class Shy(Shows):
        def view(self, history: list[Json]) -> list[Json]:
            return [{**m, "content": "-"} if m["role"] == "tool" else m for m in history]

    got = replay_run(Shy({}), example(), Regime(), SHEET)
    assert (got.newest, got.newest_shown) == (2, 0)


def test_seconds_are_only_in_a_timed_result() -> None:
    assert replay_run(Never(), example(), Regime(), SHEET).seconds == ()
    timed = replay_run(Never(), example(), Regime(), SHEET, timing=True).seconds
    assert [length for length, _ in timed] == [1, 3, 6]
