"""What happens in a session, before any provider's words: users speak, the agent speaks and calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call with what the tool returned."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One message of the user, or one of the agent with the results of its calls.

    `plants` are facts that appear here for the first time, `needs` facts from earlier that the
    step cannot do without.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    plants: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many characters the step adds to a history."""
        outputs = sum(len(call.output) + 60 for call in self.calls)
        return len(self.text) + len(self.thinking) + outputs


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that was said at message `born` and is needed again at the messages `needed`."""

    text: str
    born: int
    needed: tuple[int, ...]
