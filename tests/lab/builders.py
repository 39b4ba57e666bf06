"""Runs and policies for the tests of the lab: small, and rich in things that come back."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from hypothesis import strategies as st

from ctxgc.lab import Player, PolicyTask, Run
from ctxgc.lab.policies import Kind
from ctxgc.testing import make_session

Json = dict[str, Any]

FACTS = ["src/app/main.py", "load_config", "HttpServer", "12345", "fmt.Errorf", "a1b2c3d4"]
WORDS = ["elephant", "whisper", "gardening"]
PROSE = ["the", "is at", "see", "->", "now"]
LINES = ["    return compute_total(items, tax)", "if status != EXPECTED_STATUS: fail()"]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def answer(text: str, **arguments: Any) -> Json:
    """An assistant message; with arguments it calls the tool `work`."""
    if not arguments:
        return {"role": "assistant", "content": text}
    function = {"name": "work", "arguments": json.dumps(arguments)}
    call = {"id": f"call-{text[:8]}", "type": "function", "function": function}
    return {"role": "assistant", "content": text, "tool_calls": [call]}


def result(asked: Json, text: str) -> Json:
    return {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": text}


def run_of(*messages: Json, times: list[float] | None = None, name: str = "r") -> Run:
    return Run(id=name, group=name, source="made", messages=list(messages), times=times)


def texts() -> st.SearchStrategy[str]:
    pieces = st.lists(st.sampled_from([*FACTS, *WORDS, *PROSE]), min_size=1, max_size=5)
    plain = st.one_of(pieces.map(" ".join), st.sampled_from(LINES))
    line = st.builds(str.__add__, st.sampled_from(["", "", "", "  12→", " 4567\t"]), plain)
    return st.lists(line, min_size=1, max_size=4).map("\n".join)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A valid run: a request, then answers with or without calls, and more requests."""
    messages = [user(draw(texts()))]
    for number in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(["call", "call", "say", "ask"])):
            case "call":
                asked = answer(f"{number} {draw(texts())}", value=draw(texts()))
                asked["tool_calls"][0]["id"] = f"call-{number}"
                messages += [asked, result(asked, draw(texts()))]
            case "say":
                messages.append(answer(draw(texts())))
            case "ask":
                messages.append(user(draw(texts())))
    messages.append(answer(draw(texts())))
    return run_of(*messages)


class Edits:
    """A policy that cuts lines out of messages, by a list of choices, and freezes nothing."""

    kind: Kind = "base"
    version = "1"
    settings: ClassVar[Json] = {}

    def __init__(self, choices: list[int], name: str = "edits") -> None:
        self.name = name
        self._choices = choices

    def open(self, task: PolicyTask) -> Player:
        return EditsPlayer(self._choices)


class EditsPlayer:
    def __init__(self, choices: list[int]) -> None:
        self._choices = choices
        self._asked = 0

    def view(self, history: list[Json]) -> list[Json]:
        self._asked += 1
        return [self._edited(number, message) for number, message in enumerate(history)]

    def _edited(self, number: int, message: Json) -> Json:
        chosen = self._choices[(number * 7 + self._asked) % len(self._choices)]
        lines = (message.get("content") or "").split("\n")
        if chosen == 0 or not message.get("content"):
            return message
        kept = [line for n, line in enumerate(lines) if (n + chosen) % 3]
        if chosen == 1:
            kept = [line[3:] for line in kept]
        return {**message, "content": "\n".join(["[cut]", *kept])}

    def is_recallable(self, index: int) -> bool:
        return index % 2 == 0

    def counts(self) -> dict[str, float]:
        return {"collections": 3}


def generated_run(seed: int, messages: int = 30) -> Run:
    """A run of the scripted agent; two seeds share a group."""
    session = make_session(seed=seed, messages=messages)
    return Run(id=f"run-{seed}", group=f"g{seed // 2}", source="made", messages=session.messages)
