"""Random damage to the file of a store, and a judge of what a session makes of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from ctxgc.errors import CtxgcError
from ctxgc.session import Session
from tests.fakes import Clock, WordCounter
from tests.session.build import make

Json = dict[str, Any]

NAME = "worked"
FILES = {"json": "stash.json", "sqlite": "stash.db"}


class Whole(msgspec.Struct, frozen=True):
    """What a session shows that nothing was lost of."""

    view: list[Json]
    texts: dict[str, tuple[str, str]]
    collections: int
    checkpoints: int


class Judged(msgspec.Struct):
    """How many damages were noticed, were harmless, or went wrong; `faults` tells what went wrong."""

    noticed: int = 0
    harmless: int = 0
    saved: int = 0
    faults: list[str] = []


def opened(kind: str, folder: Path, **options: Any) -> Session:
    """Open the session in a folder."""
    return Session(
        2_000, store=f"{kind}:{folder / FILES[kind]}", session_id=NAME, plugin="gc_truncate",
        counter=WordCounter(), clock=Clock(), **options,
    )  # fmt: skip


def whole_of(session: Session) -> Whole:
    """Return what a session shows."""
    return Whole(
        session.view(),
        {s.segment_id: (s.text, s.tier) for s in session.segments()},
        len(session.gc_history),
        len(session.checkpoints()),
    )


def work(kind: str, folder: Path) -> Whole:
    """Make a session with messages, collections, pins and checkpoints in a folder, and close it."""
    folder.mkdir()
    session = make(
        2_000, store=f"{kind}:{folder / FILES[kind]}", session_id=NAME, preserve_recent_turns=1
    )
    for number in range(12):
        call = {"name": "run", "arguments": f'{{"command": "make part-{number}"}}'}
        made = {"id": f"call_{number}", "type": "function", "function": call}
        session.append({"role": "user", "content": f"Build part {number}, please."})
        session.append({"role": "assistant", "content": None, "tool_calls": [made]})
        log = " ".join(f"unit {number}.{line} compiled" for line in range(40))
        session.append({"role": "tool", "tool_call_id": f"call_{number}", "content": log})
        session.messages()
        if number == 4:
            session.pin(session.history[-1].message_id)
            session.checkpoint("half way")
    session.collect(600)
    session.close()
    return whole_of(opened(kind, folder))


def damage(data: bytes, rng: Random) -> tuple[str, bytes]:
    """Return what was done to some bytes, and the bytes after it."""
    how = rng.choice(("flip", "cut", "zero", "insert", "duplicate"))
    place = rng.randrange(len(data))
    size = rng.choice((1, 16, 512, 4_096))
    if how == "flip":
        return how, data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    if how == "cut":
        return how, data[:place]
    if how == "zero":
        return how, data[:place] + bytes(len(data[place : place + size])) + data[place + size :]
    if how == "insert":
        return how, data[:place] + rng.randbytes(size) + data[place:]
    return how, data[: place + size] + data[place:]


def judge(kind: str, folder: Path, whole: Whole, seeds: range) -> Judged:
    """Damage the store of a closed session in many ways, and judge what is made of each."""
    found = Judged(faults=[])
    data = (folder / FILES[kind]).read_bytes()
    for seed in seeds:
        place = folder.parent / f"{kind}-{seed}"
        place.mkdir()
        how, damaged = damage(data, Random(f"{kind}-{seed}"))
        (place / FILES[kind]).write_bytes(damaged)
        for attempt in ("first", "second"):
            _judge_open(found, kind, place, whole, f"{seed} {how} {attempt}")
        _judge_accepted(found, kind, place, whole, f"{seed} {how} accepted")
        shutil.rmtree(place)
    return found


def _judge_open(found: Judged, kind: str, place: Path, whole: Whole, name: str) -> None:
    try:
        seen = whole_of(opened(kind, place))
    except CtxgcError:
        found.noticed += 1
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        found.faults.append(f"{name}: {type(error).__name__}: {error}")
    else:
        found.harmless += 1
        if seen != whole:
            found.faults.append(f"{name}: opened as another session without a word")


def _judge_accepted(found: Judged, kind: str, place: Path, whole: Whole, name: str) -> None:
    try:
        session = opened(kind, place, damaged="accept")
        seen, damage_ = whole_of(session), session.damage
    except CtxgcError:
        return
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        found.faults.append(f"{name}: {type(error).__name__}: {error}")
        return
    found.saved += 1
    if seen != whole and not damage_:
        found.faults.append(f"{name}: less than before, and nothing is named")
    known = {text for text, _ in whole.texts.values()}
    other = [text for text, _ in seen.texts.values() if text not in known]
    if other:
        found.faults.append(f"{name}: another text: {other[0][:80]!r}")
