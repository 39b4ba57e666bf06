"""Alongside: what is sent with each request besides the messages: system prompt, tool schemas, enrichment.

The budget says what of it is sent now. A schema that a collection took out is not sent, and not counted,
until a message names its tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
from ctxgc.core import Message
from ctxgc.tokens import TokenCounter

_SYSTEM_KEY = "system_prompt"
_SOURCES = (InstructionSource.SYSTEM, InstructionSource.PLUGIN, InstructionSource.ENRICHMENT)
_TOOLS = InstructionSource.PLUGIN
_DISCOVERABLE = (GCPolicy.EPHEMERAL, GCPolicy.CONDITIONAL)


class Alongside:
    """Books what the host sends besides the messages, and says what of it is to be sent now."""

    def __init__(self, budget: InstructionBudget, counter: TokenCounter) -> None:
        self._budget = budget
        self._counter = counter
        self._schemas: dict[str, dict[str, Any]] = {}
        self._policies: dict[str, GCPolicy] = {}
        self._named: dict[str, GCPolicy] = {}
        """Tools that were named since the last answer, with the policy that they have after the next."""
        self._left: set[str] = set()
        """Tools that had left when the session was stored, until their schemas are given again."""
        self._texts: dict[str, str] = {}
        self._system: str | None = None

    def recount(self) -> None:
        """Book everything again, because the counter learned; what was only restored waits to be given."""
        if self._system is not None:
            self.set_system(self._system)
        for key in self._schemas:
            if self._child(key) is not None:
                self._book(key)
        for key in self.enrichment():
            self._book_text(key)

    def set_system(self, text: str) -> None:
        """Book a system prompt that is not part of the messages."""
        self._system = text
        tokens = self._counter.count(text)
        self._budget.add_child(InstructionSource.SYSTEM, _SYSTEM_KEY, tokens, GCPolicy.LOCKED)

    # -- tools --------------------------------------------------------------------------------------

    def set_tools(
        self, tools: Sequence[dict[str, Any]], policy: GCPolicy | Mapping[str, GCPolicy]
    ) -> None:
        """Book tool schemas; those of an earlier call that are not named again are removed.

        What a collection took out stays out, unless its policy is another now.
        """
        given = {_tool_name(tool) or f"tool_{number}": tool for number, tool in enumerate(tools)}
        left = self._left | {key for key in self._schemas if self._child(key) is None}
        for key in [key for key, _ in self._children(_TOOLS) if key not in given]:
            self._budget.remove_child(_TOOLS, key)
        self._schemas, self._left = given, set()
        self._policies = {key: _policy_of(key, policy) for key in given}
        for key in given:
            if key not in left or self._policies[key] not in _DISCOVERABLE:
                self._book(key)

    def live_tools(self) -> list[dict[str, Any]]:
        """Return the schemas to send now, in the order in which they were given."""
        return [tool for key, tool in self._schemas.items() if self._child(key) is not None]

    def bring_back(self, keys: Iterable[str | None]) -> None:
        """Send tool schemas again that had left."""
        for key in keys:
            if key in self._schemas and self._child(key) is None:
                self._book(key)

    def send_again(self, left: Iterable[tuple[str, str]]) -> None:
        """Send what a collection took out: the source and the key of each; not what the host has ended."""
        names = list(left)
        self.bring_back(key for source, key in names if source == _TOOLS.value)
        for source, key in names:
            is_text = source == InstructionSource.ENRICHMENT.value and key in self._texts
            if is_text and key not in self.enrichment():
                self._book_text(key)

    def hear(self, message: Message) -> None:
        """Keep the tools that a message names until the next answer, and note those that it calls as used."""
        if message.role == "assistant":
            self._let_go()
        discoverable = [key for key in self._schemas if self._policies[key] in _DISCOVERABLE]
        self._hold(key for key in discoverable if any(_names(p.text, key) for p in message.parts))
        called = {part.name for part in message.parts if part.kind == "tool_call"}
        self.bring_back(called)
        for key in called:
            if key is not None and self._child(key) is not None:
                self._budget.mark_used(_TOOLS, key)

    def _hold(self, keys: Iterable[str]) -> None:
        """Keep schemas for the next request: one that its own collection took out would never be seen."""
        for key in keys:
            self.bring_back((key,))
            child = self._child(key)
            if child is not None and child.gc_policy in _DISCOVERABLE:
                self._named[key] = child.gc_policy
                self._budget.set_policy(_TOOLS, key, GCPolicy.LOCKED)

    def _let_go(self) -> None:
        """Give the schemas that an answer was made with the policy back that they had."""
        for key, policy in self._named.items():
            if self._child(key) is not None:
                self._budget.set_policy(_TOOLS, key, policy)
        self._named.clear()

    def _book(self, key: str) -> None:
        tokens = self._counter.count(json.dumps(self._schemas[key], ensure_ascii=False))
        known, policy = self._child(key), self._policies[key]
        is_named = self._named.pop(key, None) is not None
        # A schema that was used once is locked, and stays so when it is named again.
        used = known is not None and known.gc_policy is GCPolicy.LOCKED and not is_named
        kept = GCPolicy.LOCKED if used and policy is GCPolicy.CONDITIONAL else policy
        self._budget.add_child(_TOOLS, key, tokens, kept)
        if is_named:
            self._hold((key,))

    def _child(self, key: str) -> SourceEntry | None:
        return self._budget.get_child(_TOOLS, key)

    # -- enrichment ---------------------------------------------------------------------------------

    def enrich(self, key: str, text: str) -> None:
        """Book text that goes with each request from now on; a blank one ends that."""
        if text.strip():
            self._texts[key] = text
            self._book_text(key)
        else:
            self._texts.pop(key, None)
            if self._budget.get_child(InstructionSource.ENRICHMENT, key) is not None:
                self._budget.remove_child(InstructionSource.ENRICHMENT, key)

    def _book_text(self, key: str) -> None:
        tokens = self._counter.count(self._texts[key])
        self._budget.add_child(InstructionSource.ENRICHMENT, key, tokens, GCPolicy.EPHEMERAL)

    def enrichment(self) -> dict[str, str]:
        """Return the texts to send now, by their keys."""
        live = (key for key, _ in self._children(InstructionSource.ENRICHMENT))
        return {key: self._texts[key] for key in live if key in self._texts}

    # -- stored -------------------------------------------------------------------------------------

    def to_docs(self) -> list[dict[str, Any]]:
        """Return what is booked, and the names of the tools that left, as documents.

        Schemas and texts are not stored: the host, which makes them, gives them again.
        """
        docs: list[dict[str, Any]] = [
            {
                "source": child.source.value,
                "key": key,
                "tokens": child.tokens,
                "policy": self._named.get(key, child.gc_policy).value,
                "created_at": child.created_at,
            }
            for source in _SOURCES
            for key, child in self._children(source)
            if not child.message_ids
        ]
        gone = self._left | {key for key in self._schemas if self._child(key) is None}
        return [
            *docs,
            *({"source": _TOOLS.value, "key": key, "left": True} for key in sorted(gone)),
        ]

    def restore(self, docs: Iterable[Mapping[str, Any]]) -> None:
        """Book again what `to_docs` returned, except enrichment, whose text is gone."""
        for doc in docs:
            source = InstructionSource(doc["source"])
            if doc.get("left"):
                self._left.add(doc["key"])
            elif source is not InstructionSource.ENRICHMENT:
                policy = GCPolicy(doc["policy"])
                self._budget.add_child(
                    source, doc["key"], doc["tokens"], policy, created_at=doc["created_at"]
                )

    def _children(self, source: InstructionSource) -> Iterator[tuple[str, SourceEntry]]:
        entry = self._budget.get_entry(source)
        return iter(() if entry is None else list(entry.children.items()))


def _policy_of(key: str, policy: GCPolicy | Mapping[str, GCPolicy]) -> GCPolicy:
    if isinstance(policy, Mapping):
        return GCPolicy(policy.get(key, GCPolicy.LOCKED))
    return GCPolicy(policy)


def _names(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _tool_name(tool: dict[str, Any]) -> str | None:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name if isinstance(name, str) and name else None
