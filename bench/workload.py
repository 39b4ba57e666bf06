"""Heaps of any size for benchmarks: the same shape at every size, so that growth can be read off.

A session is a row of tasks of twenty segments: a request; three rounds in which the agent makes three
tool calls at once and gets their results; and a note, now and then a decision. A round is a bond, its
calls are one message and its results another. The results are views of three files of the task, some
of the whole file, some of a range of lines. Every second task refers to the note of an earlier one,
one in twelve holds a pin, and one note in three belongs to a topic that runs through the whole
session. So a good part of every heap is reachable, over every kind of link, and the rest is garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random

from ctxgc.core import ContextSegment

START = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=5)
PER_TASK = 20
AT_ONCE = 3
TOPIC = "architecture"

_FILLER = "the value is read from the cache and written back once the lock is free "


def moment(step: int) -> datetime:
    """Return the time of a step."""
    return START + step * TICK


def segments(count: int, tokens_each: int, seed: int = 0) -> Iterator[ContextSegment]:
    """Yield `count` linked segments of about `tokens_each` tokens (four characters to a token)."""
    random = Random(seed)
    for step in range(count):
        task, place = divmod(step, PER_TASK)
        if place == 0:
            yield _request(random, task, step, tokens_each * 4)
        elif place == PER_TASK - 1:
            yield _note(random, task, step, tokens_each * 4)
        else:
            yield _half_of_a_call(task, place - 1, step, tokens_each * 4)


def _request(random: Random, task: int, step: int, chars: int) -> ContextSegment:
    return ContextSegment(
        segment_id=f"s{step}",
        text=_text(f"TCK-{task}: please look at {_name('path', task, 0)}. ", chars),
        type="message",
        role="user",
        created_at=moment(step),
        task_id=_name("task", task),
        tags=(_name("ticket", task),),
        pinned=random.random() < 1 / 12,
    )


def _half_of_a_call(task: int, place: int, step: int, chars: int) -> ContextSegment:
    turn, half = divmod(place, 2 * AT_ONCE)
    is_call, number = half < AT_ONCE, half % AT_ONCE
    path, first = _name("path", task, number), 100 * turn
    about = f"{path} handler_{task}_{number} "
    return ContextSegment(
        segment_id=f"s{step}",
        text=_text(about if is_call else f"{about}row {step % 977} ", chars),
        type="message" if is_call else "code",
        role="assistant" if is_call else "tool",
        created_at=moment(step),
        task_id=_name("task", task),
        message_id=_name("calls" if is_call else "results", task, turn),
        part="tool_call" if is_call else "tool_result",
        call_id=_name("call", task, turn, number),
        bond_id=_name("round", task, turn),
        file_path=None if is_call else path,
        line_range=None if is_call or turn == 0 else (first, first + 79),
        access=None if is_call else "read",
    )


def _note(random: Random, task: int, step: int, chars: int) -> ContextSegment:
    earlier = random.randrange(task) if task and random.random() < 1 / 2 else None
    refers = () if earlier is None else (f"s{(earlier + 1) * PER_TASK - 1}",)
    return ContextSegment(
        segment_id=f"s{step}",
        text=_text(f"TCK-{task} came from handler_{task}_1. ", chars),
        type="decision" if task % 7 == 0 else "note",
        role="assistant",
        created_at=moment(step),
        task_id=_name("task", task),
        tags=(_name("ticket", task),),
        topic_id=TOPIC if random.random() < 1 / 3 else None,
        references=(*refers, f"s{step - 1}"),
    )


@lru_cache(maxsize=64)
def _name(kind: str, task: int, *numbers: int) -> str:
    """Name a thing of a task; all its segments share the string, as those of a host do."""
    if kind == "path":
        return f"src/area{task % 97}/module_{task}_{numbers[0]}.py"
    return "-".join(map(str, (kind, task, *numbers)))


def _text(opening: str, chars: int) -> str:
    return (opening + _FILLER * (chars // len(_FILLER) + 1))[:chars]
