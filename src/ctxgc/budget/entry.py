"""SourceEntry: one line of a budget, with its source and the policy that says how readily it may leave."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from copy import copy
from enum import StrEnum
from typing import Any, NoReturn

import msgspec

from ctxgc.errors import InputError

# -- Sources and policies


class _Named(StrEnum):
    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = ", ".join(member.value for member in cls)
        raise InputError(f"{value!r} is not a {cls.__name__}", hint=f"use one of {names}")


class InstructionSource(_Named):
    """Where a part of the context comes from."""

    SYSTEM = "system"
    PLUGIN = "plugin"
    ENRICHMENT = "enrichment"
    CONVERSATION = "conversation"

    @property
    def default_policy(self) -> GCPolicy:
        """The policy of a source that was given none."""
        return _DEFAULTS[self]


class GCPolicy(_Named):
    """What a collection may do with an entry.

    LOCKED never leaves; PRESERVABLE only under pressure; PARTIAL leaves oldest first, recent turns
    and pins excepted; EPHEMERAL leaves first. CONDITIONAL (a discovered tool's schema) is ephemeral
    until its first successful use, and locked from then on.
    """

    LOCKED = "locked"
    PRESERVABLE = "preservable"
    PARTIAL = "partial"
    EPHEMERAL = "ephemeral"
    CONDITIONAL = "conditional"


_DEFAULTS = {
    InstructionSource.SYSTEM: GCPolicy.LOCKED,
    InstructionSource.PLUGIN: GCPolicy.LOCKED,
    InstructionSource.ENRICHMENT: GCPolicy.EPHEMERAL,
    InstructionSource.CONVERSATION: GCPolicy.PARTIAL,
}


class SourceEntry(msgspec.Struct, dict=True):
    """The tokens of one source or of one child of it, with the messages that they are in.

    It may be changed, as S2 does (`entry.tokens = 0`, `entry.children.clear()`): the budget that holds it
    counts at once what it says then.

    Raises:
        InputError: the tokens are negative or not a whole number, or a name is unknown.
    """

    source: InstructionSource
    tokens: int
    gc_policy: GCPolicy
    label: str | None = None
    children: MutableMapping[str, SourceEntry] = msgspec.field(default_factory=dict)
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    created_at: float | None = None
    message_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count("tokens", self.tokens, 0)
        # Nearly all are made from what is a member already, and to make one of a name takes long.
        if type(self.source) is not InstructionSource:
            msgspec.structs.force_setattr(self, "source", InstructionSource(self.source))
        if type(self.gc_policy) is not GCPolicy:
            msgspec.structs.force_setattr(self, "gc_policy", GCPolicy(self.gc_policy))
        msgspec.structs.force_setattr(self, "message_ids", tuple(self.message_ids))
        if self.created_at is None:
            msgspec.structs.force_setattr(self, "created_at", time.time())

    def __setattr__(self, name: str, value: Any) -> None:
        checked = _checked_field(name, value)
        if name in _BOOKED and "_ledger" in self.__dict__:
            ledger, holder = self.__dict__["_ledger"]
            ledger.change(holder, self, name, checked)
        else:
            super().__setattr__(name, checked)

    def total_tokens(self) -> int:
        """Return its own tokens plus those of all its children."""
        return sum(entry.tokens for entry in self.walk()) if self.children else self.tokens

    def walk(self) -> Iterator[SourceEntry]:
        """Yield this entry and everything under it."""
        stack: list[SourceEntry] = [self]
        while stack:
            entry = stack.pop()
            yield entry
            stack.extend(entry.children.values())

    def to_dict(self) -> dict[str, Any]:
        """Return every field as JSON-ready data."""
        own = msgspec.json.encode(msgspec.structs.replace(self, children={}), enc_hook=repr)
        data: dict[str, Any] = msgspec.json.decode(own)
        return data | {"children": {key: child.to_dict() for key, child in self.children.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SourceEntry:
        """Return the entry that `to_dict` described.

        Raises:
            InputError: a field is missing or wrong.
        """
        try:
            return msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            raise InputError(f"budget entry: {error}", hint="pass what to_dict() gave") from None


_BOOKED = ("source", "tokens", "gc_policy", "children", "message_ids")


def _checked_field(name: str, value: Any) -> Any:
    """Return what a field of an entry becomes when it is set to a value."""
    if name == "tokens":
        check_count("tokens", value, 0)
    if name == "source":
        return InstructionSource(value)
    if name == "gc_policy":
        return GCPolicy(value)
    return tuple(value) if name == "message_ids" else value


def check_count(field: str, value: object, least: int) -> None:
    """Raise InputError, naming the field, unless the value is a whole number from `least` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            f"{field} is {value!r}", hint=f"pass a whole number from {least} up", field=field
        )


def copied(entry: SourceEntry) -> SourceEntry:
    """Return an entry that no budget holds, with copies of all under it."""
    twin = copy(entry)  # faster than to make one, since nothing is checked again
    children = {}
    if entry.children:
        children = {key: copied(child) for key, child in entry.children.items()}
    msgspec.structs.force_setattr(twin, "children", children)
    msgspec.structs.force_setattr(twin, "metadata", dict(entry.metadata))
    return twin


def release(entry: SourceEntry) -> None:
    """Make an entry one that no budget holds, with all under it."""
    entry.__dict__.pop("_ledger", None)
    msgspec.structs.force_setattr(entry, "children", dict(entry.children))
    for child in entry.children.values():
        release(child)


# -- Snapshot


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A budget at one moment; later changes of the budget do not reach it."""

    context_limit: int
    entries: tuple[SourceEntry, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        entries = [entry.to_dict() for entry in self.entries]
        return {"context_limit": self.context_limit, "entries": entries}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BudgetSnapshot:
        """Return the snapshot that `to_dict` described.

        Raises:
            InputError: a field is missing, unknown or wrong.
        """
        try:
            return msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            raise InputError(f"budget: {error}", hint="pass what to_dict() gave") from None
