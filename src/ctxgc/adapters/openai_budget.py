"""OpenAI's tool runner: a `ContextBudget` whose `compact` drops what is dead, and says how to recall it.

runner.run(client, params, context_budget=CtxgcBudget(max_input_bytes=400_000).budget())
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from openai.lib.responses_tool_runner import (
    ContextBudget,
    ContextBudgetDecision,
    ContextBudgetSnapshot,
    RegisteredFunction,
)

from ctxgc.adapters.session_pool import SessionPool, TakenHistory

BYTES_PER_TOKEN = 4
RECEIPT_BYTES = 90
"""About what the runner writes for each call that was dropped."""
TARGET = 0.6
_SHRINK = 0.8


class CtxgcBudget:
    """Decides for a `ResponsesToolRunner` which completed calls leave its next request.

    The runner keeps its full history; what leaves is in the session too, and `functions()` are the recall
    tools to register. The budget is in bytes, as the runner counts; a window in tokens follows from it.
    """

    def __init__(
        self,
        max_input_bytes: int,
        *,
        max_input_images: int = 20,
        session_id: str | None = None,
        **options: Any,
    ) -> None:
        self._most = max_input_bytes
        self._images = max_input_images
        self._key = session_id or uuid.uuid4().hex
        self.sessions = SessionPool(
            **{"context_limit": max_input_bytes // BYTES_PER_TOKEN, **options}
        )

    def budget(self) -> ContextBudget:
        """Return what `run(context_budget=...)` takes."""
        return {
            "max_input_bytes": self._most,
            "max_input_images": self._images,
            "compact": self.compact,
        }

    def functions(self) -> list[RegisteredFunction]:
        """Return the recall tools as the runner registers functions."""
        return [
            RegisteredFunction(
                tool=tool.schema("responses"),  # type: ignore[arg-type]
                execute=lambda given, name=tool.name: self.sessions.answer(name, given, self._key),  # type: ignore[misc]
            )
            for tool in self.sessions.recall_tools()
        ]

    def compact(self, snapshot: ContextBudgetSnapshot) -> ContextBudgetDecision:
        """Return the calls to drop, and a summary that says what they were and how to get them back."""
        history: list[dict[str, Any]] = json.loads(json.dumps(snapshot["history"]))
        session = self.sessions.take(
            self._key, history, "responses",
            tools=[tool.schema("responses") for tool in self.sessions.recall_tools()],
        )  # fmt: skip
        taken = TakenHistory(session, history, range(len(history)), history, session.arrivals())
        eligible, target = snapshot["eligible_call_ids"], session.context_limit * TARGET
        while True:
            stubs = _stubs(taken.shown(), history, eligible)
            if _size_without(history, stubs) <= self._most or target < 1:
                return {
                    "drop_call_ids": list(stubs),
                    "summary": "\n".join(filter(None, stubs.values())),
                }
            session.collect(int(target))
            target *= _SHRINK


def _stubs(
    shown: Sequence[Any], history: Sequence[dict[str, Any]], eligible: Sequence[str]
) -> dict[str, str]:
    """Return the calls whose results are no longer shown in full, each with the text left of it."""
    whole = {each.place for each in shown if each.is_same}
    left = {each.place: str(each.data.get("output", "")) for each in shown if not each.is_same}
    return {
        item["call_id"]: left.get(place, "")
        for place, item in enumerate(history)
        if item.get("type") == "function_call_output"
        and place not in whole
        and item["call_id"] in eligible
    }


def _size_without(history: Sequence[dict[str, Any]], stubs: dict[str, str]) -> int:
    """Return about how many bytes the runner will send."""
    kept = [item for item in history if item.get("call_id") not in stubs]
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()
    summary = sum(len(json.dumps(stub).encode()) + 2 for stub in stubs.values())
    return len(text) + summary + RECEIPT_BYTES * len(stubs) + 300
