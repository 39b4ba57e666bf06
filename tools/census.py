"""Count what can take text out of a view, and whether it goes through the collector.

python -m tools.census            every such function, how it is reached, and lines of code before and now
python -m tools.census --json     the same for programs

A function is listed when it calls one of the primitives below. It may

  move       out of the view or of the working tier: the heap's `stash` or `remove`, the view's `show`
  cut        make a smaller message, or write the note that takes the place of a text
  choose     say which segments or messages leave, and why

and it is

  collector  in the room `collector/`, or in the one apply of a session
  through    reached from the doors only through the collector
  carried    moves only what a plan or a view of the collector says, as CARRIED explains
  rule       a strategy that chooses by its own rule, and neither moves nor cuts
  asked      not a decision of ctxgc, for a reason that ASKED gives
  past       reached without the collector: a second machine; there is none
  unreached  not reached from any door, as far as a static call graph can tell

The graph is read from the source (`tools.call_graph`): a little more than can happen, and blind to what is
called by a name made at run time. The lab, the demo and the helpers of tests are left out: what they take
out reaches no model.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from tools.call_graph import CallGraph, Node
from tools.requirement_scan import ROOT

Kind = Literal["move", "cut", "choose"]
Status = Literal["collector", "through", "carried", "rule", "asked", "past", "unreached"]

SOURCE: Final = ROOT / "src" / "ctxgc"
WIDTH: Final = 100
STATUSES: Final[tuple[Status, ...]] = (
    "collector", "through", "carried", "rule", "asked", "past", "unreached",
)  # fmt: skip

PRIMITIVES: Final[Mapping[str, Kind]] = {
    "core/heap.py:Heap.stash": "move",
    "core/heap.py:Heap.stash_all": "move",
    "core/heap.py:Heap.remove": "move",
    "core/heap.py:Heap.replace": "move",
    "session/view.py:View.show": "move",
    "session/apply.py:ViewEditor.apply": "move",
    "session/apply.py:ViewEditor.show": "move",
    "session/apply.py:ViewEditor.show_again": "move",
    "session/collection.py:Collector.impose": "move",
    "collector/segmenter.py:Segmenter.carry_out": "move",
    "wire/edit.py:replace_text": "cut",
    "wire/edit.py:replace_arguments": "cut",
    "wire/edit.py:drop_parts": "cut",
    "wire/edit.py:strip_bound_thinking": "cut",
    "collector/run.py:HistoryDraft.remove": "choose",
    "collector/run.py:HistoryDraft.remove_all": "choose",
    "collector/run.py:HistoryDraft.replace": "cut",
    "collector/run.py:HistoryDraft.clear": "choose",
    "core/tombstone.py:note": "cut",
    "core/tombstone.py:long_tombstone": "cut",
    "core/tombstone.py:moved_note": "cut",
    "core/tombstone.py:short_tombstone": "cut",
    "core/tombstone.py:copy_mark": "cut",
    "core/tombstone.py:with_gaps": "cut",
    "core/plan.py:PruningCandidate": "choose",
    "core/plan.py:candidate_for": "choose",
    "collector/price.py:Edit": "choose",
    "guard/pruner.py:PruneResult": "choose",
}

COLLECTOR: Final = ("collector/*", "session/apply.py:*", "session/collection.py:Collector._apply")
RULES: Final = ("strategies/*",)
LEFT_OUT: Final = ("lab/*", "testing/*", "demo/*")
DOORS: Final = ("adapters", "agents", "client", "dashboard", "insight", "mcp", "proxy")
BY_NAME: Final = ("agents/*", "cli/*", "proxy/app.py:ProxyApp.__call__")
"""Where functions are called by a name made at run time, or by a server: hooks, commands, requests."""

_THINKING = "P2: thinking that the provider would refuse after an edit"
_DELETE = "delete: asked for, with confirm=True, or by the limits of the stash"
_NOTICE = "a notice of ctxgc itself comes, or leaves with what it lists"
_REPAIR = "repair: asked for, on a history that its provider refuses"
_LINES_BACK = "recall: lines come back by themselves, nothing leaves"

_BY_HAND = "MCP: a user prunes, summarises or restores by segment; the session carries it out"

CARRIED: Final[Mapping[str, str]] = {
    "guard/pruner.py:ContextPruner.aggressive_prune": "S4's form of what the collector keeps",
    "guard/pruner.py:ContextPruner.prune": "S4's form of the collector's plan",
    "proxy/gateway.py:_texts": "a message that the collector moved out keeps its row at a gateway",
    "session/collection.py:PricePass._cut": "the price plan of the strategy, as it is",
    "session/guard.py:RecoverableSession._show": "the collector's minimal and bare views",
    "session/segments.py:SegmentWork._impose": "a plan of the engine, or what was asked for",
    "session/segments.py:SegmentWork._tombstone": "the stub of a segment in such a plan",
    "session/segments.py:_with_text": "the stub of a segment in such a plan",
}
"""Functions that take out what the collector has decided on, and nothing else."""

ASKED: Final[Mapping[str, str]] = {
    "core/heap.py:Heap.recall": "recall: the original is back, what took its place leaves",
    "session/recall.py:SessionRecall.recall": "recall: something comes back, nothing leaves",
    "session/recall.py:AutoRecall._lines": _LINES_BACK,
    "session/recall.py:AutoRecall.bring_back": _LINES_BACK,
    "session/collection.py:Collector.undo": "undo: the view of before is shown again",
    "session/guard.py:Checkpoints.restore": "restore: the view of a checkpoint is shown again",
    "session/delete.py:Deletion._erase": _DELETE,
    "session/delete.py:Deletion._erasure": _DELETE,
    "session/delete.py:Deletion._unbind": _DELETE,
    "session/intake.py:Intake._rewind": "sync: the host took messages back",
    "session/intake.py:_before_next": "sync: the host took messages back",
    "session/intake.py:Intake._reformat": "the same messages in another format",
    "session/agreement.py:_part_shown": "a stored session of another door is opened",
    "session/agreement.py:_places": "a stored session of another door is opened",
    "session/archive.py:Archive._load_view": "a stored session is opened",
    "session/notices.py:Notices.drop": _NOTICE,
    "session/notices.py:Notices.end_loop_without_thinking": _THINKING,
    "session/notices.py:Notices.notice_of": _NOTICE,
    "session/notices.py:Notices.show": _NOTICE,
    "session/reader.py:RecallingReader._retold": "a note of ours names the call that its reader can make",
    "session/view.py:BoundThinking._with_whole_turn": _THINKING,
    "session/view.py:BoundThinking.strip": _THINKING,
    "session/view.py:BoundThinking.strip_edited": _THINKING,
    "session/plugin_check.py:run_plugin": _THINKING,
    "session/segments.py:SegmentWork._stash_blank": "a blank note is in no view",
    "session/segments.py:SegmentWork.compress": _BY_HAND,
    "session/segments.py:SegmentWork.put": "MCP: notes come in, nothing leaves",
    "session/segments.py:SegmentWork.restore_tiers": _BY_HAND,
    "session/segments.py:_asked_for": _BY_HAND,
    "wire/edit.py:_without_thinking": _THINKING,
    "wire/repairs.py:_Draft._drop_parts": _REPAIR,
    "wire/repairs.py:_repair_arguments": _REPAIR,
    "wire/repairs.py:_without": _REPAIR,
}
"""Functions that take text out and are right to do so without the collector, each by its name."""


@dataclass(frozen=True)
class Taker:
    """A function that can take text out: what it calls, how it is reached, and what that means.

    `path` leads from a door to it; it avoids the collector where it can.
    """

    name: str
    line: int
    kinds: tuple[Kind, ...]
    calls: tuple[str, ...]
    status: Status
    path: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True)
class Place:
    """Lines of code of a place that decided what leaves: before issue 14, before issue 15, and now."""

    name: str
    at_0212d03: int
    at_fd67895: int
    now: int
    files_then: str = ""
    files_now: tuple[str, ...] = ()


# -- the census -----------------------------------------------------------------------------------


def census(source: Path = SOURCE, primitives: Mapping[str, Kind] = PRIMITIVES) -> list[Taker]:
    """Return every function that calls a primitive, by status and name.

    Raises:
        LookupError: a primitive is not in the source: it was renamed, and nobody would be found.
    """
    graph = CallGraph(source)
    if missing := [name for name in primitives if name not in graph.nodes]:
        raise LookupError(f"not in the source any more, see PRIMITIVES: {', '.join(missing)}")
    starts = entries(graph)
    collector = {name for name in graph.nodes if _first(name, COLLECTOR)}
    around, anyhow = graph.paths(starts, collector), graph.paths(starts)
    found = []
    for name, called in graph.calls.items():
        calls = sorted(called & primitives.keys())
        kinds = tuple(sorted({primitives[each] for each in calls}))
        if kinds and _can_take(graph.nodes[name], kinds) and name not in primitives:
            path = around.get(name) or anyhow.get(name) or []
            status, reason = _judged(name, kinds, is_around=name in around, is_reached=bool(path))
            line = graph.nodes[name].line
            found.append(Taker(name, line, kinds, tuple(calls), status, tuple(path), reason))
    return sorted(found, key=lambda taker: (STATUSES.index(taker.status), taker.name))


def _can_take(node: Node, kinds: tuple[Kind, ...]) -> bool:
    """Return whether something acts when it runs: a text or an alias that a module makes once does not."""
    is_code = any(isinstance(each, ast.Lambda | ast.stmt) for each in ast.walk(node.body))
    return (is_code or "move" in kinds) and not _first(node.name, LEFT_OUT)


def entries(graph: CallGraph) -> set[str]:
    """Return where calls come in: the front door, the faces of the doors, commands, and hooks."""
    faces = ("__init__.py", *(f"{door}/__init__.py" for door in DOORS))
    found = {node for face in faces for node in graph.face(face)}
    return found | {name for name in graph.nodes if _first(name, BY_NAME) and ":_" not in name}


def _judged(
    name: str, kinds: tuple[Kind, ...], *, is_around: bool, is_reached: bool
) -> tuple[Status, str]:
    if _first(name, COLLECTOR):
        return "collector", ""
    if carried := _first(name, CARRIED):
        return "carried", CARRIED[carried]
    if asked := _first(name, ASKED):
        return "asked", ASKED[asked]
    if _first(name, RULES) and kinds == ("choose",):
        return "rule", ""
    if not is_reached:
        return "unreached", ""
    return ("past" if is_around else "through"), ""


def _first(name: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)


def surprises(takers: Iterable[Taker]) -> list[str]:
    """Return what nobody wrote down: functions past the collector, and rows that fit no longer."""
    takers = list(takers)
    found = [
        f"{taker.name} (line {taker.line}) calls {', '.join(map(_label, taker.calls))} past the "
        "collector: let it ask the collector, or say in ASKED why it need not"
        for taker in takers
        if taker.status == "past"
    ]
    asked = {taker.name for taker in takers if taker.status in ("asked", "carried")}
    found += [
        f"ASKED has {row}, which takes nothing out: remove it"
        for row in (*ASKED, *CARRIED)
        if row not in asked
    ]
    return found


# -- lines of code --------------------------------------------------------------------------------

_PLACES: Final = (
    ("the collector", 0, 0, "", ("collector/*.py",)),
    (
        "analysis, engine, planner", 1_359, 1_241,
        "core/analysis.py core/engine.py core/plan.py", ("core/plan.py",),
    ),
    ("lines, names, evacuation", 368, 336, "core/text.py", ("core/text.py",)),
    (
        "price and window", 3_136, 2_858,
        "strategies/mark_sweep/*.py", ("strategies/mark_sweep.py",),
    ),
    (
        "what strategies share", 1_016, 1_209,
        "strategies/base.py builtin.py host.py segmenter.py",
        ("strategies/base.py", "strategies/builtin.py"),
    ),
    (
        "S4's pruner and priorities", 921, 887,
        "guard/pruner.py guard/priorities.py", ("guard/pruner.py",),
    ),
    (
        "MCP's prune and compress", 468, 606,
        "mcp/prune.py mcp/compress.py",
        ("mcp/prune.py", "mcp/compress.py", "session/segments.py"),
    ),
    ("the session's collections", 577, 713, "session/collection.py", ("session/collection.py",)),
    ("the smallest views", 56, 43, "lines 111 to 153 of session/recall.py", ()),
    (
        "overflow and tools (client)", 576, 548,
        "client/overflow.py client/tools.py", ("client/tools.py",),
    ),
    ("big outputs (hooks)", 325, 317, "agents/big_output.py", ("agents/big_output.py",)),
)  # fmt: skip
"""Whole files that hold what the collector holds now: their lines at commit 0212d03 (before issue 14) and at
fd67895 (before issue 15), which files those were at fd67895, and which are left of them.

So what only moved into `collector/` is on both sides. What is new there, and was nowhere before, is not
compared: see NEW.
"""

NEW: Final = ("collector/booking.py",)
"""S2's language of budgets (`turn_3`), which no code of before had."""


def places(source: Path = SOURCE) -> list[Place]:
    """Return the lines of each place then and now, and of all together."""
    rows = [
        Place(name, older, old, sum(_lines(source, patterns)), was, patterns)
        for name, older, old, was, patterns in _PLACES
    ]
    sums = (sum(getattr(row, when) for row in rows) for when in ("at_0212d03", "at_fd67895", "now"))
    return [*rows, Place("all together", *sums)]


def _lines(source: Path, patterns: Iterable[str]) -> Iterator[int]:
    for pattern in patterns:
        for path in source.glob(pattern):
            if path.relative_to(source).as_posix() not in NEW:
                yield len(path.read_text(encoding="utf-8").splitlines())


# -- printing -------------------------------------------------------------------------------------


def report(takers: list[Taker], rows: list[Place]) -> list[str]:
    """Return the census as lines of at most 100 characters."""
    said = [_summary(takers), ""]
    for status in STATUSES:
        own = [taker for taker in takers if taker.status == status]
        if own:
            said += [
                f"{status}: {len(own)}",
                *(line for one in own for line in _described(one)),
                "",
            ]
    return [line[:WIDTH] for line in [*said, *_table(rows)]]


def _summary(takers: list[Taker]) -> str:
    counts = {status: sum(t.status == status for t in takers) for status in STATUSES}
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{len(takers)} functions can take text out of a view: {said}."


def _described(taker: Taker) -> Iterator[str]:
    kinds = "+".join(taker.kinds)
    yield f"  {taker.name} {kinds}: {', '.join(map(_label, taker.calls))}"
    if taker.reason:
        yield f"      {taker.reason}"
    if taker.path:
        yield f"      {_shortened([_label(step) for step in taker.path], WIDTH - 6)}"


def _shortened(steps: list[str], width: int) -> str:
    """Return a path in one line; where it is too long, steps before the last are left out."""
    line = " > ".join(steps)
    for kept in range(len(steps) - 2, 0, -1):
        if len(line) <= width:
            break
        line = " > ".join([*steps[:kept], "...", steps[-1]])
    return line


def _label(name: str) -> str:
    return name.partition(":")[2]


def _table(rows: list[Place]) -> list[str]:
    head = f"{'lines of code':30}{'0212d03':>9}{'fd67895':>9}{'now':>9}{'since fd67895':>16}"
    compared = ["", f"compared are whole files, without {', '.join(NEW)}:"]
    for row in rows[:-1]:
        compared.append(f"  {row.name}")
        compared += [f"      at fd67895: {row.files_then}"] if row.files_then else []
        compared.append(f"      now: {' '.join(row.files_now) or 'in the collector'}")
    return [head, *map(_row, rows), *compared]


def _row(row: Place) -> str:
    change = row.now - row.at_fd67895
    share = f" ({change / row.at_fd67895:+.0%})" if row.at_fd67895 else ""
    numbers = f"{row.at_0212d03:>9,}{row.at_fd67895:>9,}{row.now:>9,}"
    return f"{row.name:30}{numbers}{f'{change:+,}{share}':>16}"


def main(arguments: list[str]) -> int:
    """Print the census; the exit code is 1 when something takes text out that nobody wrote down."""
    parser = argparse.ArgumentParser(prog="python -m tools.census", description="Take the census.")
    parser.add_argument("--json", action="store_true", help="write JSON")
    asked = parser.parse_args(arguments)
    takers, rows = census(), places()
    if asked.json:
        said = {"takers": [asdict(t) for t in takers], "lines": [asdict(row) for row in rows]}
        print(json.dumps(said, indent=1))
    else:
        print("\n".join(report(takers, rows)))
    for surprise in surprises(takers):
        print(surprise, file=sys.stderr)
    return 1 if surprises(takers) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
