"""Copies: what is left out stands, as it is, in one message that is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector.digest import without_copies
from ctxgc.collector.worth import CopiedLines, Copies
from ctxgc.core import Text
from tests.collector.agent import HOW, view_of

VIEWS = st.builds(view_of, st.integers(0, 1), st.integers(0, 20), st.integers(1, 30))


def mixed(*views: str) -> str:
    return "\nin between\n".join(views)


@given(
    st.lists(VIEWS, min_size=1, max_size=3),
    st.lists(VIEWS, min_size=1, max_size=3).map(lambda views: mixed(*views)),
    st.data(),
)
def test_each_run_stands_together_in_one_text_and_the_rest_is_byte_identical(
    older: list[str], new: str, data: st.DataObject
) -> None:
    copies, text = Copies(), Text(new)
    shown: dict[str, list[str | None]] = {}
    for number, said in enumerate(older):
        known = Text(said)
        copies.note(f"m{number}/0", known)
        kept = data.draw(st.sets(st.sampled_from(range(len(known.lines)))))
        if data.draw(st.booleans()):
            copies.narrow(f"m{number}/0", kept)
        else:
            kept = set(range(len(known.lines)))
        shown[f"m{number}/0"] = [b if n in kept else None for n, b in enumerate(known.bare)]
    runs = copies.find(text, HOW, "new/0")
    for run in runs:
        assert _stands_in(text.bare[run.first : run.last], shown[run.source])
    _check_rest(text, runs)


def _stands_in(lines: list[str], shown: list[str | None]) -> bool:
    return any(shown[n : n + len(lines)] == lines for n in range(len(shown)))


def _check_rest(text: Text, runs: list[CopiedLines]) -> None:
    names = {run.source: "Read result" for run in runs}
    rest = without_copies(text, runs, names, "").split("\n")
    gone = {n for run in runs for n in range(run.first, run.last)}
    expected = [line for n, line in enumerate(text.lines) if n not in gone]
    assert [line for line in rest if not line.startswith("[ctxgc = ")] == expected
    assert len(rest) - len(expected) == len(runs)


def test_a_text_is_no_copy_of_itself() -> None:
    copies, text = Copies(), Text(view_of(0, 0, 20))
    copies.note("m/0", text)
    assert copies.find(text, HOW, "m/0") == []
    assert copies.find(text, HOW, "n/0") == [CopiedLines(0, 20, "m/0")]


def test_short_runs_of_data_say_the_same_of_different_things() -> None:
    copies, short, long = Copies(), Text(view_of(0, 0, 4)), Text(view_of(0, 0, 20))
    copies.note("m/0", long)
    assert copies.find(short, HOW, "n/0") == [CopiedLines(0, 4, "m/0")]
    assert copies.find(short, HOW, "n/0", is_data=True) == []
    assert copies.find(long, HOW, "n/0", is_data=True) == [CopiedLines(0, 20, "m/0")]


def test_what_is_no_longer_shown_is_no_source() -> None:
    copies, text = Copies(), Text(view_of(0, 0, 20))
    copies.note("m/0", text)
    copies.forget("m/0")
    assert copies.find(text, HOW, "n/0") == []


def test_a_few_short_lines_are_not_worth_a_mark() -> None:
    copies = Copies()
    copies.note("m/0", Text("}\nreturn\n}"))
    assert copies.find(Text("}\nreturn\n}"), HOW, "n/0") == []


def test_the_first_mark_carries_the_call_that_recalls_all() -> None:
    text = Text(mixed(view_of(0, 0, 3), view_of(1, 0, 2)))
    runs = [CopiedLines(0, 3, "a/0"), CopiedLines(4, 6, "b/0")]
    said = without_copies(text, runs, {"a/0": "Read result", "b/0": "Edit call"}, "recall(1)")
    assert said == (
        "[ctxgc = 3 lines of the earlier Read result; recall(1)]\nin between\n"
        "[ctxgc = 2 lines of the earlier Edit call]"
    )


def test_a_text_that_is_no_longer_shown_leaves_nothing_behind() -> None:
    copies = Copies()
    for number in range(5):
        text = Text("\n".join(f"step {line} of the build took a while" for line in range(30)))
        copies.note(f"m{number}/0", text)
        copies.narrow(f"m{number}/0", range(10))
    for number in range(5):
        copies.forget(f"m{number}/0")
    assert vars(copies) == vars(Copies())
