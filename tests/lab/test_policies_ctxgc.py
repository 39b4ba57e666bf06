"""Our own policies in the lab: the public session, the same at every replay."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.economics import price_sheet
from ctxgc.lab import POLICIES, PolicyTask, Run, policy
from ctxgc.lab.policies_ctxgc import CtxgcPolicy, SessionPlayer
from ctxgc.testing import make_session

OURS = [name for name in POLICIES if name.startswith("ctxgc")]


def task(limit: int, times: list[float] | None = None) -> PolicyTask:
    messages = make_session(seed=3, messages=60).messages
    run = Run(id="r", group="r", source="made", messages=messages, times=times)
    return PolicyTask(limit=limit, regime="window", sheet=price_sheet("anthropic-5m"), run=run)


def played(task: PolicyTask) -> SessionPlayer:
    player = SessionPlayer(task, {})
    for index, message in enumerate(task.run.messages):
        if message["role"] == "assistant" and index:
            player.view(task.run.messages[:index])
    return player


@pytest.mark.parametrize("name", OURS)
def test_each_of_ours_has_its_name_and_opens(name: str) -> None:
    ours = policy(name)
    assert isinstance(ours, CtxgcPolicy)
    assert (ours.name, ours.kind, ours.settings["plugin"]) == (name, "ours", "gc_mark_sweep")
    assert ours.open(task(100_000)).view([{"role": "user", "content": "go"}])


def test_two_replays_give_the_same_bytes() -> None:
    one, other = played(task(6_000)), played(task(6_000))
    assert one.counts()["collections"] > 0
    assert one.session.view() == other.session.view()
    assert one.counts() == other.counts()


def test_a_message_is_recallable_when_the_view_shows_its_handle_and_not_itself() -> None:
    player, messages = played(task(6_000)), task(6_000).run.messages[:-2]
    view = player.session.view()
    recallable = [m for n, m in enumerate(messages) if player.is_recallable(n)]
    assert recallable
    assert [message for message in recallable if message in view] == []


def test_the_time_is_that_of_the_run() -> None:
    times = [1_000.0 * n for n in range(60)]
    player = played(task(100_000, times))
    made = sorted({segment.created_at.timestamp() for segment in player.session.segments()})
    assert made == [t for t in times if t in made]
    assert len(made) > 30


def test_a_window_that_nothing_fits_is_played_to_the_end_and_counted() -> None:
    assert played(task(50)).counts()["overflows"] > 0


def rows(count: int) -> str:
    return "\n".join(f"row {count}.{n}: nothing but plain filler words here" for n in range(count))


def test_what_is_collected_twice_before_a_request_breaks_the_prefix_once() -> None:
    """The last message is so large that the strategy cannot make room, and the guard must."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(6):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": rows(20)})
    messages += [
        {"role": "assistant", "content": rows(90)},
        {"role": "user", "content": rows(60)},
        {"role": "assistant", "content": "done"},
    ]
    run = Run(id="r", group="r", source="made", messages=messages)
    player = SessionPlayer(
        PolicyTask(limit=1_600, regime="window", sheet=price_sheet("anthropic-5m"), run=run), {}
    )
    breaks, last = 0, list[dict[str, Any]]()
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            view = list(player.view(messages[:index]))
            breaks += view[: len(last)] != last
            last = view
    assert player.session.collections > breaks > 0
    assert player.counts()["collections"] == breaks
