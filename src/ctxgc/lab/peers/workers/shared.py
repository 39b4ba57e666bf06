"""What the workers share: the loop over JSON lines, and messages in other formats."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

# -- Anthropic's blocks


Json = dict[str, Any]


def to_blocks(message: Json) -> Json:
    """Return a message whose content is a list of blocks; a result is in a user's message."""
    if message["role"] == "tool":
        return {"role": "user", "content": [_result(message)]}
    blocks = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    blocks += [_use(call) for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "content": blocks}


def from_blocks(blocks: list[Json], original: Json) -> Json:
    """Return the original message with what the blocks say instead."""
    if original["role"] == "tool":
        return {**original, "content": _text(blocks[0].get("content")) if blocks else ""}
    said = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    left = {block["id"] for block in blocks if block["type"] == "tool_use"}
    calls = [call for call in original.get("tool_calls") or () if call["id"] in left]
    edited = {key: value for key, value in original.items() if key != "tool_calls"}
    edited["content"] = said if said or not calls else original.get("content")
    return {**edited, "tool_calls": calls} if calls else edited


def _result(message: Json) -> Json:
    return {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": message["content"],
    }


def _use(call: Json) -> Json:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = {"raw": function["arguments"]}
    return {
        "type": "tool_use",
        "id": call["id"],
        "name": function["name"],
        "input": arguments if isinstance(arguments, dict) else {"raw": arguments},
    }


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content)
    return str(content or "")


# -- LangChain's messages; the id of each is its number in the history


def to_langchain(history: list[Json]) -> list[Any]:
    """Return the history in LangChain's classes."""
    convert = import_module("langchain_core.messages").convert_to_messages
    messages: list[Any] = convert(history)
    for number, message in enumerate(messages):
        message.id = str(number)
    return messages


def to_view(messages: list[Any], history: list[Json]) -> list[Any]:
    """Return the view: numbers of messages that are untouched, and results that were replaced."""
    return [_entry(message, history[int(message.id)]) for message in messages]


def _entry(message: Any, original: Json) -> Any:
    if message.content == (original.get("content") or ""):
        return int(message.id)
    return {**original, "content": message.content}


# -- The loop: JSON lines in, JSON lines out, nothing else on standard output


Edit = Callable[[list[Json]], list[Any]]


def serve(begin: Callable[[Json], Edit]) -> None:
    """Answer questions until standard input ends.

    `{"open": settings}` begins a run: `begin` returns a function that edits a history. `{"history":
    [...]}` adds messages to it and is answered by the view: messages, or the numbers of those that are
    in it unchanged.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a library prints must not get between the answers.
    os.dup2(2, 1)
    history: list[Json] = []
    edit: Edit = list
    for line in sys.stdin:
        question = json.loads(line)
        if "open" in question:
            history, edit = [], begin(question["open"])
            answer: Json = {"ready": True}
        else:
            history.extend(question["history"])
            answer = {"view": edit(history)}
        answers.write(json.dumps(answer, ensure_ascii=False) + "\n")
        answers.flush()


def numbered(view: list[Json], history: list[Json]) -> list[Any]:
    """Return a view in which the messages that are unchanged are replaced by their numbers."""
    entries: list[Any] = []
    start = 0
    for message in view:
        number = next((n for n in range(start, len(history)) if history[n] == message), None)
        entries.append(message if number is None else number)
        start = start if number is None else number + 1
    return entries
