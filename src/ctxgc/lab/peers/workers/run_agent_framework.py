"""agent-framework's `TruncationStrategy` with its own tokenizer; what it excluded stays excluded."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from shared import serve  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    library = import_module("agent_framework")
    tokenizer = library.CharacterEstimatorTokenizer()
    strategy = library.TruncationStrategy(tokenizer=tokenizer, **settings)
    messages: list[Any] = []

    def edit(history: list[Json]) -> list[Any]:
        known = len(messages)
        messages.extend(_message(library, each) for each in history[known:])
        numbers = {id(message): number for number, message in enumerate(messages)}
        work = library.apply_compaction(messages, strategy=strategy, tokenizer=tokenizer)
        return [numbers[id(message)] for message in asyncio.run(work)]

    return edit


def _message(library: Any, message: Json) -> Any:
    content = library.Content
    if message["role"] == "tool":
        result = content.from_function_result(message["tool_call_id"], result=message["content"])
        return library.Message("tool", [result])
    contents = [content.from_text(message["content"])] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        made = content.from_function_call(
            call["id"], function["name"], arguments=function["arguments"]
        )
        contents.append(made)
    return library.Message(message["role"], contents)


if __name__ == "__main__":
    serve(begin)
