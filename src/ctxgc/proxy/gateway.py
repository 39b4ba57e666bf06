"""The gateway's socket: LiteLLM's `headroom` guardrail asks here what to send, and for what was left out.

It sends only rows that may change: no instructions, no answers of the model, not the newest exchange. Of
those the tool results become a session of their own, each under a call that stands for the one withheld. A
user's row comes only once a later one follows, so it ends the request that it began. Rows come back in their
number and order, each result that left as a tombstone of its own. A handle is written as the hexadecimal
digits that LiteLLM looks for.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.errors import CtxgcError, InputError, UnknownHandleError
from ctxgc.proxy.conversations import PREFIX, AgentLines, Asked, Conversations, Line
from ctxgc.proxy.request_body import RequestBody
from ctxgc.session import recall_template, short_tombstone

_log = logging.getLogger("ctxgc.proxy")

AFFINITY = "x-headroom-affinity"
TOOL = "headroom_retrieve"
_CALL = re.compile(rf'{TOOL}\(handle="([^"]+)"\)')
_HASH = re.compile(r"[a-f0-9]{20}")
_RECALL = re.compile(rf'{TOOL}\(hash="({_HASH.pattern})"\)')

Row = dict[str, Any]


class CompressRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway asks: the rows of a request that may change, and the model that it goes to."""

    messages: list[Row]
    model: str | None = None


class CompressAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The rows to send, what that saves, and the hashes by which the originals are recalled."""

    messages: list[Row]
    tokens_before: int = 0
    tokens_after: int = 0
    compression_ratio: float = 1.0
    ccr_hashes: list[str] = []


class GatewaySocket:
    """Answers a gateway from the conversations of the proxy."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        context_limit: int | None,
        is_observed: Callable[[str], bool],
    ) -> None:
        self._context_limit = context_limit
        self._is_observed = is_observed
        self._conversations = conversations

    def compress(self, body: bytes, headers: Mapping[str, str], tenant: str) -> CompressAnswer:
        """Return the rows to send; they are as they came if nothing is to leave, or something fails.

        Raises:
            InputError: the request is not one of a gateway.
        """
        asked = _read(body)
        results = [n for n, row in enumerate(asked.messages) if _is_result(row)]
        if not results:
            return CompressAnswer(messages=asked.messages)
        conversation = self._conversations.get(
            _identity(asked.messages[results[0]], headers, tenant)
        )
        with conversation.lock:
            try:
                return self._answer(conversation, asked, results)
            except Exception as error:  # noqa: BLE001 - a fault of ours is not the gateway's
                # Its text may quote the rows, which belong in no log.
                why = error.code if isinstance(error, CtxgcError) else type(error).__name__
                _log.warning("rows of a gateway go back as they came: %s", why)
                return CompressAnswer(messages=asked.messages)

    def _answer(
        self, conversation: AgentLines, asked: CompressRequest, results: list[int]
    ) -> CompressAnswer:
        wanted = Asked(
            model=asked.model, context_limit=self._context_limit, recall_call=recall_template(TOOL)
        )
        conversation.catch_up(wanted, "openai")
        marks = _ends(asked.messages, results, next(iter(conversation.lines), None))
        history, place_of = _history(asked.messages, results, marks)
        envelope = RequestBody(json.dumps({"messages": history}).encode(), "openai")
        line, messages = conversation.line_of(envelope, wanted)
        line.session.sync(messages, "openai")
        rows = list(asked.messages)
        texts = {} if self._is_observed(line.name) else _texts(line, place_of)
        for number, text in texts.items():
            place = place_of[number]
            rows[place] = {**rows[place], "content": text}
        before, after = (
            _tokens(line, [each[n] for n in results]) for each in (asked.messages, rows)
        )
        return CompressAnswer(
            messages=rows,
            tokens_before=before,
            tokens_after=after,
            compression_ratio=after / before if before else 1.0,
            ccr_hashes=_hashes([rows[n]["content"] for n in results]),
        )

    def retrieve(self, hash_: str, headers: Mapping[str, str], tenant: str) -> str | None:
        """Return the text that a hash stands for; None if no session of the caller that is open has it."""
        if not _HASH.fullmatch(hash_):
            return None
        handle = _handle_of(hash_)
        own = f"{PREFIX}{_group(headers, tenant)}"
        for conversation in reversed(self._conversations.open_now()):
            if not conversation.name.startswith(own):
                continue
            with conversation.lock:
                for line in conversation.lines:
                    try:
                        text = line.session.read(handle)
                    except UnknownHandleError:
                        continue
                    line.session.note_fault(handle)
                    return text
        return None


def _read(body: bytes) -> CompressRequest:
    try:
        return msgspec.json.decode(body, type=CompressRequest)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the request cannot be read: {error}",
            hint='send {"messages": [...], "model": "..."}',
            field="messages",
        ) from None


def _is_result(row: Row) -> bool:
    content, call = row.get("content"), row.get("tool_call_id")
    return (
        row.get("role") == "tool"
        and isinstance(content, str)
        and bool(content)
        and isinstance(call, str)
    )


def _ends(rows: list[Row], results: list[int], line: Line | None) -> list[int]:
    """Return after how many results each request ended that is over, by what is known of the session."""
    over = [n for n, row in enumerate(rows) if row.get("role") == "user"]
    known, passed = list[int](), 0
    if line is not None:
        roles = {each.message_id: each.role for each in line.session.segments()}
        for message_id in line.session.arrivals():
            if roles.get(message_id) == "user":
                known.append(passed)
            passed += roles.get(message_id) == "tool"
    if not passed:
        following = [*over[1:], len(rows)]
        return [sum(n < place for n in results) for place in following[: len(over)]]
    new = len(over) - len(known)
    return [*known, *[passed] * new] if new >= 0 else known[: len(over)]


def _history(
    rows: list[Row], results: list[int], ends: list[int]
) -> tuple[list[Row], dict[int, int]]:
    """Return the history of a session, and the row that each of its results is from."""
    users = [row for row in rows if row.get("role") == "user"]
    history: list[Row] = []
    place_of: dict[int, int] = {}
    for number in range(len(results) + 1):
        for user, end in zip(users, ends, strict=True):
            if end == number:
                history.append({"role": "user", "content": user.get("content") or "."})
        if number < len(results):
            history += _exchange(rows[results[number]])
            place_of[len(history) - 1] = results[number]
    return history, place_of


def _exchange(row: Row) -> list[Row]:
    """Return a result under a call that stands for the one that the gateway keeps to itself."""
    name = row.get("name")
    function = {"name": name if isinstance(name, str) and name else "tool", "arguments": "{}"}
    call = {"id": row["tool_call_id"], "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": row["tool_call_id"], "content": row["content"]}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]


def _group(headers: Mapping[str, str], tenant: str) -> str:
    """Return how the ids of a caller's conversations begin; a gateway may keep its own apart."""
    return f"{tenant}:gateway-{_digest(headers.get(AFFINITY, ''))}-"


def _identity(first: Row, headers: Mapping[str, str], tenant: str) -> str:
    """Return the id of a conversation: it goes by the first result, which stays the first."""
    said = f"{first['tool_call_id']}\n{first['content']}"
    return f"{_group(headers, tenant)}{_digest(said)}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _texts(line: Line, place_of: Mapping[int, int]) -> dict[int, str]:
    """Return the texts of the results that are no longer shown whole, by the number that they came in under.

    One that left the view altogether has a row all the same: a tombstone of its own.
    """
    placed = {each.number: each for each in line.session.placed() if each.number in place_of}
    texts = {
        number: _told(line, str(json.loads(each.json).get("content")))
        for number, each in placed.items()
        if number is not None and not each.is_whole
    }
    gone = {line.session.arrivals()[n]: n for n in place_of if n not in placed}
    for segment in line.session.segments() if gone else ():
        number = gone.get(segment.message_id or "")
        if number is not None and segment.derived_from is None:
            recall = _recall(line, segment.segment_id)
            texts[number] = short_tombstone(
                segment.tokens or 0, "moved out", recall=recall, names=(), kept=""
            )
    return texts


def _told(line: Line, text: str) -> str:
    """Return the text of a result with the calls that recall as the model of the gateway makes them."""
    return _CALL.sub(lambda found: _recall(line, found[1]), text)


def _recall(line: Line, name: str) -> str:
    """Return the call that recalls what a handle or the id of a segment names."""
    handle = name if name.startswith("h-") else line.session.inspect().stash.recall_handle(name)
    return f'{TOOL}(hash="{_hash_of(handle)}")'


def _tokens(line: Line, rows: list[Row]) -> int:
    """Return the tokens of the texts of results."""
    counter = line.session.inspect().accounting.counter
    return sum(counter.count(row["content"]) for row in rows)


def _hashes(texts: list[str]) -> list[str]:
    """Return the hashes that are named in texts, each once."""
    calls = (found[1] for text in texts for found in _RECALL.finditer(text))
    return list(dict.fromkeys(calls))


def _hash_of(handle: str) -> str:
    return base64.b32decode(handle.removeprefix("h-").upper()).hex()


def _handle_of(hash_: str) -> str:
    return "h-" + base64.b32encode(bytes.fromhex(hash_)).decode().lower()
