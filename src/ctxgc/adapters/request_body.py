"""Whole requests of OpenAI and Anthropic: the body as it came, with the history that is sent instead."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.adapters.session_pool import SessionPool, conversation_key
from ctxgc.errors import ContextOverflowError
from ctxgc.session import Format, Session, parse_overflow

_ROUTES: Mapping[str, Format] = {
    "/chat/completions": "openai",
    "/responses": "responses",
    "/v1/messages": "anthropic",
}
_STATEFUL = ("previous_response_id", "conversation")
_MARK = "cache_control"


class Fitted(msgspec.Struct, frozen=True):
    """A body that fits, and the session that made it."""

    session: Session
    format: Format
    body: Mapping[str, Any]

    def rendered(self) -> dict[str, Any]:
        """Return the body with the view of now.

        Raises:
            ContextOverflowError: what must stay does not fit the window.
        """
        field = _history_field(self.format)
        view = self.session.messages()
        if _has_marks(self.body[field]):
            view = _marked(view, self.body[field])
        return {**self.body, field: view}

    def recovered(self, status: int, answer: bytes) -> bool:
        """Return whether the view is smaller now, because the answer says that it was too long."""
        overflow = parse_overflow(status, answer) if status >= 400 else None
        if overflow is None:
            return False
        try:
            self.session.recover(overflow)
        except ContextOverflowError:
            return False
        return True


class RequestBodies:
    """Fits the bodies of requests to the window, each by the session of its conversation.

    Without a `session_id` conversations are told apart by their first message, within this process.
    """

    def __init__(self, session_id: str | None, options: Mapping[str, Any]) -> None:
        self.sessions = SessionPool(**options)
        self._session_id = session_id
        self._keys: dict[str, str] = {}

    def fit(self, path: str, body: Any) -> Fitted | None:
        """Take in the history of a request; None if the request has none that can be changed."""
        form = next((form for end, form in _ROUTES.items() if path.endswith(end)), None)
        if form is None or not isinstance(body, Mapping) or any(body.get(n) for n in _STATEFUL):
            return None
        history = body.get(_history_field(form))
        if not isinstance(history, list) or not history:
            return None
        plain = _unmarked(history)
        session = self.sessions.take(
            self._key(plain),
            plain,
            form,
            system=_text(body.get("system") or body.get("instructions")),
            tools=body.get("tools") or (),
            model=body.get("model"),
        )
        return Fitted(session, form, body)

    def _key(self, history: Sequence[Mapping[str, Any]]) -> str:
        if self._session_id is not None:
            return self._session_id
        opening = conversation_key(history)
        # A request before the first answer begins a conversation, even if another one began alike.
        if all(item.get("role") in ("user", "system", "developer") for item in history):
            self._keys[opening] = uuid.uuid4().hex
        return self._keys.setdefault(opening, uuid.uuid4().hex)


def _history_field(form: Format) -> str:
    return "input" if form == "responses" else "messages"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(str(block.get("text", "")) for block in value)
    return value or ""


# -- Cache breakpoints: clients move them to the end with each request, so they are no part of a message


def _has_marks(history: Sequence[Mapping[str, Any]]) -> bool:
    return any(_MARK in block for message in history for block in _blocks(message))


def _unmarked(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if not _has_marks(history):
        return [dict(message) for message in history]
    return [
        {**message, "content": [_without(block) for block in _blocks(message)]}
        if _blocks(message)
        else dict(message)
        for message in history
    ]


def _marked(
    view: list[dict[str, Any]], history: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a view with as many breakpoints as the history had at its end, in the last messages."""
    marks = [block[_MARK] for message in history for block in _blocks(message) if _MARK in block]
    spots = [n for n, message in enumerate(view) if _blocks(message)][-len(marks) :]
    marked = list(view)
    for spot, mark in zip(spots, marks[-len(spots) :], strict=True):
        *rest, last = _blocks(view[spot])
        marked[spot] = {**view[spot], "content": [*rest, {**last, _MARK: mark}]}
    return marked


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping)]


def _without(block: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != _MARK}
