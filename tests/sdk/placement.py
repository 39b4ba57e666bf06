"""Where each kind of message, block and item may be in a history that its provider accepts.

The tables are the judge's own knowledge: nothing here is read from the code under test.
"""

from __future__ import annotations

from typing import Any

from ctxgc.core import Format

Json = dict[str, Any]

# Items of the Responses format that need no partner, and calls with what answers them.
RESPONSES_ALONE = frozenset(
    {
        "message", "file_search_call", "web_search_call", "additional_tools",
        "configuration_update", "reasoning", "compaction", "image_generation_call",
        "code_interpreter_call", "mcp_list_tools", "mcp_call", "compaction_trigger",
        "item_reference",
    }
)  # fmt: skip
RESPONSES_PAIRS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "mcp_approval_request": "mcp_approval_response",
    "program": "program_output",
}
ANTHROPIC_USER = frozenset({"image", "document", "search_result", "container_upload"})
ANTHROPIC_SYSTEM = frozenset({"tool_addition", "tool_removal"})
ANTHROPIC_ASSISTANT = frozenset(
    {"text", "thinking", "redacted_thinking", "compaction", "mcp_tool_listing", "fallback"}
)
# Each result with a call that it answers.
ANTHROPIC_PAIRS: dict[str, Json] = {
    "tool_result": {"type": "tool_use", "name": "Read", "input": {}},
    "mcp_tool_result": {
        "type": "mcp_tool_use", "name": "Read", "input": {}, "server_name": "files",
    },
    **{
        f"{name}_tool_result": {"type": "server_tool_use", "name": name, "input": {}}
        for name in (
            "web_search", "web_fetch", "code_execution", "bash_code_execution",
            "text_editor_code_execution", "advisor",
        )
    },
    "tool_search_tool_result": {
        "type": "server_tool_use", "name": "tool_search_tool_regex", "input": {},
    },
}  # fmt: skip
ANTHROPIC_CALLS = frozenset(call["type"] for call in ANTHROPIC_PAIRS.values())
CHAT_ROLES = frozenset({"developer", "system", "user", "assistant", "tool", "function"})

_ID_STARTS = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}
_ANSWER: Json = {"type": "message", "role": "assistant", "content": "done"}
_SCREEN = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}
_LEAST: dict[str, Json] = {
    "function_call": {"name": "Read", "arguments": "{}"},
    "custom_tool_call": {"name": "Edit", "input": "x"},
    "computer_call": {"id": "cu_9", "pending_safety_checks": [], "status": "completed"},
    "computer_call_output": {"output": _SCREEN},
    "tool_search_call": {"arguments": {}},
    "tool_search_output": {"tools": []},
    "local_shell_call": {"id": "lsh_9", "action": {"type": "exec", "command": [], "env": {}}},
    "shell_call": {"action": {"commands": ["ls"]}},
    "shell_call_output": {
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    },
    "apply_patch_call": {
        "operation": {"type": "delete_file", "path": "a"}, "status": "completed",
    },
    "apply_patch_call_output": {"status": "completed"},
    "program": {"id": "prg_9", "code": "1", "fingerprint": "f"},
    "program_output": {"id": "prgo_9", "result": "1", "status": "completed"},
    "mcp_approval_request": {"arguments": "{}", "name": "Read", "server_label": "files"},
    "mcp_approval_response": {"approve": True},
}  # fmt: skip


def place(instance: Json, format: Format) -> list[Json]:  # noqa: A002 - the word of the public face
    """Return a valid history that holds a message, a content block or an item once."""
    if format == "openai":
        return _chat(instance)
    return _responses(instance) if format == "responses" else _anthropic(instance)


def kind_of(item: Json) -> str:
    """Return the type of an item of the Responses format."""
    return item.get("type") or ("message" if "role" in item else "item_reference")


def partner(item: Json) -> Json | None:
    """Return the item that answers one of the Responses format, or that it answers."""
    kind = kind_of(item)
    results = {result: call for call, result in RESPONSES_PAIRS.items()}
    other = RESPONSES_PAIRS.get(kind) or results.get(kind)
    if other is None:
        return None
    made = {"type": other, **_LEAST.get(other, {"output": "ok"})}
    if kind.startswith("mcp_"):
        mine, its = ("id", "approval_request_id")[:: 1 if kind in RESPONSES_PAIRS else -1]
        return {**made, its: item[mine]}
    if kind == "local_shell_call":
        return {**made, "id": item["call_id"]}
    call_id = item["id"] if kind == "local_shell_call_output" else item.get("call_id")
    if call_id is None and kind != "tool_search_call" and other != "tool_search_call":
        return None
    return {**made, "call_id": call_id}


def _responses(item: Json) -> list[Json]:
    kind = kind_of(item)
    if isinstance(item.get("id"), str) and kind in _ID_STARTS:
        item = {**item, "id": f"{_ID_STARTS[kind]}_1"}
    other = partner(item)
    caller = item.get("caller") or {}
    items = [{"type": "message", "role": "user", "content": "go"}]
    if "caller_id" in caller:
        items.append({"type": "program", "call_id": caller["caller_id"], **_LEAST["program"]})
        other = {**other, "caller": caller} if other else None
    if kind in RESPONSES_PAIRS:
        items += [item, other] if other else [item]
    else:
        items += [other, item] if other else [item]
    if "caller_id" in caller:
        output = {"type": "program_output", "call_id": caller["caller_id"]}
        items.append({**output, **_LEAST["program_output"]})
    return items if kind == "compaction_trigger" else [*items, _ANSWER]


def _anthropic(block: Json) -> list[Json]:
    if "role" in block:
        return _around(block)
    kind = block["type"]
    if kind in ANTHROPIC_SYSTEM:
        return [_said("user", "go"), _said("system", block), _said("assistant", "done")]
    if kind in ANTHROPIC_USER:
        return [_said("user", block), _said("assistant", "done")]
    if kind in ANTHROPIC_ASSISTANT:
        return [_said("user", "go"), _said("assistant", block, _text())]
    return _paired(block)


def _paired(block: Json) -> list[Json]:
    kind = block["type"]
    if kind in ANTHROPIC_PAIRS:
        call, result = {**ANTHROPIC_PAIRS[kind], "id": block["tool_use_id"]}, block
    else:
        call = block
        found = next(k for k, c in ANTHROPIC_PAIRS.items() if _is_like(c, block))
        result = {"type": found, "tool_use_id": block["id"], "content": []}
    program = (call.get("caller") or result.get("caller") or {}).get("tool_id")
    before = [_call("code_execution", program)] if program else []
    after = [_ran("code_execution", program)] if program else []
    if call["type"] == "tool_use":
        asked = [_said("user", "go"), _said("assistant", *before, call), _said("user", result)]
        return [*asked, _said("assistant", *after, _text())]
    return [_said("user", "go"), _said("assistant", *before, call, result, *after, _text())]


def _is_like(call: Json, block: Json) -> bool:
    if call["type"] != block["type"] or call["type"] != "server_tool_use":
        return bool(call["type"] == block["type"])
    return str(block["name"]).startswith("tool_search") == ("tool_search" in call["name"]) and call[
        "name"
    ] in (block["name"], "tool_search_tool_regex")


def _call(name: str, call_id: str) -> Json:
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": {}}


def _ran(name: str, call_id: str) -> Json:
    return {"type": f"{name}_tool_result", "tool_use_id": call_id, "content": {}}


def _text() -> Json:
    return {"type": "text", "text": "done"}


def _said(role: str, *blocks: Json | str) -> Json:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return {"role": role, "content": content}


def _around(message: Json) -> list[Json]:
    return [_said("user", "go"), message, _said("user", "go on"), _said("assistant", "done")]


def _chat(message: Json) -> list[Json]:
    role = message["role"]
    before: list[Json] = [{"role": "user", "content": "go"}]
    if role == "tool":
        call = {"id": message["tool_call_id"], "type": "function"}
        calls = [{**call, "function": {"name": "Read", "arguments": "{}"}}]
        before.append({"role": "assistant", "content": None, "tool_calls": calls})
    if role == "function":
        call = {"name": message["name"], "arguments": "{}"}
        before.append({"role": "assistant", "content": None, "function_call": call})
    answers = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        for call in message.get("tool_calls") or ()
    ]
    if message.get("function_call"):
        made = message["function_call"]["name"]
        answers.append({"role": "function", "name": made, "content": "ok"})
    return [*before, message, *answers, {"role": "assistant", "content": "done"}]
