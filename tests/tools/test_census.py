"""The census: whatever takes text out of a view goes through the collector, or says why not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tools.call_graph import CallGraph
from tools.census import PRIMITIVES, SOURCE, Kind, Taker, census, places, report, surprises

HEAP = "core/heap.py:Heap.stash"
SMALL: dict[str, Kind] = {HEAP: "move"}


@cache
def taken() -> list[Taker]:
    return census()


def house(folder: Path, **files: str) -> Path:
    """Write a small house with a heap, a collector, and a session at the front door."""
    source = folder / "ctxgc"
    texts = {
        "__init__": "from ctxgc.session.session import Session\n",
        "core/heap": "class Heap:\n    def stash(self, name: str) -> None: ...\n",
        "collector/apply": (
            "from ctxgc.core.heap import Heap\n"
            "def apply(heap: Heap) -> None:\n    finish(heap)\n"
            "def finish(heap: Heap) -> None:\n    heap.stash('a')\n"
        ),
        **{name.replace("__", "/"): text for name, text in files.items()},
    }
    for name, text in texts.items():
        path = source / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return source


SESSION = """
from ctxgc.collector.apply import apply
from ctxgc.core.heap import Heap
{imports}

class Session:
    def __init__(self, heap: Heap) -> None:
        self._heap = heap

    def collect(self) -> None:
        {body}
"""


def found(source: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {taker.name: (taker.status, taker.path) for taker in census(source, SMALL)}


def test_nothing_takes_text_out_of_a_view_that_nobody_wrote_down() -> None:
    assert surprises(taken()) == []


def test_nothing_takes_text_out_past_the_collector() -> None:
    assert [taker.name for taker in taken() if taker.status == "past"] == []


def test_everything_that_takes_text_out_is_reached_from_a_door() -> None:
    assert [taker.name for taker in taken() if not taker.path] == []


def test_no_receiver_of_a_telling_method_is_unknown() -> None:
    telling = {"stash", "stash_all", "remove_all", "show_again", "carry_out", "impose"}
    unknown = [call for call in CallGraph(SOURCE).unknown if call.method in telling]
    assert unknown == []


def test_every_kind_of_primitive_is_called_by_someone() -> None:
    assert {kind for taker in taken() for kind in taker.kinds} == set(PRIMITIVES.values())


def test_the_report_fits_a_hundred_columns() -> None:
    lines = report(taken(), places())
    assert [line for line in lines if len(line) > 100] == []
    assert sum(line.startswith("  ") and ".py:" in line for line in lines) == len(taken())


def test_lines_of_code_are_summed_for_each_time() -> None:
    *rows, together = places()
    assert together.at_0212d03 == sum(row.at_0212d03 for row in rows) == 8_802
    assert together.at_fd67895 == sum(row.at_fd67895 for row in rows) == 8_758
    assert together.now == sum(row.now for row in rows) > 0


def test_a_call_that_goes_through_the_collector_is_its_business(tmp_path: Path) -> None:
    session = SESSION.format(imports="", body="apply(self._heap)")
    assert found(house(tmp_path, session__session=session)) == {
        "collector/apply.py:finish": (
            "collector",
            (
                "session/session.py:Session.collect",
                "collector/apply.py:apply",
                "collector/apply.py:finish",
            ),
        )
    }


def test_a_function_that_goes_past_the_collector_is_found_with_its_path(tmp_path: Path) -> None:
    session = SESSION.format(imports="from ctxgc.session.cut import cut", body="cut(self)")
    cut = (
        "from ctxgc.session.session import Session\n"
        "def cut(session: Session) -> None:\n    [session._heap][0].stash('a')\n"
    )
    source = house(tmp_path, session__session=session, session__cut=cut)
    assert found(source)["session/cut.py:cut"] == (
        "past",
        ("session/session.py:Session.collect", "session/cut.py:cut"),
    )
    said = [line for line in surprises(census(source, SMALL)) if "session/cut.py" in line]
    wanted = (
        "session/cut.py:cut (line 2) calls Heap.stash past the collector: let it ask the collector, "
        "or say in ASKED why it need not"
    )
    assert said == [wanted]


def test_a_function_that_only_the_collector_calls_goes_through_it(tmp_path: Path) -> None:
    session = SESSION.format(imports="", body="apply(self._heap)")
    collector = (
        "from ctxgc.core.heap import Heap\nfrom ctxgc.session.helper import helper\n"
        "def apply(heap: Heap) -> None:\n    helper(heap)\n"
    )
    helper = (
        "from ctxgc.core.heap import Heap\n"
        "def helper(heap: Heap) -> None:\n    list(map(heap.stash, 'ab'))\n"
    )
    source = house(
        tmp_path, session__session=session, collector__apply=collector, session__helper=helper
    )
    assert found(source)["session/helper.py:helper"][0] == "through"


def test_a_method_behind_a_protocol_is_followed(tmp_path: Path) -> None:
    imports = "from ctxgc.session.parts import Part, Cutter"
    session = SESSION.format(imports=imports, body="self.part().work(self._heap)")
    session += "\n    def part(self) -> Part:\n        return Cutter()\n"
    parts = (
        "from typing import Protocol\nfrom ctxgc.core.heap import Heap\n"
        "class Part(Protocol):\n    def work(self, heap: Heap) -> None: ...\n"
        "class Cutter:\n    def work(self, heap: Heap) -> None:\n        heap.stash('a')\n"
    )
    source = house(tmp_path, session__session=session, session__parts=parts)
    assert found(source)["session/parts.py:Cutter.work"] == (
        "past",
        ("session/session.py:Session.collect", "session/parts.py:Cutter.work"),
    )


def test_a_primitive_that_was_renamed_is_an_error(tmp_path: Path) -> None:
    session = SESSION.format(imports="", body="apply(self._heap)")
    with pytest.raises(LookupError, match=r"core/heap.py:Heap.swap"):
        census(house(tmp_path, session__session=session), {"core/heap.py:Heap.swap": "move"})


def test_a_row_of_the_lists_that_fits_nothing_any_more_is_a_surprise() -> None:
    rest = [taker for taker in taken() if taker.name != "session/collection.py:Collector.undo"]
    said = "ASKED has session/collection.py:Collector.undo, which takes nothing out: remove it"
    assert surprises(rest) == [said]
