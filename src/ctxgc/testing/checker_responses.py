"""The rules of OpenAI's Responses API for a list of input items, read from its refusals.

Written from the provider's side and on plain data: it shares nothing with the code that plans
and renders views, so that it can judge them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxgc.testing.breach import Body, Breach, Json, history_of, is_json
from ctxgc.testing.checker_openai import MIN_ONE, missing_field, wrong_type, wrong_value


class IssuedItems:
    """The memory of one server: every item it issued and every response that may be continued."""

    def __init__(self) -> None:
        self._items: dict[str, Json] = {}
        self._reasoning: dict[str, str] = {}
        self._histories: dict[str, list[Json]] = {}
        self._stored: set[str] = set()

    def remember(
        self,
        response_id: str,
        history: Sequence[Json],
        output: Sequence[Json],
        *,
        stored: bool = True,
    ) -> None:
        """Remember a response: the items it was asked with and those it answered with.

        One that is not `stored` can neither be continued nor referenced.
        """
        if stored:
            self._histories[response_id] = [*history, *output]
            self._stored.update(str(item["id"]) for item in output)
        owner: str | None = None
        for item in output:
            item_id = str(item["id"])
            self._items[item_id] = item
            if item["type"] == "reasoning":
                owner = item_id
            elif owner is not None:
                self._reasoning[item_id] = owner

    def history(self, response_id: Any) -> list[Json] | None:
        """Return all items up to and with a response, or None when it was never issued."""
        return self._histories.get(response_id) if isinstance(response_id, str) else None

    def item(self, item_id: Any) -> Json | None:
        """Return an issued item, or None when no such item was issued."""
        return self._items.get(item_id) if isinstance(item_id, str) else None

    def stored(self, item_id: Any) -> Json | None:
        """Return an item that a reference may name, or None."""
        return self.item(item_id) if item_id in self._stored else None

    def reasoning_of(self, item_id: Any) -> str | None:
        """Return the id of the reasoning item that an issued item cannot be sent without."""
        return self._reasoning.get(item_id) if isinstance(item_id, str) else None


# -- Calls: which items answer each other, and which may stay open


# Each kind of call that the client answers, and the item that answers it.
_ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
_CALL_OF = {answer: call for call, answer in _ANSWERS.items()}
# What the provider runs, or asks for, and the item that ends it.
_ENDS = {
    "program": "program_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
_PARTNER_OF = {**_CALL_OF, **{end: start for start, end in _ENDS.items()}}
_NAMED_BY = {
    "mcp_approval_request": "id",
    "mcp_approval_response": "approval_request_id",
}


def kind_of(item: Json) -> str:
    """Return the type of an item; messages and references may leave it out."""
    if item.get("type") is not None:
        return str(item["type"])
    return "message" if "role" in item else "item_reference" if "id" in item else "None"


def _call_id_of(item: Json) -> Any:
    """Return the id that a call shares with its answer; a local shell answers with it as its `id`."""
    kind = kind_of(item)
    if kind == "local_shell_call_output" and item.get("call_id") is None:
        return item.get("id")
    return item.get(_NAMED_BY.get(kind, "call_id"))


def _pairing(items: list[tuple[int, Json]], complete: bool) -> Iterator[Breach]:
    """Match each answer with the nearest earlier open call of its id and kind."""
    open_calls: dict[tuple[str, Any], list[tuple[int, Json]]] = {}
    last_message = -1
    for index, item in items:
        kind, call_id = kind_of(item), _call_id_of(item)
        if kind == "message":
            last_message = index
        elif kind in _ENDS or (kind in _ANSWERS and isinstance(call_id, str)):
            open_calls.setdefault((kind, call_id), []).append((index, item))
        elif kind in _PARTNER_OF and (kind not in _CALL_OF or isinstance(call_id, str)):
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
    """Return whether the provider continues a call that is sent without its end."""
    client_searches = kind_of(item) == "tool_search_call" and item.get("call_id") is not None
    return kind_of(item) in _ENDS and not client_searches


def _callers(items: list[tuple[int, Json]]) -> Iterator[Breach]:
    """Check that the program that made a call comes before it."""
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


ROLES = ("assistant", "system", "developer", "user")
_SERVER_SIDE = (
    "message", "reasoning", "item_reference", "file_search_call", "web_search_call",
    "image_generation_call", "code_interpreter_call", "mcp_list_tools", "mcp_approval_request",
    "mcp_approval_response", "mcp_call", "compaction", "compaction_trigger", "tool_search_call",
    "tool_search_output", "additional_tools", "configuration_update", "program", "program_output",
)  # fmt: skip
TYPES = (*_SERVER_SIDE, *_ANSWERS, *_CALL_OF)
# Items whose `id` is that of another one.
_NAMES_ANOTHER = ("item_reference", "local_shell_call_output")
_ID_STARTS = {
    "message": "msg",
    "function_call": "fc",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
}
_PARTS = {
    "assistant": ("output_text", "refusal"),
    "user": ("input_text", "input_image", "input_file", "input_audio"),
}


def check(body: Body, *, complete: bool = True, issued: IssuedItems | None = None) -> list[Breach]:
    """Return what the Responses API would refuse in a body or a list of items, in order.

    With `complete=False` calls after the last message may still wait for results. `issued` adds the
    rules that only the issuing server can check: item references, owners, encrypted content.
    """
    if isinstance(body, Mapping) and isinstance(body.get("input"), str):
        return []
    items = history_of(body, "input")
    if not items:
        text = f"Invalid 'input': empty array. {MIN_ONE}"
        return [Breach("empty_history", text, "input", "empty_array")]
    breaches = [breach for index, item in enumerate(items) for breach in _item(index, item)]
    sound = [(index, item) for index, item in enumerate(items) if isinstance(item, Mapping)]
    breaches += [*_pairing(sound, complete), *_reasoning(sound), *_unique(sound)]
    return breaches + (list(_issued(sound, issued)) if issued is not None else [])


def _item(index: int, item: Any) -> Iterator[Breach]:
    if not isinstance(item, Mapping):
        yield wrong_type(f"input[{index}]", "an object", item, index)
        return
    kind = kind_of(item)
    if kind not in TYPES:
        yield wrong_value("item_type", f"input[{index}].type", kind, TYPES, index)
    elif kind == "message":
        yield from _message(index, item)
    elif kind in _ANSWERS or kind in _CALL_OF:
        yield from _call(index, kind, item)
    yield from _item_id(index, kind, item.get("id"))


def _message(index: int, item: Json) -> Iterator[Breach]:
    role, content = item.get("role"), item.get("content")
    where = f"input[{index}].content"
    if role not in ROLES:
        yield wrong_value("role", f"input[{index}].role", role, ROLES, index)
    elif content is None:
        yield missing_field(where, index)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for place, part in enumerate(content):
            yield from _part(index, f"{where}[{place}]", role, part)
    elif not isinstance(content, str):
        yield wrong_type(where, "a string or an array of objects", content, index)


def _part(index: int, where: str, role: str, part: Any) -> Iterator[Breach]:
    if not isinstance(part, Mapping):
        yield wrong_type(where, "an object", part, index)
        return
    allowed = _PARTS.get(role, _PARTS["user"])
    if part.get("type") not in allowed:
        yield wrong_value("content", where, part.get("type"), allowed, index)
    elif part["type"].endswith("_text") and not isinstance(part.get("text"), str):
        yield missing_field(f"{where}.text", index)


def _call(index: int, kind: str, item: Json) -> Iterator[Breach]:
    where = f"input[{index}]"
    # A function's output may belong to no call of this history, and a patch needs no words.
    if not isinstance(_call_id_of(item), str) and kind != "function_call_output":
        yield missing_field(f"{where}.call_id", index)
    if kind in _CALL_OF and item.get("output") is None and kind != "apply_patch_call_output":
        yield missing_field(f"{where}.output", index)
    if kind != "function_call":
        return
    if not isinstance(item.get("name"), str):
        yield missing_field(f"{where}.name", index)
    if not is_json(item.get("arguments")):
        text = f"Failed to parse tool call arguments as JSON: '{where}.arguments'."
        yield Breach("arguments", text, f"{where}.arguments", "invalid_value", index=index)


def _item_id(index: int, kind: str, item_id: Any) -> Iterator[Breach]:
    start = _ID_STARTS.get(kind)
    if item_id is None or start is None:
        return
    if not isinstance(item_id, str) or not item_id.startswith(start):
        text = (
            f"Invalid 'input[{index}].id': '{item_id}'. Expected an ID that begins with '{start}'."
        )
        yield Breach("item_id", text, f"input[{index}].id", "invalid_value", index=index)


def _reasoning(items: list[tuple[int, Json]]) -> Iterator[Breach]:
    """Check that each reasoning item is followed by something the model made."""
    for place, (index, item) in enumerate(items):
        if kind_of(item) != "reasoning":
            continue
        after = items[place + 1][1] if place + 1 < len(items) else None
        if after is None or not _made_by_model(after):
            text = (
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                "following item."
            )
            yield Breach("reasoning_alone", text, "input", index=index)


def _made_by_model(item: Json) -> bool:
    kind = kind_of(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in _CALL_OF and kind != "mcp_approval_response"


def _unique(items: list[tuple[int, Json]]) -> Iterator[Breach]:
    seen: set[str] = set()
    for index, item in items:
        item_id = item.get("id")
        if not isinstance(item_id, str) or kind_of(item) in _NAMES_ANOTHER:
            continue
        if item_id in seen:
            text = (
                f"Duplicate item found with id {item_id}. Remove duplicate items from your input "
                "and try again."
            )
            yield Breach("duplicate_id", text, "input", index=index)
        seen.add(item_id)


def _issued(items: list[tuple[int, Json]], issued: IssuedItems) -> Iterator[Breach]:
    present = {item.get("id") for _, item in items if isinstance(item.get("id"), str)}
    for index, item in items:
        kind, item_id = kind_of(item), item.get("id")
        owner = issued.reasoning_of(item_id)
        if kind == "item_reference" and issued.stored(item_id) is None:
            text = f"Item with id '{item_id}' not found."
            yield Breach("unknown_item", text, "input", status=404, index=index)
        elif owner is not None and owner not in present:
            text = (
                f"Item '{item_id}' of type '{kind}' was provided without its required "
                f"'reasoning' item: '{owner}'."
            )
            yield Breach("reasoning_missing", text, "input", index=index)
        elif kind == "reasoning" and not _same_secret(item, issued):
            secret = str(item.get("encrypted_content"))
            text = f"The encrypted content {secret[:4]}...{secret[-4:]} could not be verified."
            yield Breach("reasoning_changed", text, None, "invalid_encrypted_content", index=index)


def _same_secret(item: Json, issued: IssuedItems) -> bool:
    """Return whether a replayed reasoning item carries no secret, or exactly the one issued."""
    secret = item.get("encrypted_content")
    known = issued.item(item.get("id"))
    return secret is None or (known is not None and known.get("encrypted_content") == secret)
