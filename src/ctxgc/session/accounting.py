"""ContextUsage: how full the context is, as an object and as the mapping that plugins read."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.core import Message
from ctxgc.guard import Zone
from ctxgc.session.rollback import trying
from ctxgc.strategies import opens_turn
from ctxgc.tokens import TokenCounter, message_tokens

# -- The books of a session: which message costs what, under which policy. One ledger for all


SYSTEM_KEY = "system_prompt"
_BESIDE = (InstructionSource.SYSTEM, InstructionSource.PLUGIN, InstructionSource.ENRICHMENT)


class Books:
    """Keeps the budget equal to the view, message by message."""

    def __init__(
        self, context_limit: int, counter: TokenCounter, clock: Callable[[], float]
    ) -> None:
        self.budget = InstructionBudget(context_limit, clock=clock)
        self.counter = counter
        self.policies: dict[str, GCPolicy] = {}
        """Policies that somebody gave to messages, in place of the usual ones."""
        self.message_total = 0
        """The tokens of all messages in the view."""
        self.born: dict[str, float] = {}
        """When each message first came in; a recall or an undo makes it no younger."""
        self.makers: dict[str, str] = {}
        """Who made the messages that the host did not send."""
        self._clock = clock
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

    def enter(self, message: Message) -> None:
        """Book a message of the view."""
        message_id = message.message_id
        source, policy = self._place(message)
        tokens = self.tokens(message)
        self.budget.add_child(
            source,
            message_id,
            tokens,
            self.policies.get(message_id, policy),
            label="Context Summary" if message.origin == "gc_summary" else message.role,
            created_at=self.birth(message_id),
            metadata={"created_by": self.makers[message_id]} if message_id in self.makers else {},
            message_ids=(message_id,),
        )
        self.message_total += tokens

    def birth(self, message_id: str) -> float:
        """Return when a message first came in: now, for one that never did."""
        return self.born.setdefault(message_id, self._clock())

    def leave(self, message: Message) -> None:
        """Take a message off the books."""
        for source, key in self.budget.children_of_message(message.message_id):
            self.message_total -= self.budget.remove_child(source, key).tokens
        self._sizes.pop(id(message), None)

    def forget(self, message_ids: Collection[str]) -> None:
        """Let another message be the first request if it is one of these, which were taken back."""
        if self._first_request in message_ids:
            self._first_request = None

    @contextmanager
    def forgetting(self, message_ids: Collection[str]) -> Iterator[None]:
        """Forget messages while the view changes; as before when that fails."""
        with trying(self, _first_request=self._first_request):
            self.forget(message_ids)
            yield

    def set_policy(self, message_id: str, policy: GCPolicy) -> None:
        """Give a message of the view another policy, for as long as the session lives."""
        for source, key in self.budget.children_of_message(message_id):
            self.budget.set_policy(source, key, policy)
        self.policies[message_id] = policy

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
        sizes = {
            _tool_name(tool) or f"tool_{number}": self.counter.count(
                json.dumps(tool, ensure_ascii=False)
            )
            for number, tool in enumerate(tools)
        }
        entry = self.budget.get_entry(InstructionSource.PLUGIN)
        for key in list(entry.children) if entry is not None else ():
            if key not in sizes:
                self.budget.remove_child(InstructionSource.PLUGIN, key)
        for key, tokens in sizes.items():
            known = self.budget.get_child(InstructionSource.PLUGIN, key)
            # A schema that was used once is locked, and stays so when it is named again.
            used = known is not None and known.gc_policy is GCPolicy.LOCKED
            kept = GCPolicy.LOCKED if used and policy is GCPolicy.CONDITIONAL else policy
            self.budget.add_child(InstructionSource.PLUGIN, key, tokens, kept)

    def recount(self, messages: Iterable[Message]) -> None:
        """Count everything again, after the counter has learned from reported usage."""
        for message in messages:
            self.leave(message)
            self.enter(message)

    def beside(self) -> list[dict[str, Any]]:
        """Return the children that no message makes up, as documents."""
        entries = filter(None, map(self.budget.get_entry, _BESIDE))
        return [
            {
                "source": child.source.value,
                "key": key,
                "tokens": child.tokens,
                "policy": child.gc_policy.value,
                "created_at": child.created_at,
            }
            for entry in entries
            for key, child in entry.children.items()
            if not child.message_ids
        ]

    def restore_beside(self, docs: Iterable[Mapping[str, Any]]) -> None:
        """Book again what `beside` returned."""
        for doc in docs:
            source, policy = InstructionSource(doc["source"]), GCPolicy(doc["policy"])
            self.budget.add_child(
                source, doc["key"], doc["tokens"], policy, created_at=doc["created_at"]
            )

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


# -- ContextUsage: how full the context is, as an object and as the mapping that plugins read


@dataclass(frozen=True, kw_only=True)
class ContextUsage(Mapping[str, Any]):
    """The size of the context now. `usage["percent_used"]` and `usage.get(...)` work as well.

    `target_tokens` is where a collection would land; `pinned_message_ids` may never leave.
    """

    total_tokens: int
    context_limit: int
    percent_used: float
    zone: Zone
    turns: int
    messages: int
    by_source: dict[str, int]
    by_type: dict[str, int]
    by_policy: dict[str, int]
    target_tokens: int
    stashed_tokens: int = 0
    exact: bool = True
    pinned_message_ids: frozenset[str] = frozenset()

    def __getitem__(self, key: str) -> Any:
        if key not in _NAMES:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data."""
        pinned = sorted(self.pinned_message_ids)
        return {**self, "zone": self.zone.value, "pinned_message_ids": pinned}


_NAMES: tuple[str, ...] = tuple(field.name for field in fields(ContextUsage))
