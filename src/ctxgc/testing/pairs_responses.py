"""The Responses API's rules for calls: which items answer each other, and which may stay open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxgc.testing.breach import Breach, Json

# Each kind of call that the client answers, and the item that answers it.
ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
CALL_OF = {answer: call for call, answer in ANSWERS.items()}
# What the provider runs, or asks for, and the item that ends it.
_ENDS = {
    "program": "program_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
_PARTNER_OF = {**CALL_OF, **{end: start for start, end in _ENDS.items()}}
_NAMED_BY = {
    "mcp_approval_request": "id",
    "mcp_approval_response": "approval_request_id",
}


def kind_of(item: Json) -> str:
    """Return the type of an item; messages and references may leave it out."""
    if item.get("type") is not None:
        return str(item["type"])
    return "message" if "role" in item else "item_reference" if "id" in item else "None"


def call_id_of(item: Json) -> Any:
    """Return the id that a call shares with its answer; a local shell answers with it as its `id`."""
    kind = kind_of(item)
    if kind == "local_shell_call_output" and item.get("call_id") is None:
        return item.get("id")
    return item.get(_NAMED_BY.get(kind, "call_id"))


def pairing(items: list[tuple[int, Json]], complete: bool) -> Iterator[Breach]:
    """Match each answer with the nearest earlier open call of its id and kind."""
    open_calls: dict[tuple[str, Any], list[tuple[int, Json]]] = {}
    last_message = -1
    for index, item in items:
        kind, call_id = kind_of(item), call_id_of(item)
        if kind == "message":
            last_message = index
        elif kind in _ENDS or (kind in ANSWERS and isinstance(call_id, str)):
            open_calls.setdefault((kind, call_id), []).append((index, item))
        elif kind in _PARTNER_OF and (kind not in CALL_OF or isinstance(call_id, str)):
            waiting = open_calls.get((_PARTNER_OF[kind], call_id))
            if waiting:
                waiting.pop()
            else:
                yield _no_call(index, kind, call_id)
    yield from _callers(items)
    for (kind, call_id), places in open_calls.items():
        for index, item in places:
            if index < last_message or (complete and not _may_wait(item)):
                yield from _no_output(index, kind, call_id, item)


def _may_wait(item: Json) -> bool:
    """Tell whether the provider goes on with a call when it is sent without its end."""
    client_searches = kind_of(item) == "tool_search_call" and item.get("call_id") is not None
    return kind_of(item) in _ENDS and not client_searches


def _callers(items: list[tuple[int, Json]]) -> Iterator[Breach]:
    """See that the program that made a call stands before it."""
    programs: set[Any] = set()
    for index, item in items:
        if kind_of(item) == "program":
            programs.add(item.get("call_id"))
        caller = item.get("caller")
        owner = caller.get("caller_id") if isinstance(caller, Mapping) else None
        if owner is not None and owner not in programs:
            text = f"No program found for caller_id {owner}."
            yield Breach("orphan_call", text, "input", index=index)


def _no_call(index: int, kind: str, call_id: Any) -> Breach:
    words = _PARTNER_OF[kind].replace("_", " ")
    text = f"No tool call found for {words} output with call_id {call_id}."
    return Breach("orphan_result", text, "input", index=index)


def _no_output(index: int, kind: str, call_id: Any, item: Json) -> Iterator[Breach]:
    # An asynchronous call is answered whenever its tool is done.
    if item.get("async") is not True:
        text = f"No tool output found for {kind.replace('_', ' ')} {call_id}."
        yield Breach("open_call", text, "input", index=index)
