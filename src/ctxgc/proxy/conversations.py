"""Conversations: the sessions of requests, kept in the user's store and found again after a restart.

One id of an agent has several lines: its subagents, side questions and titles. They are kept apart by how
their histories begin: a request belongs to the line that it shares the most messages with.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.proxy.request_body import KnownMessages, RequestBody, UnreadableError
from ctxgc.session import Format, Session, Store, stop_flushing

MOST_LINES = 32
MOST_OPEN = 64
REWIND = 3
"""How many messages may be taken back in place: a retry, a side question. More is a line of its own."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says about the session it wants: the model, its window, and how it recalls."""

    model: str | None
    context_limit: int | None = None
    recall_call: str | None = None


OpenSession = Callable[[str, Asked], Session]


class Line:
    """One line of a conversation: its session, and what its last request was."""

    def __init__(self, name: str, session: Session, asked: Asked) -> None:
        self.name = name
        self.session = session
        self.asked = asked
        self.requests = 0
        self._beside: dict[str, bytes] = {}

    def follow(self, envelope: RequestBody) -> None:
        """Count the instructions and the tools that the request sends besides its messages."""
        for name in ("system", "instructions"):
            raw = envelope.raw(name)
            if raw is not None and self._is_new("system", raw):
                self.session.set_system(_text_of(envelope.field(name)))
        raw = envelope.raw("tools")
        if raw is not None and self._is_new("tools", raw):
            tools = envelope.field("tools")
            self.session.set_tools([tool for tool in tools or () if isinstance(tool, dict)])

    def _is_new(self, name: str, raw: bytes) -> bool:
        digest = blake2b(raw, digest_size=16).digest()
        return self._beside.get(name) != digest and not self._beside.update({name: digest})


class AgentLines:
    """All lines of one id. Use it under its lock."""

    def __init__(self, name: str, store: Store, open_session: OpenSession) -> None:
        self.lock = threading.RLock()
        self._name = name
        self._store = store
        self._open = open_session
        self._known = KnownMessages()
        self._lines: list[Line] | None = None

    def line_of(self, envelope: RequestBody, asked: Asked) -> tuple[Line, list[bytes]]:
        """Return the line that a request belongs to, and its messages as they are known again.

        Raises:
            UnreadableError: a message cannot be read, or there are too many lines.
            InputError: the window of the model is not known.
        """
        messages = self._known.read(envelope.messages)
        if self._lines is None:
            self._lines = list(self._stored(asked, envelope.form))
        shares = [(line.session.shared(messages), line) for line in self._lines]
        shared, line = max(shares, key=lambda each: each[0], default=(0, None))
        if (
            line is None
            or not shared
            or _is_fork(shared, len(line.session.arrivals()), len(messages))
        ):
            line = self._new_line(asked)
        elif line.asked != asked:
            line = self._reopened(line, asked)
        return line, messages

    def _stored(self, asked: Asked, form: Format) -> list[Line]:
        names = (self._name_of(number) for number in range(MOST_LINES))
        found = []
        for name in names:
            if not self._store.revision(name):
                break
            line = Line(name, self._open(name, asked), asked)
            if line.session.inspect().view.format in (None, form):
                found.append(line)
            else:
                _put_away(line)
        return found

    def _new_line(self, asked: Asked) -> Line:
        lines = self._lines if self._lines is not None else []
        taken = {line.name for line in lines}
        names = (self._name_of(number) for number in range(MOST_LINES))
        name = next((n for n in names if n not in taken and not self._store.revision(n)), None)
        if name is None:
            raise UnreadableError(f"the session has more than {MOST_LINES} lines")
        line = Line(name, self._open(name, asked), asked)
        self._lines = [*lines, line]
        return line

    def _reopened(self, line: Line, asked: Asked) -> Line:
        """Return a line whose session counts and weighs for another model."""
        _put_away(line)
        again = Line(line.name, self._open(line.name, asked), asked)
        self._lines = [again if each is line else each for each in self._lines or ()]
        return again

    def _name_of(self, number: int) -> str:
        return self._name if not number else f"{self._name}:{number + 1}"

    def close(self) -> None:
        """Make everything durable and forget the lines until the next request."""
        with self.lock:
            for line in self._lines or ():
                _put_away(line)
            self._lines = None


class Conversations:
    """The conversations of a store; those that were not heard of for long are put away."""

    def __init__(self, store: Store, open_session: OpenSession) -> None:
        self._store = store
        self._open = open_session
        self._found: OrderedDict[str, AgentLines] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, identity: str) -> AgentLines:
        """Return the conversation with an id, new or stored."""
        with self._lock:
            name = f"proxy:{identity}"
            known = self._found.pop(name, None) or AgentLines(name, self._store, self._open)
            self._found[name] = known
            idle = [self._found.popitem(last=False)[1]] if len(self._found) > MOST_OPEN else []
        for each in idle:
            each.close()
        return known

    def close(self) -> None:
        """Make everything durable."""
        for each in list(self._found.values()):
            each.close()


def _put_away(line: Line) -> None:
    """Make a line durable; its store, which others use too, stays open."""
    line.session.flush()
    stop_flushing(line.session)


def _is_fork(shared: int, known: int, now: int) -> bool:
    """Return whether a history that leaves a line is one of its own: not a retry, and not shrunken."""
    return shared < known - REWIND and shared < now - REWIND


def _text_of(system: Any) -> str:
    if isinstance(system, str):
        return system
    blocks = system if isinstance(system, list) else []
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
