"""A draft: the new history while a strategy works on it, with the books kept at every move."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ctxgc.budget import InstructionSource
from ctxgc.core.message import Message
from ctxgc.strategies.base import GCRemovalItem


class Draft:
    """A history from which messages leave, and in which others change or come in.

    `tokens` is what the context holds now. Each message that left or shrank has one removal item.
    """

    def __init__(
        self, history: list[Message], tokens: int, count: Callable[[Message], int]
    ) -> None:
        self.before = list(history)
        self.tokens = tokens
        self._tokens_before = tokens
        self._count = count
        self._now: dict[str, Message | None] = {m.message_id: m for m in history}
        self._size: dict[str, int] = {}
        self._items: dict[str, GCRemovalItem] = {}
        self._cleared: list[GCRemovalItem] = []
        self._inserted: dict[str, list[Message]] = {}
        self.added: list[Message] = []
        self.has_removed = False

    def size(self, message_id: str) -> int:
        """Return the tokens that a message of the draft has now; none when it left."""
        message = self._now[message_id]
        if message is None:
            return 0
        size = self._size.get(message_id)
        if size is None:
            size = self._size[message_id] = self._count(message)
        return size

    @property
    def freed(self) -> int:
        """The tokens that the context holds less than before."""
        return self._tokens_before - self.tokens

    def get(self, message_id: str) -> Message | None:
        """Return a message as it stands in the draft; None when it left."""
        return self._now[message_id]

    def remove(self, message_id: str, reason: str) -> None:
        """Take a message out."""
        self._book(message_id, self.size(message_id), reason)
        self._now[message_id] = None
        self.has_removed = True

    def remove_all(self, message_ids: Iterable[str], reason: str) -> None:
        """Take several messages out for the same reason."""
        for message_id in message_ids:
            if self._now[message_id] is not None:
                self.remove(message_id, reason)

    def replace(self, message: Message, reason: str) -> None:
        """Put a smaller message in the place of the one with its id."""
        size = self._count(message)
        self._book(message.message_id, self.size(message.message_id) - size, reason)
        self._now[message.message_id] = message
        self._size[message.message_id] = size

    def clear(self, item: GCRemovalItem) -> None:
        """Clear a whole source: its messages leave, and what it held beside them is freed."""
        held = sum(self.size(i) for i in item.message_ids if self._now.get(i) is not None)
        for message_id in item.message_ids:
            if self._now.get(message_id) is not None:
                self.remove(message_id, item.reason)
                del self._items[message_id]
        self.tokens -= item.tokens_freed - held
        self._cleared.append(item)

    def release(self, item: GCRemovalItem) -> None:
        """Free a child of the budget that no message makes up, such as a tool schema."""
        self.tokens -= item.tokens_freed
        self._cleared.append(item)

    def insert(self, message: Message, before: str | None) -> None:
        """Put a new message in front of another's place, even if that one left; None: at the end."""
        self._inserted.setdefault(before or "", []).append(message)
        self.added.append(message)
        self.tokens += self._count(message)

    def withdraw(self, message: Message) -> None:
        """Take a new message back that was put in before."""
        self.added.remove(message)
        for inserted in self._inserted.values():
            inserted[:] = [m for m in inserted if m is not message]
        self.tokens -= self._count(message)

    def renew(self, message: Message, other: Message) -> None:
        """Put another new message where one was put in before."""
        self.added[self.added.index(message)] = other
        for inserted in self._inserted.values():
            inserted[:] = [other if m is message else m for m in inserted]
        self.tokens += self._count(other) - self._count(message)

    def history(self) -> list[Message]:
        """Return the new history."""
        result: list[Message] = []
        for old in self.before:
            result.extend(self._inserted.get(old.message_id, ()))
            now = self._now[old.message_id]
            if now is not None:
                result.append(now)
        return [*result, *self._inserted.get("", ())]

    def items(self) -> list[GCRemovalItem]:
        """Return what left or shrank, in the order of the history."""
        moved = [self._items[m.message_id] for m in self.before if m.message_id in self._items]
        return [*self._cleared, *moved]

    def removed(self) -> list[Message]:
        """Return the messages that left, as they were."""
        return [m for m in self.before if self._now[m.message_id] is None]

    def _book(self, message_id: str, freed: int, reason: str) -> None:
        known = self._items.get(message_id)
        self._items[message_id] = GCRemovalItem(
            source=_source(self._now[message_id]),
            child_key=message_id,
            tokens_freed=freed + (known.tokens_freed if known else 0),
            reason=reason,
            message_ids=(message_id,),
        )
        self.tokens -= freed


def _source(message: Message | None) -> InstructionSource:
    if message is not None and message.role == "system":
        return InstructionSource.SYSTEM
    return InstructionSource.CONVERSATION
