"""Runs whose results are worth pruning: parallel calls, long results, facts that come back."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import strategies as st

from ctxgc.economics import price_sheet
from ctxgc.lab import Player, PolicyTask, Run
from ctxgc.lab.policies import RegimeKind
from tests.lab.builders import FACTS, Json, run_of, user

FILLER = "nothing to see in this line, it is as long as it is dull"


@st.composite
def long_results(draw: st.DrawFn) -> str:
    """A text of many lines, some of which name a fact."""
    lines = draw(st.lists(st.sampled_from([FILLER, *FACTS]), min_size=1, max_size=12))
    return "\n".join(f"{line} stands at {number}" for number, line in enumerate(lines))


@st.composite
def long_runs(draw: st.DrawFn) -> Run:
    """A valid run of agents' turns: up to three calls at once, and requests in between."""
    messages = [user("begin with the work")]
    for turn in range(draw(st.integers(2, 8))):
        if draw(st.booleans()) and draw(st.booleans()):
            messages += [{"role": "assistant", "content": "well"}, user(f"go on, {turn}")]
        used = draw(st.sampled_from([*FACTS, "nothing"]))
        numbers = range(draw(st.integers(1, 3)))
        messages.append(calls(f"I use {used}", [f"call-{turn}-{n}" for n in numbers]))
        messages += [tool(f"call-{turn}-{n}", draw(long_results())) for n in numbers]
    messages.append({"role": "assistant", "content": f"done with {draw(st.sampled_from(FACTS))}"})
    return run_of(*messages)


def calls(text: str, ids: list[str]) -> Json:
    """An answer that calls a tool under each of these ids."""
    function = {"name": "work", "arguments": json.dumps({"on": "it"})}
    made = [{"id": each, "type": "function", "function": function} for each in ids]
    return {"role": "assistant", "content": text, "tool_calls": made}


def tool(call: str, text: str) -> Json:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call, "content": text}


def task_of(run: Run, regime: RegimeKind = "cost", limit: int = 200_000) -> PolicyTask:
    return PolicyTask(limit=limit, regime=regime, sheet=price_sheet("anthropic-5m"), run=run)


def views(player: Player, run: Run) -> Iterator[tuple[list[Json], list[Json]]]:
    """Play a run; yield each history with the view of it."""
    for index, message in enumerate(run.messages):
        if message["role"] == "assistant":
            history = run.messages[:index]
            yield history, player.view(history)


def dialogue(turns: int, lines: int = 20) -> Run:
    """A run of one request and so many calls, each with a result of so many dull lines."""
    messages = [user("begin with the work")]
    for turn in range(turns):
        messages.append(calls(f"turn {turn}", [f"call-{turn}"]))
        messages.append(tool(f"call-{turn}", "\n".join(f"{FILLER} {turn}" for _ in range(lines))))
    return run_of(*messages, {"role": "assistant", "content": "done"})
