"""Heaps of any size for benchmarks: the same shape at every size, so that growth can be read off.

A session is a row of tasks of twenty segments: a request, tool calls with their results (reads of
three files of the task's own, test runs), a note and now and then a decision. Each task links within
itself through its files and its tag. Every second task refers to the note of an earlier one, one in
twelve holds a pin, and one note in three belongs to a topic that runs through the whole session. So a
good third of every heap is reachable, over every kind of link, and the rest is garbage.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random

from ctxgc.core.segment import ContextSegment

START = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=5)
PER_TASK = 20
TOPIC = "architecture"

_FILLER = "the value is read from the cache and written back once the lock is free "


def moment(step: int) -> datetime:
    """Return the time of a step."""
    return START + step * TICK


def segments(count: int, tokens_each: int, seed: int = 0) -> Iterator[ContextSegment]:
    """Yield `count` linked segments of about `tokens_each` tokens (four characters to a token)."""
    random = Random(seed)
    tasks = -(-count // PER_TASK)
    for task in range(tasks):
        for place in range(min(PER_TASK, count - task * PER_TASK)):
            yield _segment(random, task, place, tokens_each * 4)


def _segment(random: Random, task: int, place: int, chars: int) -> ContextSegment:
    step = task * PER_TASK + place
    if place == 0:
        return _request(random, task, step, chars)
    if place == PER_TASK - 1:
        return _note(random, task, step, chars)
    return _half_of_a_call(task, place, step, chars)


def _request(random: Random, task: int, step: int, chars: int) -> ContextSegment:
    return ContextSegment(
        segment_id=f"s{step}",
        text=_text(f"TCK-{task}: please look at {_path(task, 0)}. ", chars),
        type="message",
        role="user",
        created_at=moment(step),
        task_id=_task(task),
        tags=(f"TCK-{task}",),
        pinned=random.random() < 1 / 12,
    )


def _half_of_a_call(task: int, place: int, step: int, chars: int) -> ContextSegment:
    is_call, pair = place % 2 == 1, (place - 1) // 2
    path, first = _path(task, pair % 3), 80 * (pair % 4)
    about = f"{path}:{first} handler_{task}_{pair} "
    return ContextSegment(
        segment_id=f"s{step}",
        text=_text(about if is_call else f"{about} row {step % 977} ", chars),
        type="message" if is_call else "code",
        role="assistant" if is_call else "tool",
        created_at=moment(step),
        task_id=_task(task),
        message_id=f"m{step}",
        part="tool_call" if is_call else "tool_result",
        call_id=f"call-{task}-{pair}",
        file_path=None if is_call else path,
        line_range=None if is_call else (first, first + 79),
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
        task_id=_task(task),
        tags=(f"TCK-{task}",),
        topic_id=TOPIC if random.random() < 1 / 3 else None,
        references=(*refers, f"s{step - 1}"),
    )


@lru_cache(maxsize=64)
def _path(task: int, number: int) -> str:
    """Name a file; its segments share the string, as those of a host do."""
    return f"src/area{task % 97}/module_{task}_{number}.py"


@lru_cache(maxsize=64)
def _task(task: int) -> str:
    return f"task-{task}"


def _text(opening: str, chars: int) -> str:
    return (opening + _FILLER * (chars // len(_FILLER) + 1))[:chars]
