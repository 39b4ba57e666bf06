"""Evidence of death: which results may leave before the next request, and by what right."""

from __future__ import annotations

from collections.abc import Mapping

from ctxgc.thrift.census import Census
from ctxgc.thrift.items import Item
from ctxgc.thrift.kinds import Call
from ctxgc.thrift.presets import Preset

ELSEWHERE = 0.7
_LOOK_AGAIN = 4
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
        self._heard: dict[str, int] = {}

    def call(self, call: Call, request: int) -> None:
        """Take in a tool call that the answer to a request made."""
        self._named.update(dict.fromkeys(call.named, request))
        self._edited.update(dict.fromkeys(call.edited, request))
        for path in call.named | call.edited:
            self._heard[path] = self._heard.get(path, 0) + 1
        if call.checks:
            self._checked = request
        if call.checks or call.edited:
            self.news += 1

    def touch(self, path: str, request: int) -> None:
        """A file was as good as named: a new result stands on an old view of it."""
        self._named[path] = request
        self._heard[path] = self._heard.get(path, 0) + 1

    def heard(self, path: str) -> int:
        """Return how often a file was named, edited or touched."""
        return self._heard.get(path, 0)

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
    if _stands_elsewhere(item, census, request):
        return "elsewhere", idle
    counted = idle + (clues.bonus(item, how) if idle >= how.bonus_from else 0)
    if counted >= how.hold:
        return "idle", counted
    item.rest(min(_rest(idle, counted, how) + request, item.same_at + _LOOK_AGAIN), clues.news)
    return None, counted


def sure_until(item: Item, why: str | None) -> int:
    """Return before which request an item keeps its right to leave if nothing is heard of its file."""
    if why is None or item.kind == "todo":
        return 0
    looks = item.kind == "view" and why != "edited"
    return min(item.plan_until, item.same_at + _LOOK_AGAIN) if looks else item.plan_until


def _rest(idle: int, counted: int, how: Preset) -> int:
    """Return for how many requests nothing but news can make an idle view die."""
    left = how.hold - counted
    return min(left, how.bonus_from - idle) if idle < how.bonus_from else left


def haunted(
    item: Item, why: str | None, idle: int, how: Preset, *, delay: int, request: int
) -> tuple[str | None, int]:
    """Return the evidence against an item whose like was recalled after it had left.

    It is held `delay` requests longer, and no class of it leaves young.
    """
    is_due = idle >= how.hold + delay if why == "idle" else request - item.born > delay
    return (why if is_due else None), max(0, idle - delay)


def _stands_elsewhere(item: Item, census: Census, request: int) -> bool:
    """Tell whether most lines of a view stand in other messages too; looked at now and then."""
    if item.same_at < 0 or request - item.same_at >= _LOOK_AGAIN:
        item.same_at = request
        keys = [item.text.keys[line] for line in item.shown if item.text.keys[line]]
        others = sum(1 for key in keys if census.keys[key] > 1)
        item.same_elsewhere = bool(keys) and others >= ELSEWHERE * len(keys)
    return item.same_elsewhere
