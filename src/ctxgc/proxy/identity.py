"""Identity: which conversation a request belongs to, by the agent's own id, else by how it begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from ctxgc.proxy.request_body import RequestBody, UnreadableError, canonical

SESSION_HEADER = "x-ctxgc-session"
_HEADERS = (
    SESSION_HEADER, "x-claude-code-session-id", "x-claude-session-id", "conversation_id",
    "conversation-id", "thread_id", "session_id", "session-id",
)  # fmt: skip
_FIELDS = ("thread_id", "session_id", "taskId")
"""Codex's `session_id` is that of the root for all of its subagents, so its `thread_id` comes first."""
_ALLOWED = re.compile(r"(?!\.+$)[A-Za-z0-9._:-]{1,128}")
_MARK = "_session_"
_LONGEST = 1_024


def identity_of(envelope: RequestBody, headers: Mapping[str, str], tenant: str) -> str:
    """Return the id of the conversation that a request belongs to, fit to be a key.

    An id of the caller's own choice comes first, then that of the agent, in the body or in a header; without
    one it is a digest of the instructions, the first message of the user and the key that the client uses.
    Ids of different tenants differ.
    """
    for found in _ids(envelope, headers):
        if _ALLOWED.fullmatch(found):
            return f"{tenant}:{found}"
    return f"{tenant}:{_beginning(envelope, headers)}"


def _ids(envelope: RequestBody, headers: Mapping[str, str]) -> Iterator[str]:
    yield headers.get(SESSION_HEADER, "")
    for name in ("metadata", "client_metadata"):
        said = envelope.field(name)
        if isinstance(said, dict):
            yield from _in_metadata(said)
    for name in _FIELDS:
        yield envelope.text(name)
    yield from (headers.get(name, "") for name in _HEADERS)


def _in_metadata(said: dict[str, Any]) -> Iterator[str]:
    for name in _FIELDS:
        yield _text(said.get(name))
    user = _text(said.get("user_id"))
    if len(user) > _LONGEST:
        return
    if user.startswith("{"):
        try:
            inside = json.loads(user)
        except (ValueError, RecursionError):
            return
        yield _text(inside.get("session_id"))
    elif _MARK in user:
        yield user.rpartition(_MARK)[2]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _beginning(envelope: RequestBody, headers: Mapping[str, str]) -> str:
    """Return a digest of how a conversation begins; what clients add later does not change it."""
    digest = blake2b(digest_size=16)
    for name in ("system", "instructions"):
        digest.update(envelope.raw(name) or b"")
    for name in ("x-api-key", "authorization", "api-key"):
        digest.update(headers.get(name, "").encode())
    for raw in envelope.messages:
        try:
            message = canonical(raw)
        except UnreadableError:
            message = raw
        digest.update(message)
        if b'"role":"user"' in message:
            break
    return digest.hexdigest()
