"""Plans and policies for the tests of gather and use."""

from __future__ import annotations

from typing import Any, ClassVar

from ctxgc.core import recall_call
from ctxgc.lab import PolicyTask, TaskPlan
from ctxgc.lab.facts import total_weight
from ctxgc.lab.policies import Kind

Json = dict[str, Any]


def a_plan(**changes: Any) -> TaskPlan:
    fields: Json = {
        "family": "compare",
        "tool": "shell",
        "content": "yaml",
        "format": "openai",
        "window": 16_000,
        "fill": 0.5,
        "gathered": 0.3,
    }
    return TaskPlan(**{**fields, **changes})


class DropResults:
    """A policy that drops the text of every result; with `handles` it names one for each."""

    kind: Kind = "base"
    version = "1"
    settings: ClassVar[Json] = {}

    def __init__(self, *, handles: bool, empty: bool = False) -> None:
        self.name = "drop-results"
        self._handles = handles
        self._empty = empty

    def open(self, task: PolicyTask) -> Dropped:
        return Dropped(handles=self._handles, empty=self._empty)


class Dropped:
    def __init__(self, *, handles: bool, empty: bool) -> None:
        self._handles = handles
        self._empty = empty
        self._history: list[Json] = []
        self._recalls: list[Json] = []

    def view(self, history: list[Json]) -> list[Json]:
        self._history = history
        shown = [self._without(number, message) for number, message in enumerate(history)]
        return [*shown, *self._recalls]

    def _without(self, number: int, message: Json) -> Json:
        if message["role"] != "tool":
            return message
        said = recall_call(f"s-{number}") if self._handles else "gone"
        return {**message, "content": said}

    def handle_for(self, index: int) -> str:
        is_result = self._history[index]["role"] == "tool"
        return f"s-{index}" if self._handles and is_result else ""

    def recall(self, handle: str) -> int:
        index = int(handle.removeprefix("s-"))
        said = "" if self._empty else self._history[index]["content"]
        call = self._history[index - 1]
        self._recalls += [call, {**self._history[index], "content": said}]
        return total_weight(self._recalls[-2:])

    def is_recallable(self, index: int) -> bool:
        return self._handles

    def counts(self) -> dict[str, float]:
        return {}
