"""A target: one file of an agent, and what is ours in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxgc.agents import json_text, toml_text

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target(ABC):
    """One configuration file that an installation changes."""

    path: Path

    @abstractmethod
    def add(self, text: str) -> str:
        """Return the text with our entries; the same text when they are all there already."""

    @abstractmethod
    def remove(self, text: str, before: str) -> str:
        """Return the text without our entries; `before` is what the file held before the installation."""

    @property
    def where(self) -> str:
        """How errors name the file."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class JsonTarget(Target):
    """A JSON file: members that are put, and items that are added to lists.

    Attributes:
        members: path -> value; replaced if another value of ours stands there.
        optional: path -> value; only put where nothing is.
        items: path of a list -> items of ours.
        ours: tells whether an item of a list, or an optional value, is ours.
    """

    members: dict[KeyPath, Any] = field(default_factory=dict)
    optional: dict[KeyPath, Any] = field(default_factory=dict)
    items: dict[KeyPath, list[Any]] = field(default_factory=dict)
    ours: Callable[[Any], bool] = lambda _: False

    def add(self, text: str) -> str:
        """Return the text with our entries."""
        value = json_text.parse(text, self.where)
        if self._is_complete(value):
            return text
        text = self._without_items(text)
        for path, member in self.members.items():
            text = json_text.put(text, path, member, self.where)
        for path, member in self.optional.items():
            there = _at(value, path)
            if there is None or self.ours(there):
                text = json_text.put(text, path, member, self.where)
        for path, items in self.items.items():
            for item in items:
                text = json_text.append(text, path, item, self.where)
        return text

    def remove(self, text: str, before: str) -> str:
        """Return the text without our entries, and without what held only them."""
        rest = self._without_items(text)
        for path in self.members:
            rest = json_text.drop(rest, path, self.where)
        for path in self.optional:
            if self.ours(_at(json_text.parse(rest, self.where), path)):
                rest = json_text.drop(rest, path, self.where)
        if rest == text:
            return text
        known = json_text.parse(before, self.where)
        holders = (*(path[:-1] for path in (*self.members, *self.optional)), *self.items)
        for path in holders:
            rest = self._without_empty(rest, path, known)
        return rest

    def _is_complete(self, value: Any) -> bool:
        return (
            all(_at(value, path) == member for path, member in self.members.items())
            and all(
                (there := _at(value, path)) == member or not self._may_put(there)
                for path, member in self.optional.items()
            )
            and all(
                [i for i in _listed(_at(value, path)) if self.ours(i)] == items
                for path, items in self.items.items()
            )
        )

    def _may_put(self, there: Any) -> bool:
        return there is None or self.ours(there)

    def _without_items(self, text: str) -> str:
        for path in self.items:
            found = _listed(_at(json_text.parse(text, self.where), path))
            for place in reversed(range(len(found))):
                if self.ours(found[place]):
                    text = json_text.drop(text, (*path, place), self.where)
        return text

    def _without_empty(self, text: str, path: KeyPath, before: Any) -> str:
        while path and _at(before, path) is None:
            if _at(json_text.parse(text, self.where), path) not in ({}, []):
                return text
            text = json_text.drop(text, path, self.where)
            path = path[:-1]
        return text


@dataclass(frozen=True, slots=True)
class TomlTarget(Target):
    """A TOML file with one table of ours."""

    table: KeyPath = ()
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, text: str) -> str:
        """Return the text with our table."""
        if _at(toml_text.parse(text, self.where), self.table) == self.values:
            return text
        return toml_text.put_table(text, self.table, self.values, self.where)

    def remove(self, text: str, before: str) -> str:  # noqa: ARG002 (a table holds only ours)
        """Return the text without our table."""
        return toml_text.drop_table(text, self.table, self.where)


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
