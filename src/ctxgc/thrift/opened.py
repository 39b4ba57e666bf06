"""The open items: results that are no stubs yet. What concerns a view wakes it, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxgc.thrift.items import Item

Index = dict[str, dict[str, Item]]


class Opened:
    """The items that may still leave, in the order of the view."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._in_order = True
        self._by_path: Index = {}
        self._by_key: Index = {}

    def __contains__(self, item: Item) -> bool:
        return item.source in self._items

    def __iter__(self) -> Iterator[Item]:
        return reversed(self.newest_first())

    def newest_first(self) -> list[Item]:
        """Return the items, the last one of the view first."""
        if not self._in_order:
            found = sorted(self._items.values(), key=_standing)
            self._items, self._in_order = {item.source: item for item in found}, True
        return list(reversed(self._items.values()))

    def add(self, item: Item) -> None:
        """Take in an item."""
        if self._items:
            last = next(reversed(self._items.values()))
            self._in_order = self._in_order and _standing(last) < _standing(item)
        self._items[item.source] = item
        if item.kind == "view":
            _put(self._by_path, (item.call.path,), item)
            _put(self._by_key, item.text.line_keys, item)

    def drop(self, item: Item) -> None:
        """Let go of an item, if it is there."""
        if self._items.pop(item.source, None) is not None and item.kind == "view":
            _take(self._by_path, (item.call.path,), item)
            _take(self._by_key, item.text.line_keys, item)

    def hear(self, paths: Iterable[str]) -> None:
        """Wake the views of files that were named, edited or touched."""
        for path in paths:
            for item in self._by_path.get(path, {}).values():
                item.wake()

    def see(self, keys: frozenset[str]) -> None:
        """Wake the views that show a line which came or went in some message."""
        for key in self._by_key.keys() & keys:
            for item in self._by_key[key].values():
                item.wake()
                item.elsewhere = None


def _standing(item: Item) -> tuple[int, int]:
    return item.place, item.part


def _put(index: Index, keys: Iterable[str], item: Item) -> None:
    for key in keys:
        index.setdefault(key, {})[item.source] = item


def _take(index: Index, keys: Iterable[str], item: Item) -> None:
    for key in keys:
        del index[key][item.source]
        if not index[key]:
            del index[key]
