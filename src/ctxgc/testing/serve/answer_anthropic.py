"""Answers of Anthropic's messages API, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ctxgc.testing.anthropic_turns import Block
from ctxgc.testing.breach import Json
from ctxgc.testing.serve.reply import ServerIds, ServerReply, pieces, typed
from ctxgc.testing.signatures import ThinkingSignatures


def message(
    reply: ServerReply,
    request: Json,
    ids: ServerIds,
    signatures: ThinkingSignatures,
    dropped: Sequence[Block] = (),
) -> dict[str, Any]:
    """Return the body of an answer; its thinking is signed."""
    content = _blocks(reply, request, signatures)
    signatures.remember(content)
    body = {
        "id": ids.new("msg_"),
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": reply.turn.stop or ("tool_use" if reply.calls else "end_turn"),
        "stop_sequence": None,
        "usage": usage(reply),
    }
    if dropped:
        body["input_transformations"] = [_dropped(block) for block in dropped]
    return body


def usage(reply: ServerReply) -> dict[str, Any]:
    """Return the usage block; `input_tokens` counts only what the cache had no part in."""
    return {
        "input_tokens": reply.use.fresh,
        "cache_creation_input_tokens": reply.use.written_total,
        "cache_read_input_tokens": reply.use.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": reply.use.written.get("5m", 0),
            "ephemeral_1h_input_tokens": reply.use.written.get("1h", 0),
        },
        "output_tokens": reply.output_tokens,
        "service_tier": "standard",
    }


def stream(body: Json) -> Iterator[bytes]:
    """Yield the events of a streamed answer."""
    started = {
        **body,
        "content": [],
        "stop_reason": None,
        "usage": {**body["usage"], "output_tokens": 1},
    }
    yield typed({"type": "message_start", "message": started})
    yield typed({"type": "ping"})
    for index, block in enumerate(body["content"]):
        opening = {"type": "content_block_start", "index": index, "content_block": _opening(block)}
        yield typed(opening)
        for delta in _deltas(block):
            yield typed({"type": "content_block_delta", "index": index, "delta": delta})
        yield typed({"type": "content_block_stop", "index": index})
    final = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield typed({"type": "message_delta", "delta": final, "usage": body["usage"]})
    yield typed({"type": "message_stop"})


def _blocks(
    reply: ServerReply, request: Json, signatures: ThinkingSignatures
) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    thinking = reply.turn.thinking
    if thinking:
        signature = signatures.sign(thinking, request)
        blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})
    if reply.turn.text:
        blocks.append({"type": "text", "text": reply.turn.text})
    for call_id, call in reply.calls:
        use = {"type": "tool_use", "id": call_id, "name": call.name}
        blocks.append({**use, "input": call.arguments_object()})
    return blocks


def _opening(block: Json) -> dict[str, Any]:
    """Return a block as it is before its content is streamed."""
    openings: dict[str, dict[str, Any]] = {
        "thinking": {"thinking": "", "signature": ""},
        "text": {"text": ""},
        "tool_use": {"input": {}},
    }
    return {**block, **openings[block["type"]]}


def _deltas(block: Json) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif block["type"] == "tool_use":
        text = json.dumps(block["input"], ensure_ascii=False)
        yield from ({"type": "input_json_delta", "partial_json": each} for each in pieces(text))
    else:
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}


def _dropped(block: Block) -> dict[str, Any]:
    return {
        "type": "thinking_dropped",
        "path": block.path,
        "reason": "prefix_binding_mismatch",
    }
