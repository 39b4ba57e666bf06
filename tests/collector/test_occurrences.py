"""The census: who holds what, however often that changes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector.worth import Census, partly, whole
from ctxgc.core import Text, is_tombstone
from ctxgc.wire import strings_of
from tests.collector.agent import Step, drive, opened, steps, view_of
from tests.examples import one_in

PIECES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=6
)


@given(PIECES, st.data())
def test_leaving_takes_away_what_entering_brought(
    pieces: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    census, alone = Census(), Census()
    for piece in pieces:
        text = Text(view_of(*piece))
        kept = data.draw(st.lists(st.sampled_from(range(len(text.lines))), unique=True))
        census.enter(whole(text), new=True)
        census.leave(whole(text))
        census.enter(partly(text, kept, ["listed_name"]), new=False)
        alone.enter(partly(text, kept, ["listed_name"]), new=False)
    for counts, expected in (
        (census.names, alone.names), (census.words, alone.words), (census.keys, alone.keys),
        (census.listed, alone.listed),
    ):  # fmt: skip
        assert counts == expected
        assert all(count > 0 for count in counts.values())


def test_what_left_was_still_seen() -> None:
    census, text = Census(), Text("load_0_1 harvest")
    census.enter(whole(text), new=True)
    census.leave(whole(text))
    assert census.names == {}
    assert census.seen == {"load_0_1": 1, "harvest": 1}


@one_in(8)
@given(steps(), st.booleans())
def test_it_equals_a_recount_of_the_view_after_any_decisions(
    work: list[Step], trims_calls: bool
) -> None:
    session = opened(plugin_config={"trim_calls": trims_calls})
    drive(session, work * 2)
    thrift = session.plugin.price_collector
    assert thrift is not None
    names: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    for message in session.history:
        for part in message.parts:
            said = strings_of(part.text) if part.kind == "tool_call" else part.text
            shown, bare = _read(said)
            names.update(shown.names)
            listed.update(bare)
            keys.update(set(shown.keys) - {""})
    census = thrift._reader.census
    assert (census.names, census.listed, census.keys) == (names, listed, keys)


def _read(said: str) -> tuple[Text, list[str]]:
    """Return what a message says verbatim, and the names that its tombstone lists."""
    lines = said.split("\n")
    bare: list[str] = []
    if is_tombstone(said):
        lines = [line for line in lines[1:] if line != "…"]
        if lines and lines[0].startswith("Names: "):
            bare = lines.pop(0).removeprefix("Names: ").split(" ")
    return Text("\n".join(line for line in lines if not line.startswith("[ctxgc = "))), bare
