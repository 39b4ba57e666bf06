"""Plans and policies for the tests of gather and use."""

from __future__ import annotations

from typing import Any, ClassVar

from ctxgc.core import recall_call
from ctxgc.lab import PolicyTask, TaskPlan
from ctxgc.lab.policies import Kind
from ctxgc.lab.policies_ctxgc import BroughtBack

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

    def view(self, history: list[Json]) -> list[Json]:
        self._history = history
        return [self._without(number, message) for number, message in enumerate(history)]

    def _without(self, number: int, message: Json) -> Json:
        if message["role"] != "tool":
            return message
        said = recall_call(f"s-{number}") if self._handles else "gone"
        return {**message, "content": said}

    def brought_back(self, index: int) -> BroughtBack | None:
        if not self._handles or self._history[index]["role"] != "tool":
            return None
        text = "" if self._empty else self._history[index]["content"]
        return BroughtBack(handle=f"s-{index}", text=text)

    def is_recallable(self, index: int) -> bool:
        return self._handles

    def counts(self) -> dict[str, float]:
        return {}
