"""The rules of OpenAI's Responses API for a list of input items, read from its refusals.

Written from the provider's side and on plain data: it shares nothing with the code that plans
and renders views, so that it can judge them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxgc.testing.breach import Body, Breach, Json, history_of, is_json
from ctxgc.testing.item_book import ItemBook
from ctxgc.testing.openai_words import MIN_ONE, missing_field, wrong_type, wrong_value
from ctxgc.testing.pairs_responses import ANSWERS, CALL_OF, call_id_of, kind_of, pairing

ROLES = ("assistant", "system", "developer", "user")
_SERVER_SIDE = (
    "message", "reasoning", "item_reference", "file_search_call", "web_search_call",
    "image_generation_call", "code_interpreter_call", "mcp_list_tools", "mcp_approval_request",
    "mcp_approval_response", "mcp_call", "compaction", "compaction_trigger", "tool_search_call",
    "tool_search_output", "additional_tools", "configuration_update", "program", "program_output",
)  # fmt: skip
TYPES = (*_SERVER_SIDE, *ANSWERS, *CALL_OF)
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


def check(body: Body, *, complete: bool = True, book: ItemBook | None = None) -> list[Breach]:
    """Return what the Responses API would refuse in a body or a list of items, in order.

    With `complete=False` calls after the last message may still wait for results. A `book` adds
    the rules that only the issuing server can know: item references, owners, encrypted content.
    """
    if isinstance(body, Mapping) and isinstance(body.get("input"), str):
        return []
    items = history_of(body, "input")
    if not items:
        text = f"Invalid 'input': empty array. {MIN_ONE}"
        return [Breach("empty_history", text, "input", "empty_array")]
    breaches = [breach for index, item in enumerate(items) for breach in _item(index, item)]
    sound = [(index, item) for index, item in enumerate(items) if isinstance(item, Mapping)]
    breaches += [*pairing(sound, complete), *_reasoning(sound), *_unique(sound)]
    return breaches + (list(_issued(sound, book)) if book is not None else [])


def _item(index: int, item: Any) -> Iterator[Breach]:
    if not isinstance(item, Mapping):
        yield wrong_type(f"input[{index}]", "an object", item, index)
        return
    kind = kind_of(item)
    if kind not in TYPES:
        yield wrong_value("item_type", f"input[{index}].type", kind, TYPES, index)
    elif kind == "message":
        yield from _message(index, item)
    elif kind in ANSWERS or kind in CALL_OF:
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
    if not isinstance(call_id_of(item), str) and kind != "function_call_output":
        yield missing_field(f"{where}.call_id", index)
    if kind in CALL_OF and item.get("output") is None and kind != "apply_patch_call_output":
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
    """See that each reasoning item stands before something the model made."""
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
    return kind not in CALL_OF and kind != "mcp_approval_response"


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


def _issued(items: list[tuple[int, Json]], book: ItemBook) -> Iterator[Breach]:
    present = {item.get("id") for _, item in items if isinstance(item.get("id"), str)}
    for index, item in items:
        kind, item_id = kind_of(item), item.get("id")
        owner = book.reasoning_of(item_id)
        if kind == "item_reference" and book.stored(item_id) is None:
            text = f"Item with id '{item_id}' not found."
            yield Breach("unknown_item", text, "input", status=404, index=index)
        elif owner is not None and owner not in present:
            text = (
                f"Item '{item_id}' of type '{kind}' was provided without its required "
                f"'reasoning' item: '{owner}'."
            )
            yield Breach("reasoning_missing", text, "input", index=index)
        elif kind == "reasoning" and not _same_secret(item, book):
            secret = str(item.get("encrypted_content"))
            text = f"The encrypted content {secret[:4]}...{secret[-4:]} could not be verified."
            yield Breach("reasoning_changed", text, None, "invalid_encrypted_content", index=index)


def _same_secret(item: Json, book: ItemBook) -> bool:
    """Tell whether a replayed reasoning item carries no secret, or exactly the one issued."""
    secret = item.get("encrypted_content")
    issued = book.item(item.get("id"))
    return secret is None or (issued is not None and issued.get("encrypted_content") == secret)
