"""What stays of a large text is verbatim, and each gap names the lines that are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import first_lines, stub_at_birth
from ctxgc.collector.excerpt import HEAD, MATCHING, TAIL, Excerpt

GAP = re.compile(r"\[\.\.\. lines? (\d+)(?: to (\d+))? \.\.\.\]")
LINES = st.text(st.characters(codec=None, exclude_characters="\n"), max_size=60)


def excerpt(text: str, words: Iterable[str] = ()) -> str:
    """Return what stays of a text at birth, without its tombstone."""
    return stub_at_birth(text, "a log", "recall()", words).partition("\n")[2]


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
    assert len(excerpt(text, piece.lower().split())) <= most + gaps


def test_the_tombstone_at_birth_says_what_it_was_and_how_a_part_of_it_is_shown() -> None:
    text = "\n".join(["a line"] * 3_000)
    assert stub_at_birth(text, "output of make", "recall(1)", ()).split("\n")[0] == (
        f"[ctxgc: output of make moved out, about {len(text) // 4} tokens: 3000 lines are too many for the "
        "context; head, tail and matching lines stay. To see it again: recall(1); for a part add "
        'lines=[first, last] or pattern="text"]'
    )


def test_matching_lines_stay_and_common_words_do_not_count() -> None:
    lines = [f"step {n} of the build" for n in range(2_000)]
    lines[700] = "step 700 opened LoginForm"
    lines[900] = "step 900 ERROR: no such table"
    kept = excerpt("\n".join(lines), ["loginform", "build", "grep"])
    assert "step 700 opened LoginForm" in kept
    assert "step 900 ERROR: no such table" in kept
    assert "step 1000 of" not in kept


def test_every_line_with_a_rare_word_stays_while_there_is_room() -> None:
    lines = [f"step {n} of the build" for n in range(2_000)]
    for number in (600, 700, 800):
        lines[number] = f"opened LoginForm {number}"
    kept = excerpt("\n".join(lines), ["loginform"])
    assert [f"opened LoginForm {number}" in kept for number in (600, 700, 800)] == [True] * 3


def test_the_tombstone_at_birth_says_how_many_matching_lines_it_hides() -> None:
    lines = [f"step {n} of the build" for n in range(2_000)]
    for number in range(600, 636):
        lines[number] = f"opened LoginForm {number} " + "x" * 90
    stub = stub_at_birth("\n".join(lines), "a log", "recall()", ["loginform"])
    shown = stub.count("opened LoginForm")
    assert 0 < shown < 36
    assert f"matching lines stay, but {36 - shown} more match. To see it again" in stub


def test_first_and_last_errors_stay_when_there_are_many() -> None:
    kept = excerpt("\n".join(["ok"] * 900 + [f"failed {n}" for n in range(900)] + ["ok"] * 900))
    assert "failed 0\n" in kept
    assert "failed 899\n" in kept


def test_of_a_very_long_line_the_start_the_end_and_the_matching_fields_stay() -> None:
    fields = [f'"field_{n}":{n}' for n in range(4_000)]
    text = f"begin\n{{{','.join(fields)}}}\nend"
    kept = excerpt(text, ["field_2000"])
    assert kept.startswith('begin\n{"field_0":0,"field_1":1,')
    assert kept.endswith('"field_3999":3999}\nend')
    assert '"field_2000":2000,' in kept
    gaps = [row for row in kept.split("\n") if row.startswith("[...")]
    assert [re.sub(r"\d{2,}", "N", gap) for gap in gaps] == ["[... N characters of line 2 ...]"] * 2
    verbatim = "".join(row for row in kept.split("\n") if row not in gaps)
    assert len(verbatim) + sum(int(gap.split()[1]) for gap in gaps) == len(text) - 2


def test_letters_without_a_small_form_of_their_length_do_no_harm() -> None:
    text = "\n".join(["İ" * 20] * 500 + ["needle İ"] + ["İ" * 20] * 500)
    assert "needle İ" in excerpt(text, ["needle"])


def test_names_and_matches_are_kept_alongside_the_ends() -> None:
    found = Excerpt("first\nfiller\nparse_header = 1\nfiller\nfiller\nlast")
    found.keep_ends(6, 5)
    assert found.keep_names(["parse_header", "read_body"], 30) == {"parse_header"}
    assert found.written() == (
        "first\n[... line 2 ...]\nparse_header = 1\n[... lines 4 to 5 ...]\nlast"
    )


def test_an_answer_that_fits_is_whole() -> None:
    assert first_lines("one\ntwo", 7) == "one\ntwo"


def test_a_long_answer_says_which_lines_to_ask_for() -> None:
    text = "\n".join(f"row {n}" for n in range(1, 10))
    assert first_lines(text, 13) == (
        "row 1\nrow 2\n[ctxgc: cut after line 2; ask for later lines with lines=[3, ...]]"
    )
    assert first_lines(text, 13, 500).endswith(
        "[ctxgc: cut after line 501; ask for later lines with lines=[502, ...]]"
    )
    assert first_lines(text, 13, None) == (
        "row 1\nrow 2\n[ctxgc: cut here; ask for lines=[first, last], or with a longer pattern]"
    )
    assert first_lines("x" * 900, 500) == (
        f"{'x' * 400}\n[ctxgc: cut after line 1; ask for later lines with lines=[1, ...]]"
    )
