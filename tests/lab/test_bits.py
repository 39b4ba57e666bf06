"""Copied bits: an answer costs more when what it repeats has left the view, and nothing else counts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import price_sheet
from ctxgc.errors import InputError
from ctxgc.lab import AnswerBits, Experiment, Regime, Run, RunResult, bits, replay_run
from ctxgc.lab.needs import Needs
from ctxgc.lab.policies import Never
from tests.lab.builders import Edits, Json, answer, result, run_of, runs, user

pytest.importorskip("backports.zstd", reason="the extra ctxgc[lab] is not installed")

SHEET = price_sheet("anthropic-5m")
NOISE = 0.03


def words(seed: int, count: int) -> str:
    """Text that no other seed shares, and that compresses as prose does."""
    chance = random.Random(seed)
    known = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(400)]
    return " ".join(chance.choice(known) for _ in range(count))


def quoting_run() -> Run:
    """A run whose last answer repeats much of message 2; messages 4 and 6 are about other things."""
    messages = [user("begin")]
    for seed in (1, 2, 3):
        read = answer(f"reading {seed}", path=f"notes-{seed}")
        messages += [read, result(read, words(seed, 400))]
    quoted = messages[2]["content"][300:1_500]
    return run_of(*messages, user("now change it"), answer("as said:", old=quoted))


def without(run: Run, *gone: int) -> list[Json]:
    """The view before the last answer, with stubs in the place of some results."""
    return [
        {**message, "content": "[cut]"} if number in gone else message
        for number, message in enumerate(run.messages[:-1])
    ]


def last_bits(run: Run, view: list[Json]) -> bits.AnswerSizes:
    needs = Needs(run)
    sent = [needs.library.of(message) for message in view]
    sizes = AnswerBits(needs).sizes(sent, len(run.messages) - 1)
    assert sizes is not None
    return sizes


def played(policy: Never | Edits, run: Run, every: int = 1) -> RunResult:
    needs = Needs(run)
    found = replay_run(policy, run, Regime(), SHEET, needs=needs, bits=AnswerBits(needs, every))
    assert not found.error
    return found


@given(runs())
def test_never_pruning_costs_the_bits_of_the_whole_history(run: Run) -> None:
    found = played(Never(), run)
    assert (found.bits, found.bits_steps) == (found.bits_whole, found.requests)


@given(runs(), st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_the_references_do_not_depend_on_the_policy(run: Run, choices: list[int]) -> None:
    whole, edited = played(Never(), run), played(Edits(choices), run)
    assert (edited.bits_whole, edited.bits_bare) == (whole.bits_whole, whole.bits_bare)


def test_an_answer_costs_more_without_the_text_that_it_repeats() -> None:
    run = quoting_run()
    lost, kept = last_bits(run, without(run, 2)), last_bits(run, without(run, 4, 6))
    assert lost.whole < 1_000 < 5_000 < lost.view
    assert kept.view == pytest.approx(kept.whole, abs=0.1 * kept.whole)
    assert lost.view == pytest.approx(lost.bare, rel=NOISE)


def test_text_that_it_does_not_use_hardly_matters() -> None:
    run = quoting_run()
    bare = last_bits(run, without(run, 2, 4, 6))
    clutter = last_bits(run, without(run, 2))
    assert clutter.view == pytest.approx(bare.view, rel=NOISE)


def test_the_surroundings_of_what_it_repeats_may_leave_if_the_lines_stay() -> None:
    run = quoting_run()
    view = without(run, 4, 6)
    view[2] = {**view[2], "content": view[2]["content"][300:1_500]}
    assert last_bits(run, view).view <= last_bits(run, view).whole


def test_what_is_a_megabyte_back_is_still_found() -> None:
    said = words(1, 40)
    near = bits.compressed_bits(said.encode(), said.encode())
    far = bits.compressed_bits(said.encode(), f"{said} {words(2, 130_000)}".encode())
    alone = bits.compressed_bits(said.encode(), words(2, 40).encode())
    assert far < near + 64 < alone / 10


def test_an_empty_answer_costs_nothing_and_an_empty_view_helps_nothing() -> None:
    text = words(1, 20).encode()
    assert bits.compressed_bits(b"", text) == 0
    assert bits.compressed_bits(text, b"") == bits.compressed_bits(text, b"short")


@pytest.mark.parametrize(("every", "steps"), [(1, 4), (2, 2), (3, 1), (4, 1), (5, 0)])
def test_of_so_many_steps_the_last_one_is_measured(every: int, steps: int) -> None:
    found = played(Never(), quoting_run(), every)
    assert (found.requests, found.bits_steps) == (4, steps)


def test_without_zstd_bits_are_left_out_unless_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Experiment(policies=("never",))
    assert asked.order().bits_every == 1
    monkeypatch.setattr(bits, "_zstd", lambda: None)
    assert asked.order().bits_every == 0
    with pytest.raises(InputError, match="copied bits need zstd") as refused:
        Experiment(policies=("never",), bits_every=4).order()
    assert refused.value.hint == "pip install 'ctxgc[lab]', or --bits-every 0 to do without"
    assert Experiment(policies=("never",), bits_every=0).order().bits_every == 0
