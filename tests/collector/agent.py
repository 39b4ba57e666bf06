"""A scripted agent at work on invented files, in any wire format, and sessions that it drives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxgc import Session
from ctxgc.collector import preset
from ctxgc.config import GCConfig
from ctxgc.core import Format, Message
from ctxgc.session import RECALL_CALL
from tests.fakes import Clock, QuarterCounter

Json = dict[str, Any]
Step = tuple[Any, ...]
Tool = tuple[str, Json, str]
Verb = Literal["read", "edit", "grep", "test", "say", "both"]

HOW = replace(
    preset("default"), hold=10, work_hold=1, after_check=4, after_user=3, bonus_from=3, patience=1.0,
    horizon=50, guard=0.05, copy_lines=2, copy_chars=100, copy_saving=0.05, least_names=160,
)  # fmt: skip
"""Constants that stay the same when the shipped ones are fitted anew."""
FIXED = {"constants": msgspec.to_builtins(replace(HOW, hold=6, patience=0.5))}
"""Options of gc_mark_sweep by which a session collects often, whatever is shipped."""

WORDS = ("harvest", "lantern", "meadows", "orchard", "pebbles", "quarrel", "saddles", "thicket")


def line_of(path: int, number: int) -> str:
    """Return a line of a file; some names stand in many lines, some only here."""
    word = WORDS[(path + number) % len(WORDS)]
    return f"def load_{path}_{number}(source): return parse_{path}_{number % 5}(source, '{word}')"


def view_of(path: int, first: int, count: int) -> str:
    """Return what a viewer shows of a file."""
    return "\n".join(f"{n:6d}→{line_of(path, n)}" for n in range(first, first + count))


def steps() -> st.SearchStrategy[list[Step]]:
    """Return what an agent may do, step by step."""
    path, line = st.integers(0, 2), st.integers(0, 30)
    read = st.tuples(st.just("read"), path, line, st.integers(1, 60))
    return st.lists(
        st.one_of(
            read,
            read,
            st.tuples(st.just("both"), path, line, st.integers(1, 60)),
            st.tuples(st.just("edit"), path, line),
            st.tuples(st.just("grep"), st.sampled_from(WORDS), st.integers(0, 40)),
            st.tuples(st.just("test"), st.integers(1, 40)),
            st.tuples(st.just("say"), st.sampled_from(WORDS)),
        ),
        min_size=6,
        max_size=18,
    )


LONG: list[Step] = [
    ("read", 0, 0, 60), ("read", 1, 0, 60), ("grep", "harvest", 40), ("edit", 0, 3), ("test", 30),
    ("both", 2, 0, 60), ("read", 0, 0, 40), ("test", 30), ("say", "orchard"), ("edit", 1, 7),
    ("test", 40), ("read", 2, 10, 50), ("grep", "saddles", 30), ("edit", 2, 12), ("test", 30),
    ("read", 1, 0, 60), ("both", 0, 5, 50), ("test", 30), ("edit", 0, 6), ("test", 20),
]  # fmt: skip
"""Work long enough for many collections."""


class Agent:
    """Writes the messages of a session in one format."""

    def __init__(self, format_: Format = "openai") -> None:
        self.format = format_
        self._number = 0

    def begin(self) -> list[Json]:
        """Return the first request."""
        return [self.user("Make load_0_3 of src/file_0.py faster, and keep parse_0_1 as it is.")]

    def user(self, text: str) -> Json:
        """Return a message of the user."""
        return {"role": "user", "content": text}

    def step(self, step: Step) -> tuple[list[Json], list[Json]]:
        """Return what the agent says, and what comes back."""
        if step[0] == "say":
            return [self._text(f"I look at the {step[1]}.")], [self.user(f"And the {step[1]}?")]
        return self.calls(list(_tools(step)))

    def _text(self, text: str) -> Json:
        return {"role": "assistant", "content": text}

    def calls(self, tools: list[Tool]) -> tuple[list[Json], list[Json]]:
        """Return calls of tools in one step, and what they return."""
        ids = [f"call_{self._number + n}" for n in range(len(tools))]
        self._number += len(tools)
        if self.format == "anthropic":
            return _anthropic(tools, ids)
        return _responses(tools, ids) if self.format == "responses" else _openai(tools, ids)


def _tools(step: Step) -> Iterator[Tool]:
    verb: Verb = step[0]
    if verb in ("read", "both"):
        path, first, count = step[1:]
        yield "Read", {"file_path": f"src/file_{path}.py"}, view_of(path, first, count)
    if verb == "both":
        found = [f"src/file_{step[1]}.py:{n}: {line_of(step[1], n)}" for n in range(30)]
        yield "Grep", {"pattern": "load_"}, "\n".join(found)
    if verb == "edit":
        old = "\n".join(line_of(step[1], n) for n in range(step[2], step[2] + 4))
        given = {
            "file_path": f"src/file_{step[1]}.py", "old_string": old, "new_string": "pass  # gone",
        }  # fmt: skip
        yield "Edit", given, f"The file src/file_{step[1]}.py has been updated."
    if verb == "grep":
        found = [f"src/{step[1]}_{n}.py:{n}: {step[1]} = found_{n}" for n in range(step[2])]
        yield "Grep", {"pattern": step[1]}, "\n".join(found) or "nothing"
    if verb == "test":
        ran = [f"tests/test_{n}.py::test_case_{n} PASSED in 0.{n:04d}s" for n in range(step[1])]
        yield "Bash", {"command": "pytest -v"}, "\n".join(ran)


def _openai(tools: list[Tool], ids: list[str]) -> tuple[list[Json], list[Json]]:
    calls = [
        {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for i, (name, given, _) in zip(ids, tools, strict=True)
    ]
    results = [
        {"role": "tool", "tool_call_id": i, "content": output}
        for i, (_, _, output) in zip(ids, tools, strict=True)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}], results


def _anthropic(tools: list[Tool], ids: list[str]) -> tuple[list[Json], list[Json]]:
    calls = [
        {"type": "tool_use", "id": i, "name": name, "input": given}
        for i, (name, given, _) in zip(ids, tools, strict=True)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": i, "content": [{"type": "text", "text": output}]}
        for i, (_, _, output) in zip(ids, tools, strict=True)
    ]
    return [{"role": "assistant", "content": calls}], [{"role": "user", "content": results}]


def _responses(tools: list[Tool], ids: list[str]) -> tuple[list[Json], list[Json]]:
    calls = [
        {"type": "function_call", "call_id": i, "name": name, "arguments": json.dumps(given)}
        for i, (name, given, _) in zip(ids, tools, strict=True)
    ]
    results = [
        {"type": "function_call_output", "call_id": i, "output": output}
        for i, (_, _, output) in zip(ids, tools, strict=True)
    ]
    return calls, results


def opened(**options: Any) -> Session:
    """Return a roomy session in memory; keys of GCConfig may be given beside those of Session."""
    keys = set(options) & set(GCConfig.__struct_fields__)
    config = GCConfig(**{"auto_recall": False, **{key: options.pop(key) for key in keys}})
    usual = {
        "recall_call": RECALL_CALL,
        "store": "memory:", "counter": QuarterCounter(), "clock": Clock(), "prices": "anthropic-5m",
    }  # fmt: skip
    return Session(200_000, config=config, **{**usual, **options})


def drive(
    session: Session,
    work: Iterable[Step],
    agent: Agent | None = None,
    *,
    each: Callable[[int], object] = lambda number: None,
) -> list[list[Json]]:
    """Let an agent work in a session; return the views of its requests. `each` runs after every one."""
    agent = agent or Agent()
    views: list[list[Json]] = []
    if not session.history:
        session.extend(agent.begin(), format=agent.format)
    for number, step in enumerate(work):
        views.append(session.messages())
        each(number)
        said, back = agent.step(step)
        session.extend([*said, *back], format=agent.format)
    views.append(session.messages())
    each(len(views) - 1)
    return views


def empty_message(message_id: str) -> Message:
    """Return a message without parts."""
    data = {"role": "user", "content": message_id}
    return Message(message_id=message_id, role="user", parts=(), data=data, format="openai")
