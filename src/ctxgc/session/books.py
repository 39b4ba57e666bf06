"""The books of a session: which message costs what, under which policy. One ledger for all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.core.message import Message
from ctxgc.strategies.turns import opens_turn
from ctxgc.tokens import TokenCounter
from ctxgc.tokens.messages import message_tokens

SYSTEM_KEY = "system_prompt"


class Books:
    """Keeps the budget equal to the view, message by message."""

    def __init__(self, context_limit: int, counter: TokenCounter) -> None:
        self.budget = InstructionBudget(context_limit)
        self.counter = counter
        self._sizes: dict[int, tuple[Message, int]] = {}
        self._first_request: str | None = None

    def tokens(self, message: Message) -> int:
        """Return the tokens of a message; each message object is counted once."""
        known = self._sizes.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        size = message_tokens(message, self.counter)
        self._sizes[id(message)] = (message, size)
        return size

    def enter(
        self, message: Message, *, created_by: str | None = None, created_at: float | None = None
    ) -> None:
        """Book a message of the view; one that is booked already is booked anew, as old as it was."""
        source, policy = self._place(message)
        self.budget.add_child(
            source,
            message.message_id,
            self.tokens(message),
            policy,
            label="Context Summary" if message.origin == "gc_summary" else message.role,
            created_at=created_at,
            metadata={} if created_by is None else {"created_by": created_by},
            message_ids=(message.message_id,),
        )

    def leave(self, message: Message) -> None:
        """Take a message off the books."""
        for source, key in self.budget.children_of_message(message.message_id):
            self.budget.remove_child(source, key)
        self._sizes.pop(id(message), None)

    def enrich(self, key: str, text: str) -> None:
        """Book text that the host adds to each request by itself, such as retrieved documents."""
        self.budget.add_child(
            InstructionSource.ENRICHMENT, key, self.counter.count(text), GCPolicy.EPHEMERAL
        )

    def set_system(self, text: str) -> None:
        """Book a system prompt that is not part of the messages."""
        self.budget.add_child(
            InstructionSource.SYSTEM, SYSTEM_KEY, self.counter.count(text), GCPolicy.LOCKED
        )

    def set_tools(self, tools: Sequence[dict[str, Any]], policy: GCPolicy) -> None:
        """Book tool schemas; those of an earlier call that are not named again are taken off."""
        entry = self.budget.get_entry(InstructionSource.PLUGIN)
        for key in list(entry.children) if entry is not None else ():
            self.budget.remove_child(InstructionSource.PLUGIN, key)
        for number, tool in enumerate(tools):
            text = json.dumps(tool, ensure_ascii=False)
            self.budget.add_child(
                InstructionSource.PLUGIN,
                _tool_name(tool) or f"tool_{number}",
                self.counter.count(text),
                policy,
            )

    def recount(self, messages: Iterable[Message]) -> None:
        """Count everything again, after the counter has learned from reported usage."""
        self._sizes.clear()
        for message in messages:
            self.enter(message)

    def _place(self, message: Message) -> tuple[InstructionSource, GCPolicy]:
        if message.role == "system":
            return InstructionSource.SYSTEM, GCPolicy.LOCKED
        return InstructionSource.CONVERSATION, self._policy(message)

    def _policy(self, message: Message) -> GCPolicy:
        if message.origin == "gc_summary":
            return GCPolicy.PRESERVABLE
        if message.origin == "gc_notice":
            return GCPolicy.EPHEMERAL
        if opens_turn(message) and self._first_request in (None, message.message_id):
            self._first_request = message.message_id
            return GCPolicy.LOCKED
        return GCPolicy.PARTIAL if _says_something(message) else GCPolicy.EPHEMERAL


def _says_something(message: Message) -> bool:
    """Working output (bare calls, results, thinking) is ephemeral; what was said is not."""
    return any(
        part.kind in ("text", "media") and (part.text.strip() or part.media_tokens)
        for part in message.parts
    )


def _tool_name(tool: dict[str, Any]) -> str | None:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name if isinstance(name, str) and name else None
