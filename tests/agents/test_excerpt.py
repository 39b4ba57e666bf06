"""What stays of a huge output is verbatim, and each gap names the lines that are missing."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.agents.big_output import HEAD, MATCHING, MOST_LINE, TAIL, excerpt, words_in

GAP = re.compile(r"\[\.\.\. lines? (\d+)(?: to (\d+))? \.\.\.\]")
LINES = st.text(st.characters(codec=None, exclude_characters="\n"), max_size=60)


@given(st.lists(LINES, max_size=200), st.lists(st.text(min_size=1, max_size=4), max_size=4))
def test_lines_and_gaps_together_are_the_whole_text(lines: list[str], words: list[str]) -> None:
    text = "\n".join(lines)
    expected = text.split("\n")
    place = 0
    for row in excerpt(text, words).split("\n"):
        gap = GAP.fullmatch(row)
        if gap and (place >= len(expected) or expected[place] != row):
            assert int(gap[1]) == place + 1
            place = int(gap[2] or gap[1])
        else:
            assert row == expected[place]
            place += 1
    assert place == len(expected)


@given(st.text(max_size=400), st.integers(0, 300))
def test_what_stays_has_a_bound(piece: str, times: int) -> None:
    text = "\n".join([piece] * times)
    most = HEAD + TAIL + MATCHING
    gaps = 40 * (most // 20)
    assert len(excerpt(text, words_in(piece))) <= most + gaps


def test_matching_lines_stay_and_common_words_do_not_count() -> None:
    lines = [f"step {n} of the build" for n in range(2_000)]
    lines[700] = "step 700 opened LoginForm"
    lines[900] = "step 900 ERROR: no such table"
    kept = excerpt("\n".join(lines), words_in("grep loginform in the build"))
    assert "step 700 opened LoginForm" in kept
    assert "step 900 ERROR: no such table" in kept
    assert "step 1000 of" not in kept


def test_first_and_last_errors_stay_when_there_are_many() -> None:
    kept = excerpt("\n".join(["ok"] * 900 + [f"failed {n}" for n in range(900)] + ["ok"] * 900), [])
    assert "failed 0\n" in kept
    assert "failed 899\n" in kept


def test_a_very_long_line_is_shortened_with_its_length() -> None:
    kept = excerpt("x" * 50_000, [])
    assert kept == f"{'x' * MOST_LINE} [... {50_000 - MOST_LINE} characters ...]"


def test_letters_without_a_small_form_of_their_length_do_no_harm() -> None:
    text = "\n".join(["İ" * 20] * 500 + ["needle İ"] + ["İ" * 20] * 500)
    assert "needle İ" in excerpt(text, ["needle"])
