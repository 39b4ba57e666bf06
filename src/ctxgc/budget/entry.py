"""SourceEntry: one line of the budget."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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


class SourceEntry(msgspec.Struct, frozen=True):
    """The tokens of one source or of one child of it, with the messages that they are in.

    It cannot be changed: the budget is the only ledger, and hands out a new entry after a change.

    Raises:
        InputError: the tokens are negative or not a whole number, or a name is unknown.
    """

    source: InstructionSource
    tokens: int
    gc_policy: GCPolicy
    label: str | None = None
    children: Mapping[str, SourceEntry] = msgspec.field(default_factory=dict)
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)
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

    def total_tokens(self) -> int:
        """Return its own tokens plus those of all its children."""
        return sum(entry.tokens for entry in self.walk())

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


def check_count(field: str, value: object, least: int) -> None:
    """Raise InputError, naming the field, unless the value is a whole number from `least` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(
            f"{field} is {value!r}", hint=f"pass a whole number from {least} up", field=field
        )
