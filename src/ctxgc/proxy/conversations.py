"""Conversations: the sessions of requests, kept in the user's store and found again after a restart.

One id of an agent has several lines: its subagents, side questions and titles. They are kept apart by how
their histories begin: a request belongs to the line that it shares the most messages with.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.proxy.cache_watch import CacheWatch
from ctxgc.proxy.own_compaction import checkpoint_of
from ctxgc.proxy.recall_loop import HiddenTurn, unfolded
from ctxgc.proxy.request_body import KnownMessages, RequestBody, UnreadableError
from ctxgc.session import Format, Put, Session, Store, stop_flushing

PREFIX = "proxy:"
"""How the names of the proxy's sessions begin, in a store that others use too."""
SPENT = "spent"
"""The key under which a session keeps what its requests cost."""
HIDDEN = "hidden:"
"""How the keys begin under which it keeps what its client did not see of the model's turns."""
OUR_TOOLS = "our_tools"
"""The key that says that our tools are sent in it."""
MOST_LINES = 32
MOST_OPEN = 64
REWIND = 3
"""How many messages may be taken back in place: a retry, a side question. More is a line of its own."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says about the session it wants: the model, its window, and how it recalls."""

    model: str | None
    context_limit: int | None = None
    recall_call: str | None = None
    recalls_here: bool = False
    cache_seconds: float | None = None


OpenSession = Callable[[str, Asked], Session]


class Line:
    """One line of a conversation: its session, and what its last request was."""

    def __init__(self, name: str, session: Session, asked: Asked) -> None:
        self.name = name
        self.session = session
        self.asked = asked
        self.requests = 0
        self.spent = spent_of(session.inspect().archive.store, name)
        """The dollars that its requests cost, by day."""
        self.watch = CacheWatch()
        self.hidden, self.has_our_tools = _recalls_of(session.inspect().archive.store, name)
        """What its client did not see of the model's turns; whether our tools are among those sent."""
        self._beside: dict[str, bytes] = {}

    def follow(self, envelope: RequestBody) -> frozenset[str]:
        """Count the instructions and the tools of a request, and return which of them have changed."""
        changed: set[str] = set()
        for name in ("system", "instructions"):
            raw = envelope.raw(name)
            if raw is not None and self._is_new("system", raw, changed):
                self.session.set_system(_text_of(envelope.field(name)))
        raw = envelope.raw("tools")
        if raw is not None and self._is_new("tools", raw, changed):
            self._count_tools(envelope)
        return frozenset(changed)

    def _count_tools(self, envelope: RequestBody) -> None:
        own = [tool for tool in envelope.field("tools") or () if isinstance(tool, dict)]
        ours = self.session.tools(envelope.form) if self.has_our_tools else []
        self.session.set_tools([*own, *ours])

    def send_our_tools(self, envelope: RequestBody) -> None:
        """Send our tools from now on: taken away again, they would break the cached prefix once more."""
        self.has_our_tools = True
        self._count_tools(envelope)
        self.session.inspect().archive.later(Put("state", OUR_TOOLS, {"sent": True}))

    def hide(self, turns: Mapping[str, HiddenTurn]) -> None:
        """Remember what the client did not see of the model's turns."""
        self.hidden.update(turns)
        for known, turn in turns.items():
            doc = msgspec.to_builtins(turn)
            self.session.inspect().archive.later(Put("state", f"{HIDDEN}{known}", doc))

    def _is_new(self, name: str, raw: bytes, changed: set[str]) -> bool:
        digest, before = blake2b(raw, digest_size=16).digest(), self._beside.get(name)
        self._beside[name] = digest
        if before not in (None, digest):
            changed.add(name)
        return before != digest


class AgentLines:
    """All lines of one id. Use it under its lock."""

    def __init__(self, name: str, store: Store, open_session: OpenSession) -> None:
        self.lock = threading.RLock()
        self.name = name
        self._store = store
        self._open = open_session
        self._known = KnownMessages()
        self._lines: list[Line] = []
        self._foreign: set[str] = set()
        """Lines of the store that are in another format."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines that are open."""
        return tuple(self._lines)

    def spent(self) -> float:
        """Return the dollars that all open lines have cost."""
        return sum(sum(line.spent.values()) for line in self._lines)

    def current(self, line: Line) -> Line:
        """Return a line as it is open now: another process, or another model, may have had it opened anew."""
        return next((each for each in self._lines if each.name == line.name), line)

    def whole(self, envelope: RequestBody, asked: Asked) -> RequestBody:
        """Return a request with what its client did not see of the model's turns."""
        self.catch_up(asked, envelope.form)
        hidden = {known: turn for line in self._lines for known, turn in line.hidden.items()}
        return unfolded(envelope, hidden)

    def line_of(self, envelope: RequestBody, asked: Asked) -> tuple[Line, list[bytes]]:
        """Return the line that a whole request belongs to, and its messages as they are known again.

        Raises:
            UnreadableError: a message cannot be read, or there are too many lines.
            InputError: the window of the model is not known.
        """
        messages = self._known.read(envelope.messages)
        shares = [(line.session.shared(messages), line) for line in self._lines]
        shared, line = max(shares, key=lambda each: each[0], default=(0, None))
        if (
            line is None
            or not shared
            or _is_fork(shared, len(line.session.arrivals()), len(messages))
        ):
            line = self._compacted_line(messages) or self._new_line(asked)
        if line.asked != asked:
            line = self._reopened(line, asked)
        return line, messages

    def _compacted_line(self, messages: list[bytes]) -> Line | None:
        """Return the line that a history goes on with after our own compaction; None if it does not."""
        checkpoint = checkpoint_of(messages)
        if checkpoint is None:
            return None
        for line in self._lines:
            if checkpoint in {each.checkpoint_id for each in line.session.checkpoints()}:
                return line
        return None

    def catch_up(self, asked: Asked, form: Format) -> None:
        """Open the lines that are stored and not open here, and anew those that another process wrote to."""
        known = {line.name: line for line in self._lines}
        for number in range(MOST_LINES):
            name = self._name_of(number)
            revision, line = self._store.revision(name), known.get(name)
            if line is not None and revision != line.session.inspect().archive.revision:
                self._reopened(line, line.asked)
            elif line is None and not revision:
                break
            elif line is None and name not in self._foreign:
                self._open_stored(name, asked, form)

    def _open_stored(self, name: str, asked: Asked, form: Format) -> None:
        line = Line(name, self._open(name, asked), asked)
        if line.session.inspect().view.format in (None, form):
            self._lines = [*self._lines, line]
        else:
            self._foreign.add(name)
            _put_away(line)

    def _new_line(self, asked: Asked) -> Line:
        taken = {line.name for line in self._lines}
        names = (self._name_of(number) for number in range(MOST_LINES))
        name = next((n for n in names if n not in taken and not self._store.revision(n)), None)
        if name is None:
            raise UnreadableError(f"the session has more than {MOST_LINES} lines")
        line = Line(name, self._open(name, asked), asked)
        self._lines = [*self._lines, line]
        return line

    def _reopened(self, line: Line, asked: Asked) -> Line:
        """Return a line with its session as it is stored, which counts and weighs for what is asked now."""
        if self._store.revision(line.name) == line.session.inspect().archive.revision:
            _put_away(line)
        else:
            stop_flushing(line.session)
        again = Line(line.name, self._open(line.name, asked), asked)
        again.watch = line.watch
        days = {*line.spent, *again.spent}
        again.spent = {d: max(line.spent.get(d, 0.0), again.spent.get(d, 0.0)) for d in days}
        self._lines = [again if each is line else each for each in self._lines]
        return again

    def _name_of(self, number: int) -> str:
        return self.name if not number else f"{self.name}:{number + 1}"

    def close(self) -> None:
        """Make everything durable and forget the lines until the next request."""
        with self.lock:
            for line in self._lines:
                _put_away(line)
            self._lines, self._foreign = [], set()


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
            name = f"{PREFIX}{identity}"
            known = self._found.pop(name, None) or AgentLines(name, self._store, self._open)
            self._found[name] = known
            idle = [self._found.popitem(last=False)[1]] if len(self._found) > MOST_OPEN else []
        for each in idle:
            each.close()
        return known

    def open_now(self) -> list[AgentLines]:
        """Return the conversations that are open, the one that was heard of last at the end."""
        with self._lock:
            return list(self._found.values())

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Keep away from the session of this name: its lines are put away, and opened again afterwards.

        So somebody else may change it in the store.
        """
        with self._lock:
            known = self._found.get(_conversation_of(name))
        if known is None:
            yield
            return
        with known.lock:
            known.close()
            yield

    def close(self) -> None:
        """Make everything durable."""
        for each in list(self._found.values()):
            each.close()


def spent_of(store: Store, name: str) -> dict[str, float]:
    """Return the dollars that a stored session cost, by day."""
    doc = store.get(name, "state", SPENT) or {}
    return msgspec.convert(doc.get("days", {}), dict[str, float])


def _recalls_of(store: Store, name: str) -> tuple[dict[str, HiddenTurn], bool]:
    """Return what the client of a stored session did not see, and whether our tools are sent in it."""
    docs = store.load(name, "state")
    hidden = {
        key.removeprefix(HIDDEN): msgspec.convert(doc, HiddenTurn)
        for key, doc in docs
        if key.startswith(HIDDEN)
    }
    return hidden, any(key == OUR_TOOLS for key, _ in docs)


def _conversation_of(name: str) -> str:
    """Return the name of the conversation that a line belongs to."""
    first, colon, number = name.rpartition(":")
    return first if colon and number.isdigit() and ":" in first else name


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
