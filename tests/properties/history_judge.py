"""The judge of a session: what it must never do, told from the messages that went in and came out.

It works on plain data. Validity is judged by `ctxgc.testing.check_history`, which is written from the
providers' side; sizes are counted anew from what the session hands out. Nothing of the planner is used.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ctxgc import Session
from ctxgc.collector import GCResult
from ctxgc.core import Format, Message
from ctxgc.errors import PlanError
from ctxgc.testing import check_history
from ctxgc.tokens import message_tokens
from ctxgc.wire import parse
from tests.fakes import QuarterCounter
from tests.properties.history_cases import IGNORED, SYSTEM_TEXT, TOOL_SCHEMA, Json, open_calls

COUNTER = QuarterCounter()


class Snapshot:
    """The view of a session at one moment, as plain data."""

    def __init__(self, session: Session) -> None:
        history = session.history
        self.total = session.budget.total_tokens()
        self.collections = sum(bool(result.removal_list) for result in session.gc_history)
        self.ids = [message.message_id for message in history]
        self.rows = {message.message_id: _row(message) for message in history}
        self.users = [m.message_id for m in history if _asks(m)]
        self.instructions = [m.message_id for m in history if m.role == "system"]

    def data(self) -> list[Json]:
        """Return the messages as a provider gets them."""
        return [json.loads(self.rows[message_id]) for message_id in self.ids]


class Judge:
    """Follows one session and raises AssertionError at the first broken promise."""

    def __init__(self, session: Session, format: Format, *, beside: bool) -> None:  # noqa: A002
        self._session = session
        self._format = format
        self._beside = COUNTER.count(SYSTEM_TEXT) if beside else 0
        self._beside += COUNTER.count(json.dumps(TOOL_SCHEMA)) if beside else 0
        self._sizes: dict[str, int] = {}
        self.came_in: dict[str, str] = {}
        self.texts: dict[str, tuple[str, str]] = {}
        self.kept: set[str] = set()
        self.held: dict[str, int] = {}
        self.seen: Counter[str] = Counter()

    # -- what came in -------------------------------------------------------------------------------

    def took(self, chunk: Sequence[Json], segment_ids: Sequence[str]) -> None:
        """Judge that a chunk stands at the end of the view as it was handed in."""
        news = self._session.history[-len(chunk) :] if chunk else []
        _claim([_row(m) for m in news] == [_dump(raw) for raw in chunk], "it came in changed")
        self.came_in.update((m.message_id, _row(m)) for m in news)
        parts = [(m.message_id, part.text) for m in news for part in m.parts]
        _claim(len(parts) == len(segment_ids), "a part has no segment")
        self.texts.update(zip(segment_ids, parts, strict=True))
        self.sound()

    def sound(self) -> None:
        """Judge what holds at all times: a valid view, true books, nothing lost."""
        now = Snapshot(self._session)
        waiting = open_calls(now.data())
        breaches = check_history(now.data(), self._format, complete=not waiting, ignore=IGNORED)
        _claim(not breaches, f"the provider would refuse the view: {breaches[:1]}")
        counted = sum(map(self.size, now.rows.values())) + self._beside
        _claim(now.total == counted, f"the budget says {now.total}, the view has {counted}")
        order = [i for i in self.came_in if i in now.rows]
        _claim(order == [i for i in now.ids if i in self.came_in], "the order changed")

    def size(self, row: str) -> int:
        """Return the tokens of a message, counted from its text."""
        if row not in self._sizes:
            self._sizes[row] = message_tokens(parse(row, self._format, "m"), COUNTER)
        return self._sizes[row]

    # -- collections --------------------------------------------------------------------------------

    def collected(self, before: Snapshot, result: GCResult, target: int) -> None:
        """Judge one collection against the view before it."""
        after = Snapshot(self._session)
        _claim(result.success, f"the strategy was refused: {result.error}")
        _claim((result.tokens_before, result.tokens_after) == (before.total, after.total),
               f"it reports {result.tokens_before} -> {result.tokens_after}, "
               f"the budget {before.total} -> {after.total}")  # fmt: skip
        _claim(after.total <= before.total, "the tokens rose")
        short = max(0, after.total - target)
        _claim(result.shortfall == short, f"shortfall {result.shortfall}, in truth {short}")
        self._roots_stayed(before, after)
        self._removals_are_exact(before, after, result)
        self.sound()
        self._count(before, after, short)

    def guarded(self, before: Snapshot) -> None:
        """Judge what the guard made of a view before a request: several collections, or a recovery."""
        after = Snapshot(self._session)
        self._roots_stayed(before, after)
        self.sound()

    def sent(self, now: Snapshot, messages: list[Json]) -> None:
        """Judge that what is sent is the view."""
        _claim(messages == now.data(), "what is sent is not the view")
        self.seen["sent"] += 1

    def _count(self, before: Snapshot, after: Snapshot, short: int) -> None:
        gone = [i for i in before.ids if i not in after.rows]
        self.seen["collections"] += after.rows != before.rows
        self.seen["removals"] += len(gone)
        self.seen["edits"] += sum(after.rows.get(i, row) != row for i, row in before.rows.items())
        self.seen["additions"] += len(after.ids) + len(gone) - len(before.ids)
        self.seen["shortfalls" if short else "targets met"] += 1

    def _roots_stayed(self, before: Snapshot, after: Snapshot) -> None:
        asked = [i for i in before.users if i in self.came_in]
        held = {i for i, until in self.held.items() if until > before.collections}
        roots = {
            *before.instructions,
            *asked[:1],
            *asked[-1:],
            *(self.kept | held) & set(before.ids),
        }
        for message_id in roots:
            same = after.rows.get(message_id) == before.rows[message_id]
            _claim(same, f"a root left or changed: {before.rows[message_id]}")

    def _removals_are_exact(self, before: Snapshot, after: Snapshot, result: GCResult) -> None:
        freed = {
            i: self.size(row) - (self.size(after.rows[i]) if i in after.rows else 0)
            for i, row in before.rows.items()
            if after.rows.get(i) != row
        }
        listed = {item.child_key: item.tokens_freed for item in result.removal_list}
        _claim(listed == freed, f"removed {freed}, listed {listed}")
        _claim(len(result.removal_list) == len(freed), "a removal is listed twice")
        _claim(all(item.reason for item in result.removal_list), "a removal has no reason")
        added = sum(self.size(after.rows[i]) for i in after.ids if i not in before.rows)
        gained = sum(item.tokens_freed for item in result.removal_list) - added
        _claim(gained == before.total - after.total, "the removal list does not add up")

    def hold_ended(self) -> bool:
        """Tell whether a recalled message lost its protection by the last collection."""
        inside = self._session.inspect()
        return len(inside.log.applied) in inside.state.held_until.values()

    def repeated(self, before: Snapshot, result: GCResult | None) -> None:
        """Judge that a collection right after another one found nothing."""
        after = Snapshot(self._session)
        _claim(after.rows == before.rows and after.ids == before.ids,
               f"a second collection changed the view: {_difference(before, after)}")  # fmt: skip
        idle = result is None or (not result.removal_list and result.items_collected == 0)
        _claim(idle, "a second collection reports removals")

    # -- nothing is lost ----------------------------------------------------------------------------

    def conserved(self) -> None:
        """Judge that each text that came in is in the view or in the stash, and can be read."""
        rows = Snapshot(self._session).rows
        known = {segment.segment_id: segment for segment in self._session.segments()}
        for segment_id, (message_id, text) in self.texts.items():
            _claim(self._session.read(segment_id) == text, f"a text was lost: {text!r}")
            here = rows.get(message_id)
            whole = here == self.came_in[message_id]
            tier = known[segment_id].tier
            _claim(tier == "working" or not whole, f"{text!r} is in the view and stashed")
            _claim(tier == "stashed" or here is not None, f"{text!r} is gone but not stashed")

    def stashed(self) -> list[str]:
        """Return the segments that came in and are out of the view now."""
        tiers = {segment.segment_id: segment.tier for segment in self._session.segments()}
        return [segment_id for segment_id in self.texts if tiers[segment_id] == "stashed"]

    def recalled(self, segment_id: str, hold: int) -> None:
        """Recall a segment and judge that its message is back, byte for byte."""
        message_id, text = self.texts[segment_id]
        before = Snapshot(self._session)
        try:
            back = self._session.recall(segment_id)
        except PlanError:
            self._refused_to_recall(segment_id, text, before)
            return
        _claim(back.text == text, f"recall changed {text!r}")
        row = Snapshot(self._session).rows.get(message_id)
        _claim(row == self.came_in[message_id], f"a recall brought back {row}")
        self.held[message_id] = Snapshot(self._session).collections + hold
        self.seen["recalls"] += 1
        self.sound()

    def _refused_to_recall(self, segment_id: str, text: str, before: Snapshot) -> None:
        """Judge that what does not fit the window is only read, and the view as it was."""
        after = Snapshot(self._session)
        _claim(after.rows == before.rows, "a recall that was refused changed the view")
        _claim(self._session.read(segment_id) == text, f"nothing reads {segment_id}")
        self.seen["recalls refused"] += 1

    def undone(self, before: Snapshot) -> None:
        """Undo the last collection and judge that the view is what it was."""
        self._session.undo()
        after = Snapshot(self._session)
        _claim((after.ids, after.rows) == (before.ids, before.rows), "undo gave another view")
        self.seen["undos"] += 1
        self.sound()


def _difference(before: Snapshot, after: Snapshot) -> str:
    gone = [before.rows[i] for i in before.ids if i not in after.rows]
    added = [after.rows[i] for i in after.ids if i not in before.rows]
    edited = [
        (row, after.rows[i]) for i, row in before.rows.items() if after.rows.get(i, row) != row
    ]
    return f"gone {gone}, added {added}, edited {edited}"


def _asks(message: Message) -> bool:
    content = message.data.get("content")
    if message.data.get("role") != "user":
        return False
    blocks = content if isinstance(content, list) else ()
    return isinstance(content, str) or any(b.get("type") != "tool_result" for b in blocks)


def _row(message: Message) -> str:
    return _dump(message.data)


def _dump(data: Json) -> str:
    return json.dumps(data, ensure_ascii=True)


def _claim(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
