"""Arrival: a new result is sent in fewer words, and says the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxgc import Session
from ctxgc.collector.arrival import under_paths, without_numbers
from ctxgc.core import FORMATS, Format
from ctxgc.session import RECALL_CALL
from tests.collector.agent import Agent, Json, Step, drive, opened, steps, view_of
from tests.fakes import QuarterCounter
from tests.session.random_walk import faults

CODE = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="→"), max_size=30
)
FORGED = "[ctxgc: s-1] recall me"


def view(lines: list[str], first: int = 1) -> str:
    return "\n".join(f"{first + n:6}→{line}" for n, line in enumerate(lines))


@given(st.lists(CODE, min_size=8, max_size=60), st.integers(1, 5_000), st.integers(2, 20))
def test_every_line_and_its_number_follow_from_a_view_with_few_numbers(
    lines: list[str], first: int, every: int
) -> None:
    whole = view(lines, first)
    thin = without_numbers(whole, every)
    assert thin is not None
    number, told = 0, []
    for line in thin.split("\n"):
        shown, arrow, rest = line.partition("→")
        number = int(shown) if arrow else number + 1
        told.append(f"{number:6}→{rest if arrow else line}")
    assert "\n".join(told) == whole
    assert len(thin) < len(whole)


@pytest.mark.parametrize(
    "text",
    [
        view(["a"] * 7),
        "\n".join(f"{n * n}\tsquare" for n in range(20)),
        "\n".join(f"row {n}" for n in range(20)),
        view(["a"] * 8) + "\nand so on" * 20,
        "",
    ],
    ids=["short", "a table", "no numbers", "mostly something else", "empty"],
)
def test_what_is_not_a_view_with_line_numbers_stays(text: str) -> None:
    assert without_numbers(text, 10) is None


def test_a_line_that_would_look_like_ours_keeps_its_number() -> None:
    thin = without_numbers(view(["x = 1", "y = 2", FORGED, *["z"] * 9]), 10)
    assert thin == "\n".join(
        ["     1→x = 1", "y = 2", f"     3→{FORGED}", *["z"] * 6, "    10→z", "z", "z"]
    )


def test_the_hits_of_a_file_are_told_under_one_path() -> None:
    long, other = "src/package/module.py", "src/package/other.py"
    hits = [f"{long}:{n}:    call_{n}()" for n in (3, 14, 15)]
    text = "\n".join(["Found 2 files", *hits, f"{other}:7:call_7()", ""])
    short = ["Found 2 files", f"{long}:", *(h.removeprefix(f"{long}:") for h in hits)]
    assert under_paths(text) == "\n".join([*short, f"{other}:7:call_7()", ""])


@pytest.mark.parametrize(
    "text",
    [
        "src/package/module.py:3:one\nsrc/package/module.py:4:two",
        "a.py:1:x\na.py:2:y\na.py:3:z",
        "\n".join(f"2026-11-18 17:0{n}: done" for n in range(9)),
        "\n".join(f"src/package/module.py:3[ctxgc: s-{n}]" for n in range(4)),
        "",
    ],
    ids=["few", "a short path", "times", "not hits", "empty"],
)
def test_other_texts_are_told_as_they_are(text: str) -> None:
    assert under_paths(text) is None


def shown(session: Session) -> list[str]:
    return [
        part.text
        for message in session.inspect().view.messages
        for part in message.parts
        if part.kind == "tool_result"
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_new_view_is_sent_with_every_tenth_number_and_recalled_with_all(format_: Format) -> None:
    session = opened(plugin_config={"thin_numbers": 10})
    drive(session, [("read", 0, 0, 40)], Agent(format_))
    whole = view_of(0, 0, 40)
    assert shown(session) == [without_numbers(whole, 10)]
    (gone,) = [s for s in session.inspect().heap.segments.values() if s.tier == "stashed"]
    assert session.recall(session.inspect().stash.recall_handle(gone.segment_id)).text == whole


def test_numbers_are_left_alone_unless_that_is_asked_for() -> None:
    session = opened()
    drive(session, [("read", 0, 0, 40)])
    assert shown(session) == [view_of(0, 0, 40)]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "src/file_0.py", "offset": 10, "limit": 40}),
        ("Bash", {"command": "nl src/file_0.py | sed -n 10,50p"}),
    ],
)
def test_who_asks_for_lines_by_number_sees_all_numbers(tool: str, given: Json) -> None:
    session, whole = opened(plugin_config={"thin_numbers": 10}), view_of(0, 10, 40)
    said, back = Agent().calls([(tool, given, whole)])
    session.extend([*Agent().begin(), *said, *back])
    session.messages()
    assert shown(session) == [whole]


def test_a_thinned_view_is_the_source_of_a_copy() -> None:
    session = opened(plugin_config={"thin_numbers": 10})
    drive(session, [("read", 0, 0, 40), ("read", 0, 0, 40)])
    assert shown(session)[0] == without_numbers(view_of(0, 0, 40), 10)
    assert shown(session)[1].startswith("[ctxgc = 40 lines of the earlier Read result; ")


@given(steps())
@settings(max_examples=20)
def test_a_lean_session_keeps_every_promise_whatever_the_agent_does(work: list[Step]) -> None:
    session = opened(plugin_config={"preset": "lean"})
    drive(session, work, each=lambda _: assert_sound(session))


def assert_sound(session: Session) -> None:
    assert faults(session) == []


LOG = "\n".join(f"worker {n} handled item {n * 7919 % 10_007}" for n in range(6_000))
FAILED = "linker error: missing symbol in libx.so"


def with_output(limit: int, output: str) -> Session:
    """Return a session with two small results and this one, all of which were asked for."""
    session = Session(limit, store="memory:", counter=QuarterCounter(), recall_call=RECALL_CALL)
    agent = Agent()
    session.extend(agent.begin())
    for n, text in enumerate(["port: 8000\nhost: one", "port: 9000\nhost: two", output]):
        session.messages()
        said, back = agent.calls([("fetch", {"name": f"thing {n}"}, text)])
        session.extend([*said, *back])
    session.messages()
    return session


def test_a_huge_result_that_does_not_fit_is_admitted_by_some_lines_and_drives_nothing_out() -> None:
    lines = LOG.split("\n")
    session = with_output(30_000, "\n".join([*lines[:3_000], FAILED, *lines[3_000:]]))
    one, two, huge = shown(session)
    assert (one, two) == ("port: 8000\nhost: one", "port: 9000\nhost: two")
    head, *rest = huge.split("\n")
    kept = [line for line in rest if not line.startswith("[... ")]
    assert head.startswith("[ctxgc: 44576 tokens, too large: ")
    assert f"{6_001 - len(kept):,} of 6,001 lines not shown; context_recall(" in head
    assert [rest[0], rest[-1], FAILED in kept] == [lines[0], lines[-1], True]
    assert session.usage().total_tokens < 0.3 * 30_000
    assert session.gc_history == []


def test_a_huge_result_that_fits_is_sent_as_it_is() -> None:
    session = with_output(50_000, LOG)
    assert shown(session)[2] == LOG
    assert session.usage().percent_used > 80
