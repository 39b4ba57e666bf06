"""The digest: what it says can be read again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import (
    DigestEntry,
    handles_in,
    without,
    write_digest,
)
from ctxgc.collector.digest import digest_of, is_handle, read_digest
from ctxgc.core import Text

LINES = st.lists(st.text(alphabet="abc_ .", min_size=1, max_size=12), max_size=4)


def entry(handle: str, *lines: str, names: tuple[str, ...] = ()) -> DigestEntry:
    made = DigestEntry(handle, Text("\n".join(lines)))
    made.keep_all()
    made.passage.names = list(names)
    return made


def test_handles_without_lines_share_a_line() -> None:
    text = write_digest(
        [DigestEntry("s-2"), DigestEntry("s-5"), entry("s-9", "one", "two", names=("a_b",))]
    )
    assert text == "[ctxgc: s-2 s-5 s-9] a_b\none\ntwo"
    assert handles_in(f"a notice\n{text}") == ["s-2", "s-5", "s-9"]


def test_a_gap_is_marked_and_is_no_line() -> None:
    kept = DigestEntry("s-1", Text("one\ntwo\nthree"))
    kept.passage.kept = [0, 2]
    text = write_digest([kept, DigestEntry("s-4")])
    assert text == "[ctxgc: s-1]\none\n[...]\nthree\n[ctxgc: s-4]"
    assert [e.passage.text.lines for e in read_digest(text)] == [["one", "three"], [""]]


@given(st.dictionaries(st.integers(1, 99).map(lambda n: f"s-{n}"), LINES, min_size=1))
def test_what_is_written_is_read_again(entries: dict[str, list[str]]) -> None:
    text = write_digest([entry(handle, *lines) for handle, lines in entries.items()])
    found = read_digest(f"[ctxgc: 3 older messages were moved out]\n{text}")
    again = [[piece for piece in e.passage.text.lines if piece] for e in found]
    assert dict(zip([e.handle for e in found], again, strict=True)) == entries
    assert digest_of(f"a notice\n{text}") == text


def test_entries_leave_with_their_lines() -> None:
    text = "a notice\n[ctxgc: s-1 s-2]\none\n[ctxgc: s-3]\ntwo"
    assert without(text, {"s-2"}) == "a notice\n[ctxgc: s-1 s-3]\ntwo"
    assert without(text, {"s-1", "s-2", "s-3"}) == ""


def test_other_texts_hold_no_handles() -> None:
    assert handles_in("[ctxgc: 420 tokens, cold]\ns-4 [ctxgc: s-9 and more") == []
    assert [is_handle(text) for text in ("s-12", "s-", "x-12", "seg-12")] == [True] + [False] * 3


def test_handles_that_follow_each_other_are_a_range_and_read_back_as_each_of_them() -> None:
    groups = [(4, 5), (6, 7), (8, 8), (9, 11), (20, 20), (21, 21)]
    written = write_digest(DigestEntry(f"s-{first}", last=last) for first, last in groups)
    assert written == "[ctxgc: s-4..11 s-20 s-21]"
    assert handles_in(written) == [f"s-{n}" for n in (*range(4, 12), 20, 21)]


def test_what_is_told_of_ends_a_range() -> None:
    entries = [DigestEntry(f"s-{n}", Text("a line") if n == 6 else None) for n in range(1, 12)]
    entries[5].keep_all()
    assert write_digest(entries) == "[ctxgc: s-1..5 s-6]\na line\n[ctxgc: s-7..11]"
