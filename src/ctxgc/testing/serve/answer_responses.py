"""Answers of OpenAI's Responses API, whole and streamed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from itertools import count as numbers
from typing import Any

from ctxgc.testing.breach import Json
from ctxgc.testing.serve.reply import CREATED, ServerIds, ServerReply, pieces, typed


def response(reply: ServerReply, request: Json, ids: ServerIds) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    echoed = ("instructions", "metadata", "previous_response_id", "temperature", "top_p")
    return {
        "id": ids.new("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": request["model"],
        "output": list(_items(reply, request, ids)),
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "store": request.get("store", True) is not False,
        "usage": usage(reply),
        **{name: request.get(name) for name in echoed},
    }


def usage(reply: ServerReply) -> dict[str, Any]:
    """Return the usage block, with what came from the prompt cache and went into it."""
    return {
        "input_tokens": reply.use.total,
        "input_tokens_details": {
            "cached_tokens": reply.use.read,
            "cache_write_tokens": reply.use.written_total,
        },
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": reply.thinking_tokens},
        "total_tokens": reply.use.total + reply.output_tokens,
    }


def stream(body: Json) -> Iterator[bytes]:
    """Yield the events of a streamed answer, numbered from 0."""
    order = numbers()
    started = {**body, "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
        *_item_events(body["output"]),
        {"type": "response.completed", "response": body},
    ]
    yield from (typed({**data, "sequence_number": next(order)}) for data in events)


def _items(reply: ServerReply, request: Json, ids: ServerIds) -> Iterator[dict[str, Any]]:
    if reply.turn.thinking:
        yield _reasoning(reply.turn.thinking, request, ids.new("rs_"))
    if reply.turn.text or not reply.calls:
        part = {"type": "output_text", "text": reply.turn.text, "annotations": [], "logprobs": []}
        yield {
            "id": ids.new("msg_"),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
    for call_id, call in reply.calls:
        yield {
            "id": ids.new("fc_"),
            "type": "function_call",
            "status": "completed",
            "call_id": call_id,
            **_named(call.name, request),
            "arguments": call.arguments_text(),
        }


def _named(name: str, request: Json) -> dict[str, str]:
    """Return the name of a call; a tool of a namespace is called by its own name inside it."""
    for tool in request.get("tools") or ():
        if isinstance(tool, dict) and tool.get("type") == "namespace":
            start = f"{tool.get('name')}__"
            if name.startswith(start):
                return {"namespace": start[:-2], "name": name.removeprefix(start)}
    return {"name": name}


def _reasoning(thinking: str, request: Json, item_id: str) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": item_id,
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": thinking}],
    }
    if "reasoning.encrypted_content" in (request.get("include") or ()):
        secret = hashlib.sha256(f"{item_id}:{thinking}".encode()).digest()
        item["encrypted_content"] = "gAAA" + base64.b64encode(secret).decode()
    return item


def _item_events(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        kind = item["type"]
        yield _item_event("added", index, {**item, **_opening(item)})
        if kind == "message":
            yield from _text_events(place, item["content"][0])
        elif kind == "function_call":
            yield from _argument_events(place, item["arguments"])
        else:
            yield from _summary_events(place, item["summary"][0])
        yield _item_event("done", index, item)


def _item_event(step: str, index: int, item: Json) -> dict[str, Any]:
    return {"type": f"response.output_item.{step}", "output_index": index, "item": item}


def _opening(item: Json) -> dict[str, Any]:
    """Return an item as it is before its content is streamed."""
    openings: dict[str, dict[str, Any]] = {
        "message": {"status": "in_progress", "content": []},
        "function_call": {"status": "in_progress", "arguments": ""},
        "reasoning": {"summary": []},
    }
    return openings[item["type"]]


def _text_events(place: Json, part: Json) -> Iterator[dict[str, Any]]:
    where = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
    done = {"text": part["text"], "logprobs": []}
    yield {"type": "response.output_text.done", **where, **done}
    yield {"type": "response.content_part.done", **where, "part": part}


def _argument_events(place: Json, arguments: str) -> Iterator[dict[str, Any]]:
    start = "response.function_call_arguments"
    for piece in pieces(arguments):
        yield {"type": f"{start}.delta", **place, "delta": piece}
    yield {"type": f"{start}.done", **place, "arguments": arguments}


def _summary_events(place: Json, part: Json) -> Iterator[dict[str, Any]]:
    where = {**place, "summary_index": 0}
    start = "response.reasoning_summary"
    yield {"type": f"{start}_part.added", **where, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": f"{start}_text.delta", **where, "delta": piece}
    yield {"type": f"{start}_text.done", **where, "text": part["text"]}
    yield {"type": f"{start}_part.done", **where, "part": part}
