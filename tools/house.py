"""Measure the house: how large its rooms are, and through how many files a call walks.

python -m tools.house                    print the measures
python -m tools.house --json             the same for programs
python -m tools.house --before FILE      beside those of an earlier time, which --json wrote
python -m tools.house --wheel            build the wheel too, and measure it

A room is a folder right under `src/ctxgc`; the files beside the rooms are the door. A walk counts the
distinct files of ctxgc in which some function is called during one call of the public Session API.
The calls are warm: the same conversation was played to its end before, so that imports, vocabularies
and tables of constants are loaded. The conversation is `conversation-openai.json.gz` of the goldens'
inputs, with its tools; a token is a character; the store is in memory unless another is named:

  append      A tool result comes in, in a window of 40,000 tokens under the default configuration; the
              median of all in the conversation.
  idle        `messages()` for a request that needs no collection, in the same session; the median.
  price cut   `messages()` that collects for the price alone, in a window of 100,000 tokens with the
              eager constants of the goldens; the median of all such requests.
  room        `messages()` that makes room for the first time, in the session of `append`.
  recall      `recall` of a message that had left the view whole, at the end of a session in a window of
              24,000 tokens, in which results evacuated alone do not make enough room; its store is a
              JSON file.

An outside audit counted 64, 51, 106, 126 and 69 before the restructuring; this counts 65, 51, 105, 127
and 69 there. A restructuring that merges files lowers these numbers without changing the walks.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import mean, median, median_low
from types import FrameType
from typing import Any

import ctxgc
from ctxgc import CtxgcError, GCConfig, Session
from ctxgc.session import RECALL_CALL
from tools.golden.places import ROOT, quiet_place
from tools.golden.story import Clock, LetterCounter, Script, asks, config_of

SOURCE = Path(ctxgc.__file__).resolve().parent
DOOR = "(door)"
ALL = "all"
WALKS = ("append", "idle", "price cut", "room", "recall")
_TIGHT, _SMALL, _ROOMY = 24_000, 40_000, 100_000

Room = dict[str, float]
Counts = dict[str, list[int]]


def main(arguments: list[str]) -> int:
    """Run the command and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description="Measure the house.")
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument("--before", type=Path, help="measures of an earlier time to set beside")
    parser.add_argument("--wheel", action="store_true", help="build the wheel and measure it")
    asked = parser.parse_args(arguments)
    found = measure(with_wheel=asked.wheel)
    if asked.json:
        print(json.dumps(found, indent=1))
        return 0
    before = json.loads(asked.before.read_text(encoding="utf-8")) if asked.before else None
    print("\n".join([*_room_lines(found, before), "", *_walk_lines(found, before)]))
    return 0


def measure(*, with_wheel: bool = False) -> dict[str, Any]:
    """Return all measures as JSON-ready data; the wheel takes some seconds more."""
    found: dict[str, Any] = {"rooms": rooms(), "walks": walks()}
    return found | {"wheel_bytes": wheel_bytes()} if with_wheel else found


# -- rooms ----------------------------------------------------------------------------------------


def rooms() -> dict[str, Room]:
    """Return files, lines, median, mean and longest of each room, of the door, and of all together."""
    lines: dict[str, list[int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        room = parts[0] if len(parts) > 1 else DOOR
        lines.setdefault(room, []).append(len(path.read_text(encoding="utf-8").splitlines()))
    lines[ALL] = [each for room in lines.values() for each in room]
    return {room: _described(each) for room, each in lines.items()}


def _described(lines: list[int]) -> Room:
    return {
        "files": len(lines), "lines": sum(lines), "median": median(lines),
        "mean": round(mean(lines), 1), "longest": max(lines),
    }  # fmt: skip


# -- walks ----------------------------------------------------------------------------------------


def walks() -> dict[str, int]:
    """Return through how many files of ctxgc each kind of call walks."""
    with tempfile.TemporaryDirectory() as folder, quiet_place(Path(folder)):
        script = Script("openai")
        small, roomy = (
            GCConfig(),
            config_of(script).replace(threshold_percent=80, target_percent=60),
        )
        for store, limit, config in (("json:warm", _TIGHT, small), ("memory:", _ROOMY, roomy)):
            _play(script, store, limit, config)
        found = _play(script, "memory:", _SMALL, small)
        found["room"] = found["room"][:1]
        found["price cut"] = _play(script, "memory:", _ROOMY, roomy)["pre_message"]
        found["recall"] = _play(script, "json:store", _TIGHT, small)["recall"]
    return {name: median_low(found[name]) for name in WALKS}


def files_walked(call: Callable[[], object]) -> set[str]:
    """Return the files of ctxgc in which a function was called."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {name for name in names if Path(name).is_relative_to(SOURCE)}


def _play(script: Script, store: str, limit: int, config: GCConfig) -> Counts:
    """Play the conversation and return how many files each call walked through, by its kind."""
    session = Session(
        limit,
        store=store,
        config=config,
        counter=LetterCounter(),
        clock=Clock(),
        recall_call=RECALL_CALL,
    )
    session.set_tools(script.tools)
    found: Counts = {}
    for message, coming in zip(script.messages, [*script.messages[1:], {}], strict=True):
        count = len(files_walked(partial(session.append, message)))
        if message["role"] == "tool":
            found.setdefault("append", []).append(count)
        if asks(message) and not asks(coming):
            _request(session, found)
    stashed = (s.segment_id for s in session.segments() if s.tier == "stashed")
    found["recall"] = _recalled(session, stashed)
    session.close()
    return found


def _request(session: Session, found: Counts) -> None:
    done = len(session.gc_history)
    count = len(files_walked(session.messages))
    reasons = {result.trigger_reason.value for result in session.gc_history[done:]}
    names = {"": "idle", "threshold": "room"}
    kind = "+".join(sorted(reasons))
    found.setdefault(names.get(kind, kind), []).append(count)


def _recalled(session: Session, segment_ids: Iterable[str]) -> list[int]:
    """Recall the first segment whose message had left the view whole."""
    for segment_id in segment_ids:
        shown = len(session.history)
        try:
            count = len(files_walked(partial(session.recall, segment_id)))
        except CtxgcError:
            continue
        if len(session.history) > shown:
            return [count]
    return []


# -- the wheel ------------------------------------------------------------------------------------


def wheel_bytes() -> int:
    """Build the wheel, as `make setup` builds it, and return its size."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "pip", "wheel", "--no-deps",
            "--disable-pip-version-check", "--quiet", "--wheel-dir", folder, str(ROOT),
        ]  # fmt: skip
        subprocess.run(command, check=True)  # noqa: S603 - our own command
        (wheel,) = Path(folder).glob("*.whl")
        return wheel.stat().st_size


# -- printing -------------------------------------------------------------------------------------


def _room_lines(found: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    columns = ("files", "lines", "median", "mean", "longest")
    then: dict[str, Room] = before["rooms"] if before else {}
    names = [*(room for room in sorted({*found["rooms"], *then}) if room != ALL), ALL]
    rows = [["room", *columns]]
    for name in names:
        now = found["rooms"].get(name, {})
        rows.append([name, *(_pair(then.get(name, {}), now, c, before) for c in columns)])
    return _table(rows)


def _walk_lines(found: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    then = before["walks"] if before else {}
    rows = [["walk", "files"]]
    rows += [[name, _pair(then, found["walks"], name, before)] for name in found["walks"]]
    if "wheel_bytes" in found:
        rows.append(["wheel", _pair(before or {}, found, "wheel_bytes", before)])
    return _table(rows)


def _pair(then: dict[str, Any], now: dict[str, Any], key: str, before: object) -> str:
    values = ([then.get(key)] if before else []) + [now.get(key)]
    return " > ".join("-" if value is None else _figure(value) for value in values)


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


if __name__ == "__main__":
    logging.getLogger("ctxgc").setLevel(logging.ERROR)  # the session warns of a window that fills
    sys.exit(main(sys.argv[1:]))
