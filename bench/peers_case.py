"""What other libraries take for the same work; run by the interpreter of an environment of their own.

It reads `{"sizes": [[...messages...], ...], "runs": n}` from standard input and prints, for each peer,
its version and the seconds per size. Nothing of ctxgc is imported here. All of them count tokens alike:
one for four characters, so that no tokenizer is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from time import process_time
from typing import Any

from agent_framework import (  # type: ignore[import-not-found]  # only in the peers' environment
    CharacterEstimatorTokenizer,
    Content,
    Message,
    TruncationStrategy,
    apply_compaction,
)
from agent_framework._compaction import (  # type: ignore[import-not-found]  # as above
    annotate_token_counts,
    included_token_count,
)
from langchain.agents.middleware.context_editing import (  # type: ignore[import-not-found]  # as above
    ClearToolUsesEdit,
)
from langchain_core.messages import (  # type: ignore[import-not-found]  # as above
    convert_to_messages,
    trim_messages,
)

Json = dict[str, Any]
Rows = dict[str, Any]

TARGET_SHARE = 0.6


def main() -> None:
    """Measure every peer on every size."""
    asked = json.load(sys.stdin)
    peers = {
        "trim_messages": ("langchain-core", trim),
        "ClearToolUsesEdit": ("langchain", clear_tool_uses),
        "TruncationStrategy": ("agent-framework-core", truncation_strategy),
    }
    found: dict[str, Rows] = {}
    for name, (package, prepare) in peers.items():
        seconds = [_fastest(prepare, messages, asked["runs"]) for messages in asked["sizes"]]
        found[name] = {"version": f"{package} {version(package)}", "seconds": seconds}
    print(json.dumps(found))


def trim(history: list[Json]) -> Callable[[], object]:
    """Keep the last messages that fit."""
    messages = convert_to_messages(history)
    target = int(_langchain_tokens(messages) * TARGET_SHARE)
    return lambda: trim_messages(
        messages,
        max_tokens=target,
        token_counter=_langchain_tokens,
        strategy="last",
        start_on="human",
        include_system=True,
    )


def clear_tool_uses(history: list[Json]) -> Callable[[], object]:
    """Clear the oldest tool results until enough tokens are won."""
    messages = convert_to_messages(history)
    total = _langchain_tokens(messages)
    edit = ClearToolUsesEdit(
        trigger=int(total * TARGET_SHARE), clear_at_least=int(total * (1 - TARGET_SHARE))
    )
    return lambda: edit.apply(messages, count_tokens=_langchain_tokens)


def truncation_strategy(history: list[Json]) -> Callable[[], object]:
    """Exclude the oldest groups until the target is met."""
    tokenizer = CharacterEstimatorTokenizer()
    messages = [_framework_message(message) for message in history]
    # Counting is theirs to do once; what is timed is the compaction of counted messages.
    annotate_token_counts(messages, tokenizer=tokenizer)
    total = included_token_count(messages)
    strategy = TruncationStrategy(
        max_n=int(total * 0.8), compact_to=int(total * TARGET_SHARE), tokenizer=tokenizer
    )
    work = apply_compaction(messages, strategy=strategy, tokenizer=tokenizer)
    return lambda: asyncio.run(work)


def _langchain_tokens(messages: list[Any]) -> int:
    total = 0
    for message in messages:
        total += (len(message.content) + 3) // 4
        for call in getattr(message, "tool_calls", None) or ():
            total += (len(str(call["args"])) + 3) // 4
    return total


def _framework_message(message: Json) -> Any:
    if message["role"] == "tool":
        result = Content.from_function_result(message["tool_call_id"], result=message["content"])
        return Message("tool", [result])
    contents = [Content.from_text(message["content"])] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        contents.append(
            Content.from_function_call(
                call["id"], function["name"], arguments=function["arguments"]
            )
        )
    return Message(message["role"], contents)


def _fastest(
    prepare: Callable[[list[Json]], Callable[[], object]], history: list[Json], runs: int
) -> float:
    return min(_timed(prepare(history)) for _ in range(runs))


def _timed(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


if __name__ == "__main__":
    main()
