"""Answers of OpenAI's chat completions, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxgc.testing.breach import Json
from ctxgc.testing.serve.reply import CREATED, ServerIds, ServerReply, event, pieces


def completion(reply: ServerReply, request: Json, ids: ServerIds) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    return {
        "id": ids.new("chatcmpl-"),
        "object": "chat.completion",
        "created": CREATED,
        "model": request["model"],
        "choices": [
            {
                "index": 0,
                "message": _message(reply),
                "logprobs": None,
                "finish_reason": _finish(reply),
            }
        ],
        "usage": usage(reply),
        "service_tier": "default",
    }


def usage(reply: ServerReply) -> dict[str, Any]:
    """Return the usage block, with what came from the prompt cache and went into it."""
    return {
        "prompt_tokens": reply.use.total,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.use.total + reply.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": reply.use.read,
            "cache_write_tokens": reply.use.written_total,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": reply.thinking_tokens},
    }


def stream(body: Json, request: Json) -> Iterator[bytes]:
    """Yield the events of a streamed answer; usage comes last and only when asked for."""
    message = body["choices"][0]["message"]
    yield _chunk(body, {"role": "assistant", "content": "" if message["content"] else None})
    for piece in pieces(message["content"] or ""):
        yield _chunk(body, {"content": piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        opening = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
        yield _chunk(body, {"tool_calls": [opening]})
        for piece in pieces(function["arguments"]):
            delta = {"index": index, "function": {"arguments": piece}}
            yield _chunk(body, {"tool_calls": [delta]})
    yield _chunk(body, {}, body["choices"][0]["finish_reason"])
    if (request.get("stream_options") or {}).get("include_usage"):
        yield event({**_head(body), "choices": [], "usage": body["usage"]})
    yield event("[DONE]")


def _message(reply: ServerReply) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.turn.text or None,
        "refusal": None,
    }
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_text()},
            }
            for call_id, call in reply.calls
        ]
    return message


def _finish(reply: ServerReply) -> str:
    return reply.turn.stop or ("tool_calls" if reply.calls else "stop")


def _head(body: Json) -> dict[str, Any]:
    head = {key: body[key] for key in ("id", "created", "model")}
    return {**head, "object": "chat.completion.chunk"}


def _chunk(body: Json, delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event({**_head(body), "choices": [choice]})
