"""InstructionBudget: the one ledger of what is in the context, by source, child and policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from ctxgc.budget.entry import SourceEntry
from ctxgc.budget.snapshot import BudgetSnapshot
from ctxgc.budget.source import GCPolicy, InstructionSource
from ctxgc.budget.view import BudgetView
from ctxgc.errors import InputError


class InstructionBudget(BudgetView):
    """Tokens by source and child. Totals are kept as it changes, so that asking costs nothing."""

    def set_entry(
        self,
        source: InstructionSource,
        tokens: int,
        gc_policy: GCPolicy | None = None,
        *,
        label: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: float | None = None,
        message_ids: Iterable[str] = (),
    ) -> SourceEntry:
        """Set a source's own tokens, beside its children; it keeps the time it was first set."""
        source = InstructionSource(source)
        before = self._own.get(source)
        entry = SourceEntry(
            source,
            tokens,
            source.default_policy if gc_policy is None else GCPolicy(gc_policy),
            label,
            MappingProxyType(self._children.setdefault(source, {})),
            dict(metadata or {}),
            self._born(created_at, before),
            tuple(message_ids),
        )
        self._totals.replace(_bare(before), _bare(entry))
        self._own[source] = entry
        return entry

    def add_child(
        self,
        source: InstructionSource,
        child_key: str,
        tokens: int,
        gc_policy: GCPolicy,
        *,
        label: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        created_at: float | None = None,
        message_ids: Iterable[str] = (),
    ) -> SourceEntry:
        """Add a child, or refresh the one with this key, which keeps the time of its first entry.

        Raises:
            InputError: the tokens are negative, or a name is empty or unknown.
        """
        entry = SourceEntry(
            source,
            tokens,
            gc_policy,
            label,
            {},
            dict(metadata or {}),
            self._born(created_at, self.get_child(source, child_key)),
            tuple(message_ids),
        )
        return self._put(child_key, entry)

    def remove_child(self, source: InstructionSource, child_key: str) -> SourceEntry:
        """Remove a child and return it.

        Raises:
            InputError: there is no such child; nothing was changed.
        """
        entry = self._known(source, child_key)
        source = entry.source
        del self._children[source][child_key]
        self._totals.replace(entry, None)
        self._index.remove(source, child_key, entry.message_ids)
        return entry

    def remove_messages(self, message_ids: Iterable[str]) -> tuple[SourceEntry, ...]:
        """Remove every child that these messages make up, and return them.

        Raises:
            InputError: a child holds one of them together with a message that would stay.
        """
        places = self._index.whole_places(set(message_ids))
        return tuple(self.remove_child(source, key) for source, key in places)

    def clear(self, source: InstructionSource) -> int:
        """Empty a source, children included, and return the tokens that this freed."""
        source = InstructionSource(source)
        freed = self._totals.of(source)
        for key in list(self._children.get(source, ())):
            self.remove_child(source, key)
        if source in self._own:
            entry = self._own[source]
            self.set_entry(source, 0, entry.gc_policy, label=entry.label, metadata=entry.metadata)
        return freed

    def set_policy(
        self, source: InstructionSource, child_key: str, gc_policy: GCPolicy
    ) -> SourceEntry:
        """Give a child another policy.

        Raises:
            InputError: there is no such child.
        """
        entry = self._known(source, child_key)
        return self._put(child_key, msgspec.structs.replace(entry, gc_policy=GCPolicy(gc_policy)))

    def mark_used(self, source: InstructionSource, child_key: str) -> SourceEntry:
        """Note a child's first successful use: CONDITIONAL becomes LOCKED, others stay."""
        entry = self._known(source, child_key)
        if entry.gc_policy is not GCPolicy.CONDITIONAL:
            return entry
        return self.set_policy(source, child_key, GCPolicy.LOCKED)

    def snapshot(self) -> BudgetSnapshot:
        """Return the budget as it is now."""
        entries = tuple(
            msgspec.structs.replace(entry, children=dict(entry.children))
            for entry in self._own.values()
        )
        return BudgetSnapshot(context_limit=self.context_limit, entries=entries)

    def restore(
        self, snapshot: BudgetSnapshot, sources: Iterable[InstructionSource] = InstructionSource
    ) -> None:
        """Bring these sources (else all) back to what they were; the limit comes back with all."""
        wanted = {InstructionSource(source) for source in sources}
        for source in wanted:
            self._forget(source)
        for entry in snapshot.entries:
            if entry.source in wanted:
                self._adopt(entry)
        if wanted == set(InstructionSource):
            self._set_limit(snapshot.context_limit)

    def restore_conversation_from_snapshot(self, snapshot: BudgetSnapshot) -> None:
        """Bring the conversation back to what it was, and leave all else as it is."""
        self.restore(snapshot, (InstructionSource.CONVERSATION,))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole budget as JSON-ready data."""
        return self.snapshot().to_dict()

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, clock: Callable[[], float] = time.time
    ) -> InstructionBudget:
        """Return the budget that `to_dict` described.

        Raises:
            InputError: a field is missing or wrong.
        """
        snapshot = BudgetSnapshot.from_dict(data)
        budget = cls(snapshot.context_limit, clock=clock)
        budget.restore(snapshot)
        return budget

    def _put(self, child_key: str, entry: SourceEntry) -> SourceEntry:
        source = entry.source
        if not child_key:
            raise InputError("child_key is empty", hint="name the child", field="child_key")
        if source not in self._own:
            self.set_entry(source, 0)
        before = self._children[source].get(child_key)
        if before is not None:
            self._index.remove(source, child_key, before.message_ids)
        self._totals.replace(before, entry)
        self._children[source][child_key] = entry
        self._index.add(source, child_key, entry.message_ids)
        return entry

    def _adopt(self, entry: SourceEntry) -> None:
        self.set_entry(
            entry.source,
            entry.tokens,
            entry.gc_policy,
            label=entry.label,
            metadata=entry.metadata,
            created_at=entry.created_at,
            message_ids=entry.message_ids,
        )
        for key, child in entry.children.items():
            self._put(key, child)

    def _forget(self, source: InstructionSource) -> None:
        self.clear(source)
        self._own.pop(source, None)

    def _known(self, source: InstructionSource, child_key: str) -> SourceEntry:
        entry = self.get_child(source, child_key)
        if entry is None:
            name = InstructionSource(source).value
            raise InputError(
                f"the budget has no child {child_key!r} under {name}",
                hint="look in get_entry(source).children",
                source=name,
                child_key=child_key,
            )
        return entry

    def _born(self, created_at: float | None, before: SourceEntry | None) -> float:
        if created_at is not None:
            return created_at
        return self._clock() if before is None or before.created_at is None else before.created_at


def _bare(entry: SourceEntry | None) -> SourceEntry | None:
    # Children are counted one by one as they come and go.
    return None if entry is None else msgspec.structs.replace(entry, children={})
