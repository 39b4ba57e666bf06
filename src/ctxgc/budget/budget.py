"""InstructionBudget: the one ledger of what is in the context, by source, child and policy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import msgspec

from ctxgc.budget.entry import (
    BudgetSnapshot,
    GCPolicy,
    InstructionSource,
    SourceEntry,
    check_count,
    copied,
    release,
)
from ctxgc.errors import InputError

# -- Children by message


_Place = tuple[InstructionSource, str]


class _MessageIndex:
    """Message id -> children, and back by counting."""

    def __init__(self) -> None:
        self._places: dict[str, dict[_Place, None]] = {}
        self._sizes: dict[_Place, int] = {}

    def add(self, source: InstructionSource, child_key: str, message_ids: Iterable[str]) -> None:
        """Note that this child holds these messages."""
        ids = set(message_ids)
        self._sizes[source, child_key] = len(ids)
        for message_id in ids:
            self._places.setdefault(message_id, {})[source, child_key] = None

    def remove(self, source: InstructionSource, child_key: str, message_ids: Iterable[str]) -> None:
        """Forget this child."""
        place = (source, child_key)
        self._sizes.pop(place, None)
        for message_id in set(message_ids):
            places = self._places[message_id]
            del places[place]
            if not places:
                del self._places[message_id]

    def places(self, message_id: str) -> tuple[_Place, ...]:
        """Return the children that hold this message, in order of entry."""
        return tuple(self._places.get(message_id, ()))

    def whole_places(self, message_ids: set[str]) -> tuple[_Place, ...]:
        """Return the children that hold nothing but these messages.

        Raises:
            InputError: a child holds one of them and another message.
        """
        covered = Counter(place for name in sorted(message_ids) for place in self.places(name))
        for place, count in covered.items():
            if count < self._sizes[place]:
                raise InputError(
                    f"budget child {place[1]!r} also holds messages that would stay",
                    hint="remove all messages of the child, or none",
                    child_key=place[1],
                )
        return tuple(covered)


# -- Running sums


class _Totals:
    """The running sums of a budget."""

    def __init__(self) -> None:
        self._sources: Counter[InstructionSource] = Counter()
        self._policies: Counter[GCPolicy] = Counter()

    def replace(self, before: SourceEntry | None, after: SourceEntry | None) -> None:
        """Take an entry and everything under it out, and put another in."""
        for entry, sign in ((before, -1), (after, 1)):
            if entry is not None:
                for part in entry.walk() if entry.children else (entry,):
                    self._sources[part.source] += sign * part.tokens
                    self._policies[part.gc_policy] += sign * part.tokens

    def all_tokens(self) -> int:
        """Return the sum of everything."""
        return self._sources.total()

    def of(self, source: InstructionSource) -> int:
        """Return the sum of one source."""
        return self._sources[source]

    def under(self, *policies: GCPolicy) -> int:
        """Return the sum under these policies."""
        return sum(self._policies[policy] for policy in policies)

    def by_source(self) -> dict[InstructionSource, int]:
        """Return the sum of each source."""
        return {source: self._sources[source] for source in InstructionSource}

    def by_policy(self) -> dict[GCPolicy, int]:
        """Return the sum under each policy."""
        return {policy: self._policies[policy] for policy in GCPolicy}


# -- Reading a budget


class BudgetView:
    """The questions that a budget answers; `InstructionBudget` adds what changes it."""

    def __init__(self, context_limit: int, *, clock: Callable[[], float] = time.time) -> None:
        self._set_limit(context_limit)
        self._clock = clock
        self._own: dict[InstructionSource, SourceEntry] = {}
        self._children: dict[InstructionSource, dict[str, SourceEntry]] = {}
        self._totals = _Totals()
        self._index = _MessageIndex()

    def get_entry(self, source: InstructionSource) -> SourceEntry | None:
        """Return the entry of a source with its children, or None if nothing was put there."""
        return self._own.get(InstructionSource(source))

    def get_child(self, source: InstructionSource, child_key: str | None) -> SourceEntry | None:
        """Return one child, or None."""
        # To make a member of a name takes longer than both look-ups together.
        children = self._children.get(source) or self._children.get(InstructionSource(source), {})
        return None if child_key is None else children.get(child_key)

    def children_of_message(self, message_id: str) -> tuple[tuple[InstructionSource, str], ...]:
        """Return the (source, child key) pairs that this message belongs to, in order of entry."""
        return self._index.places(message_id)

    def total_tokens(self) -> int:
        """Return the tokens of everything."""
        return self._totals.all_tokens()

    def tokens_by_source(self) -> dict[InstructionSource, int]:
        """Return the tokens of each source."""
        return self._totals.by_source()

    def tokens_by_policy(self) -> dict[GCPolicy, int]:
        """Return the tokens under each policy."""
        return self._totals.by_policy()

    def eligible_tokens(self) -> int:
        """Return the tokens that may leave without pressure: ephemeral, partial, conditional."""
        return self._totals.under(GCPolicy.EPHEMERAL, GCPolicy.PARTIAL, GCPolicy.CONDITIONAL)

    def preservable_tokens(self) -> int:
        """Return the tokens that may leave only under pressure."""
        return self._totals.under(GCPolicy.PRESERVABLE)

    def locked_tokens(self) -> int:
        """Return the tokens that never leave."""
        return self._totals.under(GCPolicy.LOCKED)

    def utilization(self) -> float:
        """Return the share of the context limit in use, in percent."""
        return 100.0 * self.total_tokens() / self.context_limit

    def _set_limit(self, context_limit: int) -> None:
        check_count("context_limit", context_limit, 1)
        self.context_limit = context_limit


# -- The ledger


class _Children(MutableMapping[str, SourceEntry]):
    """The children of an entry that a budget holds: what is put in or taken out is counted by it.

    `source` is None below the first level of children.
    """

    __slots__ = ("_entries", "_ledger", "_source")

    def __init__(
        self,
        ledger: InstructionBudget,
        entries: dict[str, SourceEntry],
        source: InstructionSource | None,
    ) -> None:
        self._ledger = ledger
        self._entries = entries
        self._source = source

    def __getitem__(self, key: str) -> SourceEntry:
        return self._entries[key]

    def __setitem__(self, key: str, entry: SourceEntry) -> None:
        self._ledger.enter(self._source, self._entries, key, entry)

    def __delitem__(self, key: str) -> None:
        if key not in self._entries:
            raise KeyError(key)
        self._ledger.leave(self._source, self._entries, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return repr(self._entries)


_OWN, _BELOW = 0, 1
_Holder = str | int
"""How an entry is held: by its key among the children of a source, as the source's own, or below those."""


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
        """Set a source's own tokens, in addition to its children; it keeps the time it was first set."""
        source = InstructionSource(source)
        before = self._own.get(source)
        entry = SourceEntry(
            source,
            tokens,
            source.default_policy if gc_policy is None else GCPolicy(gc_policy),
            label,
            _Children(self, self._children.setdefault(source, {}), source),
            dict(metadata or {}),
            self._born(created_at, before),
            tuple(message_ids),
        )
        if before is not None:
            self._uncount(_OWN, before)
            del before.__dict__["_ledger"]
        self._own[source] = entry
        self._count(_OWN, entry)
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
        self._uncount(child_key, entry)
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
        entry.gc_policy = gc_policy
        return entry

    def mark_used(self, source: InstructionSource, child_key: str) -> SourceEntry:
        """Note a child's first successful use: CONDITIONAL becomes LOCKED, others stay."""
        entry = self._known(source, child_key)
        if entry.gc_policy is not GCPolicy.CONDITIONAL:
            return entry
        return self.set_policy(source, child_key, GCPolicy.LOCKED)

    def snapshot(self) -> BudgetSnapshot:
        """Return the budget as it is now."""
        entries = tuple(map(copied, self._own.values()))
        return BudgetSnapshot(context_limit=self.context_limit, entries=entries)

    def restore(
        self,
        snapshot: BudgetSnapshot | Mapping[str, Any],
        sources: Iterable[InstructionSource] = InstructionSource,
    ) -> None:
        """Bring these sources (else all) back to what they were; the limit comes back with all.

        Raises:
            InputError: a snapshot that was given as a dictionary is wrong.
        """
        if not isinstance(snapshot, BudgetSnapshot):
            snapshot = BudgetSnapshot.from_dict(snapshot)
        wanted = {InstructionSource(source) for source in sources}
        for source in wanted:
            self._forget(source)
        for entry in snapshot.entries:
            if entry.source in wanted:
                self._adopt(entry)
        if wanted == set(InstructionSource):
            self._set_limit(snapshot.context_limit)

    def restore_conversation_from_snapshot(
        self, snapshot: BudgetSnapshot | Mapping[str, Any]
    ) -> None:
        """Bring the conversation back to what it was, and leave all else as it is.

        The snapshot is what `snapshot()` or `to_dict()` gave.
        """
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
            self._uncount(child_key, before)
        self._children[source][child_key] = entry
        self._count(child_key, entry)
        return entry

    # -- entries that are changed by whoever holds them ----------------------------------------------

    def change(self, holder: _Holder, entry: SourceEntry, field: str, value: Any) -> None:
        """Count a change of an entry that is held here."""
        if field == "source":
            raise InputError(
                f"an entry of {entry.source} stays under its source",
                hint="remove it, and add it under the other one",
                field="source",
            )
        if holder is _OWN and field == "children":
            entry.children.clear()
            entry.children.update(value)
            return
        self._uncount(holder, entry)
        msgspec.structs.force_setattr(entry, field, value)
        self._count(holder, entry)

    def enter(
        self,
        source: InstructionSource | None,
        entries: dict[str, SourceEntry],
        child_key: str,
        entry: SourceEntry,
    ) -> None:
        """Put an entry among the children of a source, or below."""
        if source is not None and entry.source is not source:
            raise InputError(
                f"an entry of {entry.source.value} cannot be a child of {source.value}",
                hint="give it the source of its parent",
                field="source",
            )
        own = copied(entry) if "_ledger" in entry.__dict__ else entry
        if source is not None:
            self._put(child_key, own)
            return
        if child_key in entries:
            self.leave(source, entries, child_key)
        entries[child_key] = own
        self._count(_BELOW, own)

    def leave(
        self, source: InstructionSource | None, entries: dict[str, SourceEntry], child_key: str
    ) -> None:
        """Take an entry from the children of a source, or from below."""
        if source is not None:
            self.remove_child(source, child_key)
        else:
            self._uncount(_BELOW, entries.pop(child_key))

    def _count(self, holder: _Holder, entry: SourceEntry) -> None:
        """Count an entry with all under it, and hear of its changes from now on."""
        if holder is _OWN:
            self._totals.replace(None, _bare(entry))
        else:
            self._totals.replace(None, entry)
            self._hear(entry.children)
            children = _Children(self, dict(entry.children), None)
            msgspec.structs.force_setattr(entry, "children", children)
        if isinstance(holder, str):
            self._index.add(entry.source, holder, entry.message_ids)
        entry.__dict__["_ledger"] = (self, holder)

    def _hear(self, children: Mapping[str, SourceEntry]) -> None:
        for entry in children.values():
            self._hear(entry.children)
            inner = _Children(self, dict(entry.children), None)
            msgspec.structs.force_setattr(entry, "children", inner)
            entry.__dict__["_ledger"] = (self, _BELOW)

    def _uncount(self, holder: _Holder, entry: SourceEntry) -> None:
        """Count an entry and all under it no longer, and let go of it."""
        self._totals.replace(_bare(entry) if holder is _OWN else entry, None)
        if isinstance(holder, str):
            self._index.remove(entry.source, holder, entry.message_ids)
        if holder is not _OWN:
            release(entry)

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
            self._put(key, copied(child))

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
