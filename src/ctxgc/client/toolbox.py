"""The toolbox: all tools of one conversation, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from ctxgc.client.answer import Call
from ctxgc.client.tool import Outcome, Tool, failure
from ctxgc.errors import InputError

INTERRUPTED = "the call was interrupted before it was answered"


class Toolbox:
    """Holds tools and runs the calls of an answer, whatever they do."""

    def __init__(self, tools: Iterable[Tool] = (), *, workers: int = 1) -> None:
        self._tools: dict[str, Tool] = {}
        self.workers = workers
        for tool in tools:
            self.add(tool)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def add(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            InputError: there is one of this name already.
        """
        if tool.name in self._tools:
            raise InputError(
                f'there is a tool "{tool.name}" already', hint="give it another name", field="name"
            )
        self._tools[tool.name] = tool

    def run_all(self, calls: Sequence[Call], outcomes: list[Outcome]) -> None:
        """Run the calls and put what they come to into `outcomes`, in order, each as it is there."""
        if self.workers == 1 or len(calls) == 1:
            outcomes.extend(map(self.run, calls))
            return
        with ThreadPoolExecutor(min(self.workers, len(calls))) as pool:
            outcomes.extend(pool.map(self.run, calls))

    def run(self, call: Call) -> Outcome:
        """Run one call; what goes wrong is told to the model, never raised."""
        tool = self._tools.get(call.name)
        if call.problem is not None:
            return Outcome(call_id=call.call_id, text=call.problem, is_error=True)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            text = f'there is no tool "{call.name}"; there are: {known}'
            return Outcome(call_id=call.call_id, text=text, is_error=True)
        try:
            return Outcome(call_id=call.call_id, text=tool.run(call.arguments))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            return Outcome(call_id=call.call_id, text=failure(error), is_error=True)


def interrupted(call_id: str) -> Outcome:
    """Return the answer to a call that nobody finished."""
    return Outcome(call_id=call_id, text=INTERRUPTED, is_error=True)
