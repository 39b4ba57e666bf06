"""The agent's own compaction, answered here: from the roots of the session, without asking a model.

The summary names the checkpoint that was made before it, by which the history that begins with it is known to
go on with the same session: what it leaves out is stashed there. Codex keeps its summary in an item that only
its provider can read; ours holds the text itself, and is sent on as a message.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from ctxgc.proxy.request_body import RequestBody, loads
from ctxgc.session import Session, session_roots

SUMMARY_PROMPTS = (
    "Your task is to create a detailed summary of the ",
    "First, reason in your scratchpad. Then, generate the ",
)
_OPENING = "ctxgc compacted this conversation, checkpoint "
_CHECKPOINT = re.compile(
    rb"ctxgc compacted this conversation, checkpoint (\d{8}T\d{12}Z-[0-9a-f]{8})"
)
_OURS = "ctxgc:"
_NOTHING = "There was nothing to keep."
_STREAM = "text/event-stream"
_JSON = "application/json"


class LocalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that no provider gave."""

    body: bytes
    media_type: str


# -- Known


def is_compaction(envelope: RequestBody) -> bool:
    """Return whether an agent asks for a summary of its history to go on with."""
    if is_delegated(envelope) or not envelope.messages:
        return is_delegated(envelope)
    last = envelope.messages[-1]
    if b"compaction_trigger" in last and loads(last).get("type") == "compaction_trigger":
        return True
    if not any(json.dumps(words).encode().strip(b'"') in last for words in SUMMARY_PROMPTS):
        return False
    message = loads(last)
    content = message.get("content") if isinstance(message, dict) else ""
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return any(is_summary_prompt(text) for text in texts if isinstance(text, str))


def is_delegated(envelope: RequestBody) -> bool:
    """Return whether the provider itself is asked to compact, in a way that only it can answer."""
    return envelope.raw("compaction") is not None


def is_summary_prompt(text: str) -> bool:
    """Return whether a text asks for a summary; Claude Code says first that no tool may be called."""
    return any(line.startswith(SUMMARY_PROMPTS) for line in text.splitlines())


def _is_not_said(text: str) -> bool:
    return is_summary_prompt(text) or _OPENING in text


def checkpoint_of(messages: Iterable[bytes]) -> str | None:
    """Return the checkpoint that the newest summary of ours in a history names; None without one."""
    found = [match for raw in messages for match in _CHECKPOINT.findall(raw)]
    return found[-1].decode() if found else None


# -- Answered


def compacted(
    envelope: RequestBody, session: Session, recall: str | None, *, whole: bool
) -> LocalAnswer:
    """Return the answer to a request for a compaction, after a checkpoint of the session.

    `whole` says that a history is asked for, as by `/responses/compact`, and not a summary.
    """
    made = session.checkpoint("before the agent's compaction", triggers=("compaction",))
    roots = session_roots(session, recall, _is_not_said) or _NOTHING
    text = f"{_OPENING}{made.checkpoint_id}: quotes from it, as a reminder.\n{roots}"
    model = envelope.text("model")
    if envelope.form == "anthropic":
        body = _message(text, model, made.checkpoint_id)
        events = _message_events(body)
    elif envelope.form == "openai":
        body = _completion(text, model, made.checkpoint_id)
        events = _completion_events(body)
    else:
        item = {
            "type": "compaction",
            "id": f"cmp_{made.checkpoint_id}",
            "encrypted_content": _sealed(text),
        }
        body = _response(item, model, made.checkpoint_id)
        if whole:
            own = (raw for raw in envelope.messages if checkpoint_of([raw]) is None)
            kept = [loads(raw) for raw in own if b'"user"' in raw]
            users = [each for each in kept if isinstance(each, dict) and each.get("role") == "user"]
            body = {**body, "object": "response.compaction", "output": [*users, item]}
        events = _response_events(body, item)
    if envelope.field("stream") is True and not whole:
        return LocalAnswer(body=b"".join(events), media_type=_STREAM)
    return LocalAnswer(body=json.dumps(body).encode(), media_type=_JSON)


def _message(text: str, model: str, name: str) -> dict[str, Any]:
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": f"<summary>\n{text}\n</summary>"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _message_events(body: dict[str, Any]) -> list[bytes]:
    (block,) = body["content"]
    started = {**body, "content": [], "stop_reason": None}
    final = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    delta = {"type": "text_delta", "text": block["text"]}
    return _events(
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": final, "usage": body["usage"]},
        {"type": "message_stop"},
    )


def _completion(text: str, model: str, name: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


def _completion_events(body: dict[str, Any]) -> list[bytes]:
    choice = body["choices"][0]
    head = {name: body[name] for name in ("id", "created", "model")}
    chunk = {**head, "object": "chat.completion.chunk"}
    said = {"index": 0, "delta": choice["message"], "finish_reason": None}
    ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
    parts = [{**chunk, "choices": [each]} for each in (said, ended)]
    return [
        *(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts),
        b"data: [DONE]\n\n",
    ]


def _response(item: dict[str, Any], model: str, name: str) -> dict[str, Any]:
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "model": model,
        "output": [item],
        "usage": usage,
    }


def _response_events(body: dict[str, Any], item: dict[str, Any]) -> list[bytes]:
    started = {**body, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": body},
    ]
    return _events(*({**each, "sequence_number": n} for n, each in enumerate(events)))


def _events(*events: dict[str, Any]) -> list[bytes]:
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]


# -- Sent on


def _sealed(text: str) -> str:
    return _OURS + base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def opened(envelope: RequestBody) -> RequestBody:
    """Return a request in which our compaction items are messages, which every provider can read."""
    if envelope.form != "responses" or not any(_OURS.encode() in raw for raw in envelope.messages):
        return envelope
    messages = [_opened(raw) for raw in envelope.messages]
    if messages == envelope.messages:
        return envelope
    return RequestBody(envelope.rewritten(messages), envelope.form)


def _opened(raw: bytes) -> bytes:
    item = loads(raw) if b'"compaction"' in raw else None
    sealed = item.get("encrypted_content") if isinstance(item, dict) else None
    if not isinstance(sealed, str) or not sealed.startswith(_OURS):
        return raw
    text = base64.b64decode(sealed.removeprefix(_OURS)).decode("utf-8", "surrogatepass")
    content = [{"type": "input_text", "text": text}]
    return json.dumps({"type": "message", "role": "user", "content": content}).encode()
