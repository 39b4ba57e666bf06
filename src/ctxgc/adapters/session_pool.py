"""What the adapters share: the sessions of their conversations, and views that fit.

A framework hands its whole history to an adapter before each request. `SessionPool.take` brings that into
the session of the conversation; `Histories` do so with a framework's own messages, and give the view back as
such. `recovered` makes it smaller after a provider refused it as too long.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from ctxgc.client import overflow_of
from ctxgc.errors import ContextOverflowError, UnknownHandleError
from ctxgc.session import RECALL_TOOLS, Format, RecallTool, Session, open_store

MOST_OPEN = 64
"""Conversations whose sessions stay open; one that comes back later is opened again."""
RECALL_NAMES = tuple(tool.name for tool in RECALL_TOOLS)

Item = TypeVar("Item")


class ShownMessage(msgspec.Struct, frozen=True):
    """One message of a view: `place` is that in the history it came with, None if ctxgc wrote it."""

    data: dict[str, Any]
    place: int | None
    is_same: bool


class SessionPool:
    """The sessions of an adapter, one for each conversation.

    Args:
        options: anything that `Session` takes but `session_id`. Without `context_limit` and `model` the model
            of the first request decides.
    """

    def __init__(self, **options: Any) -> None:
        store = options.pop("store", None)
        self._owns_store = isinstance(store, str)
        self._store = open_store(store) if isinstance(store, str) else store
        self._options = options
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._alongside: dict[str, object] = {}
        self._lock = threading.RLock()

    def session(self, key: str | None = None, *, model: str | None = None) -> Session:
        """Return the session of a conversation, opened if it was not; without a key the one used last.

        Raises:
            UnknownHandleError: no conversation has begun yet.
        """
        with self._lock:
            if key is None:
                if not self._sessions:
                    raise UnknownHandleError(
                        "no conversation has begun", hint="send a request first"
                    )
                key = next(reversed(self._sessions))
            if key not in self._sessions:
                self._sessions[key] = self._opened(key, model)
            self._sessions.move_to_end(key)
            while len(self._sessions) > MOST_OPEN:
                self._end(*self._sessions.popitem(last=False))
            return self._sessions[key]

    def take(
        self,
        key: str,
        history: Sequence[dict[str, Any]],
        format: Format = "openai",  # noqa: A002 - the word of the public face
        *,
        system: str = "",
        tools: Sequence[dict[str, Any]] = (),
        model: str | None = None,
    ) -> Session:
        """Bring a whole history into the session of its conversation, and return the session.

        If the model is sent the recall tools too, tombstones name their calls.

        Raises:
            MessageError: no provider would take this history.
        """
        session = self.session(key, model=model)
        self.describe(key, session, format, system=system, tools=tools)
        session.sync(history, format)
        return session

    def describe(
        self,
        key: str,
        session: Session,
        format: Format = "openai",  # noqa: A002
        *,
        system: str = "",
        tools: Sequence[dict[str, Any]] = (),
        model: str | None = None,  # noqa: ARG002 - the model is that of the session
    ) -> None:
        """Say what is sent alongside the messages."""
        if self._alongside.get(key) != (system, tools):
            self._alongside[key] = (system, tools)
            session.set_system(system)
            session.set_tools(list(tools))
            if any(_tool_name(tool) in RECALL_NAMES for tool in tools):
                session.tools(format)

    def recall_tools(self) -> tuple[RecallTool, ...]:
        """Return what the model can get back with, for frameworks that make tools of functions."""
        return RECALL_TOOLS

    def answer(self, name: str, arguments: Mapping[str, Any], key: str | None = None) -> str:
        """Return what a recall tool says; what goes wrong is said to the model."""
        call = {
            "id": "call",
            "function": {"name": name, "arguments": json.dumps(_given(arguments))},
        }
        reply = self.session(key).answer(call)
        return "" if reply is None else str(reply["content"])

    def close(self) -> None:
        """Make everything durable, and let go of the store."""
        with self._lock:
            while self._sessions:
                self._end(*self._sessions.popitem())
            if self._owns_store and self._store is not None:
                self._store.close()

    def _opened(self, key: str, model: str | None) -> Session:
        options = dict(self._options)
        if options.get("context_limit") is None:
            options.setdefault("model", model)
        return Session(session_id=key, store=self._store, **options)

    def _end(self, key: str, session: Session) -> None:
        self._alongside.pop(key, None)
        if self._store is None:
            session.close()
        else:
            session.flush()


class TakenHistory(msgspec.Struct, Generic[Item], frozen=True):
    """A history that came in: the framework's items, and the session's messages that each is made of."""

    session: Session
    items: Sequence[Item]
    origins: Sequence[int]
    sent: Sequence[dict[str, Any]]
    ids: Sequence[str]

    def shown(self) -> list[ShownMessage]:
        """Return the view to send now, and where in the history each message of it is.

        Raises:
            ContextOverflowError: what must stay does not fit the window.
        """
        places = {message_id: place for place, message_id in enumerate(self.ids)}
        view = self.session.messages()
        found = zip(self.session.history, view, strict=True)
        return [self._shown(data, places.get(message.message_id)) for message, data in found]

    def _shown(self, data: dict[str, Any], place: int | None) -> ShownMessage:
        return ShownMessage(data, place, place is not None and data == self.sent[place])


class Translator(Protocol[Item]):
    """How one framework's messages are read and written."""

    def encode(self, item: Item) -> list[dict[str, Any]]:
        """Return an item as messages of OpenAI chat, one for each part that may leave by itself."""
        ...

    def edit(self, item: Item, parts: Mapping[int, ShownMessage]) -> Item:
        """Return an item of which parts left or changed; those that are left are given by their number."""
        ...

    def make(self, data: dict[str, Any]) -> Item:
        """Return an item for a message that ctxgc wrote."""
        ...


class Histories(Generic[Item]):
    """The histories of a framework, each under garbage collection.

    With `persists` the framework keeps the view as its history, and gives that back with what is new.
    """

    def __init__(
        self, sessions: SessionPool, translator: Translator[Item], *, persists: bool = False
    ) -> None:
        self.sessions = sessions
        self._translator = translator
        self._persists = persists
        self._given: dict[str, list[dict[str, Any]]] = {}

    def take(self, key: str | None, items: Sequence[Item], **about: Any) -> TakenHistory[Item]:
        """Bring a whole history into the session of its conversation; `about` as in `SessionPool.take`."""
        parts = [self._translator.encode(item) for item in items]
        sent = [message for each in parts for message in each]
        origins = [place for place, each in enumerate(parts) for _ in each]
        key = key or conversation_key(sent)
        if self._persists:
            session, ids = self._resumed(key, sent, about)
        else:
            session = self.sessions.take(key, sent, **about)
            ids = session.arrivals()
        return TakenHistory(session, list(items), origins, sent, ids)

    def view(self, taken: TakenHistory[Item]) -> list[Item]:
        """Return what to send now, in the framework's own messages.

        Raises:
            ContextOverflowError: what must stay does not fit the window.
        """
        shown = taken.shown()
        view = _rebuilt(taken, shown, self._translator)
        if self._persists:
            given = [message for item in view for message in self._translator.encode(item)]
            self._given[taken.session.session_id] = given
        return view

    def _resumed(
        self, key: str, sent: Sequence[dict[str, Any]], about: Mapping[str, Any]
    ) -> tuple[Session, list[str]]:
        session = self.sessions.session(key, model=about.get("model"))
        known = self._given.get(key) or session.view()
        if known and list(sent[: len(known)]) == known and len(known) == len(session.history):
            self.sessions.describe(key, session, **about)
            session.extend(sent[len(known) :], "openai")
            return session, [message.message_id for message in session.history]
        session = self.sessions.take(key, sent, **about)
        return session, session.arrivals()


def recovered(session: Session, error: Exception) -> bool:
    """Return whether the view of a session is smaller now, after a provider's error; False: raise it.

    The causes of an error are looked at too, since frameworks wrap the errors of SDKs.
    """
    seen: BaseException | None = error
    while seen is not None:
        overflow = overflow_of(seen) if isinstance(seen, Exception) else None
        if overflow is not None:
            try:
                session.recover(overflow)
            except ContextOverflowError:
                return False
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _rebuilt(
    taken: TakenHistory[Item], shown: Iterable[ShownMessage], translator: Translator[Item]
) -> list[Item]:
    """Return a view in the framework's own messages; what did not change is the same object."""
    origins = taken.origins
    firsts: dict[int, int] = {}
    for place, owner in enumerate(origins):
        firsts.setdefault(owner, place)
    sizes = Counter(origins)
    made: list[Item] = []
    for origin, group in _groups(shown, origins):
        if origin is None:
            made += [translator.make(each.data) for each in group]
        elif len(group) == sizes[origin] and all(each.is_same for each in group):
            made.append(taken.items[origin])
        else:
            parts = {(each.place or 0) - firsts[origin]: each for each in group}
            made.append(translator.edit(taken.items[origin], parts))
    return made


def _groups(
    shown: Iterable[ShownMessage], origins: Sequence[int]
) -> Iterator[tuple[int | None, list[ShownMessage]]]:
    """Yield the messages of a view that belong together, with the item that they are parts of."""
    origin: int | None = None
    group: list[ShownMessage] = []
    for each in shown:
        own = None if each.place is None else origins[each.place]
        if group and own != origin:
            yield origin, group
            group = []
        origin = own
        group.append(each)
    if group:
        yield origin, group


def conversation_key(history: Sequence[Mapping[str, Any]]) -> str:
    """Return a key for a conversation that has none: what its first message of the user says."""
    first = next((m for m in history if m.get("role") == "user"), None)
    said = json.dumps(first, sort_keys=True, default=str).encode()
    return f"conversation-{blake2b(said, digest_size=12).hexdigest()}"


def call_of(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Return a tool call as OpenAI chat writes it; the arguments may be JSON text or an object."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def said_by_assistant(text: str, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return an answer of the model as OpenAI chat writes it."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    return {**message, "tool_calls": list(calls)} if calls else {**message, "content": text}


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of OpenAI chat as an object."""
    read = json.loads(call["function"]["arguments"] or "{}")
    return read if isinstance(read, dict) else {}


def text_of(data: Mapping[str, Any]) -> str:
    """Return the text of a message of OpenAI chat."""
    content = data.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content or ""


def _tool_name(tool: Mapping[str, Any]) -> Any:
    function = tool.get("function")
    return (function if isinstance(function, Mapping) else tool).get("name")


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}
