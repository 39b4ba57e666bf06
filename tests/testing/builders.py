"""Short ways to write provider messages in the tests of this room."""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]


def call(call_id: str = "call_1", name: str = "read", arguments: str = "{}") -> Message:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def calling(*ids: str) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": [call(each) for each in ids]}


def result(call_id: str = "call_1", content: str = "ok") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(text: Any = "hello") -> Message:
    return {"role": "user", "content": text}


def asked(text: Any = "hello") -> Any:
    """Return a history of one user message, of no type so that every SDK takes it."""
    return [user(text)]


def assistant(text: Any = "hi") -> Message:
    return {"role": "assistant", "content": text}


def tool_use(call_id: str = "toolu_1", name: str = "read", **arguments: Any) -> Message:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id: str = "toolu_1", content: str = "ok") -> Message:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def text(words: str = "hello") -> Message:
    return {"type": "text", "text": words}


def function_call(call_id: str = "call_1", **more: Any) -> Message:
    item = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
    return {**item, **more}


def output(call_id: str = "call_1") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def said(words: str = "hi", **more: Any) -> Message:
    content = [{"type": "output_text", "text": words}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def reasoning(item_id: str = "rs_1", **more: Any) -> Message:
    return {"type": "reasoning", "id": item_id, "summary": [], **more}


def thought(words: str = "hm", signature: str = "sig") -> Message:
    return {"type": "thinking", "thinking": words, "signature": signature}
