"""Where content comes from, and what a collection may do with it."""

from __future__ import annotations

from enum import StrEnum
from typing import NoReturn

from ctxgc.errors import InputError


class _Named(StrEnum):
    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = ", ".join(member.value for member in cls)
        raise InputError(f"{value!r} is no {cls.__name__}", hint=f"use one of {names}")


class InstructionSource(_Named):
    """Where a part of the context comes from."""

    SYSTEM = "system"
    PLUGIN = "plugin"
    ENRICHMENT = "enrichment"
    CONVERSATION = "conversation"

    @property
    def default_policy(self) -> GCPolicy:
        """The policy of a source that nobody gave one."""
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
