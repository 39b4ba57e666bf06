"""Evidence of death: which results may leave before the next request, and by what right."""

from __future__ import annotations

from collections.abc import Mapping

from ctxgc.thrift.census import Census
from ctxgc.thrift.items import DEAF, Item
from ctxgc.thrift.kinds import Call
from ctxgc.thrift.presets import Preset

ELSEWHERE = 0.7
_NEVER = -1_000

WHY: Mapping[str, str] = {
    "edited": "file edited since",
    "elsewhere": "shown elsewhere",
    "idle": "idle",
    "view": "idle",
    "shell_view": "seen",
    "shell": "seen",
    "search": "seen",
    "paths": "seen",
    "edit": "seen",
    "todo": "newer list since",
    "other": "seen",
}


class Clues:
    """When files were last named or edited, and when the work was last checked or steered."""

    def __init__(self) -> None:
        self._named: dict[str, int] = {}
        self._edited: dict[str, int] = {}
        self._checked = _NEVER
        self._steered = _NEVER
        self.news = 0
        """How often something was heard that may let a view die sooner."""
        self._lists: dict[str, dict[str, None]] = {}

    def call(self, call: Call, request: int) -> None:
        """Take in a tool call that the answer to a request made."""
        self._named.update(dict.fromkeys(call.named, request))
        self._edited.update(dict.fromkeys(call.edited, request))
        if call.checks:
            self._checked = request
        if call.checks or call.edited:
            self.news += 1

    def touch(self, path: str, request: int) -> None:
        """A file was as good as named: a new result stands on an old view of it."""
        self._named[path] = request

    def write_list(self, tool: str, source: str) -> None:
        """Take in a to-do list that a tool wrote."""
        self._lists.setdefault(tool, {}).setdefault(source)

    def drop_list(self, source: str) -> None:
        """A to-do list was not written after all, or is no longer shown."""
        for lists in self._lists.values():
            lists.pop(source, None)

    def is_replaced(self, item: Item) -> bool:
        """Tell whether the tool of a to-do list has written a newer one."""
        lists = self._lists.get(item.call.tool, {})
        return item.source in lists and next(reversed(lists)) != item.source

    def user(self, request: int) -> None:
        """Take in a message of the user."""
        self._steered = request
        self.news += 1

    def idle(self, item: Item, request: int) -> int:
        """Return for how many requests nobody named a view's file, at most since it was first sent."""
        named = self._named.get(item.call.path, _NEVER)
        return min(request - item.born, request - named - 1)

    def edited_since(self, item: Item) -> bool:
        """Tell whether a view's file was edited after it was viewed."""
        return self._edited.get(item.call.path, _NEVER) >= item.born

    def bonus(self, item: Item, how: Preset) -> int:
        """Return the idle requests that a check or a word of the user since is worth."""
        last = max(self._named.get(item.call.path, _NEVER), item.born - 1)
        checked = how.after_check if self._checked > last else 0
        return checked + (how.after_user if self._steered > last else 0)


def evidence(
    item: Item, clues: Clues, census: Census, how: Preset, request: int
) -> tuple[str | None, int]:
    """Return why an item may leave (None while it may not) and for how long it was idle."""
    age = request - item.born
    if age < 1 or (item.kind == "todo" and not clues.is_replaced(item)):
        return None, 0
    if item.kind != "view":
        return item.kind, age
    idle = clues.idle(item, request)
    if clues.edited_since(item):
        return ("edited" if idle >= 1 else None), 0
    if _stands_elsewhere(item, census):
        return "elsewhere", idle
    counted = idle + (clues.bonus(item, how) if idle >= how.bonus_from else 0)
    return ("idle" if counted >= how.hold else None), counted


def next_look(
    item: Item, why: str | None, clues: Clues, how: Preset, request: int
) -> tuple[int, int]:
    """Return before which request an item that nobody wakes is as it is now, and what it has heard."""
    if item.kind == "todo" or request <= item.born:
        return request + 1, DEAF
    if why is not None:
        return item.plan_until, DEAF
    if clues.edited_since(item):
        return request + 1, DEAF
    idle = clues.idle(item, request)
    if idle < how.bonus_from:
        return request + min(how.hold, how.bonus_from) - idle, DEAF
    return request + how.hold - idle - clues.bonus(item, how), clues.news


def overdue(item: Item, clues: Clues, how: Preset, request: int) -> int:
    """Return for how many requests an item could have left already, as far as its age tells."""
    if item.kind == "todo":
        return 0
    last = how.hold if item.kind == "view" else 1
    idle = clues.idle(item, request) if item.kind == "view" else request - item.born
    return max(0, idle - last)


def haunted(
    item: Item, why: str | None, idle: int, how: Preset, *, delay: int, request: int
) -> tuple[str | None, int]:
    """Return the evidence against an item whose like was recalled after it had left.

    It is held `delay` requests longer, and no class of it leaves young.
    """
    is_due = idle >= how.hold + delay if why == "idle" else request - item.born > delay
    return (why if is_due else None), max(0, idle - delay)


def _stands_elsewhere(item: Item, census: Census) -> bool:
    """Tell whether most lines of a view stand in other messages too."""
    if item.elsewhere is None:
        keys = [item.text.keys[line] for line in item.shown if item.text.keys[line]]
        others = sum(1 for key in keys if census.keys[key] > 1)
        item.elsewhere = bool(keys) and others >= ELSEWHERE * len(keys)
    return item.elsewhere
