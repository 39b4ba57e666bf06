"""kompact's pipeline on its Anthropic route; its other route gives every message the role user.

Like the proxy, it keeps one configuration from request to request.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared import from_blocks, numbered, serve, to_blocks  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]


def begin(_: Json) -> Any:
    """Return a function that edits a history."""
    config = import_module("kompact.config").KompactConfig()
    parser = import_module("kompact.parser.messages")
    run = import_module("kompact.transforms.pipeline").run
    provider = import_module("kompact.types").Provider.ANTHROPIC

    def edit(history: list[Json]) -> list[Any]:
        system = [m for m in history if m["role"] == "system"]
        rest = [m for m in history if m["role"] != "system"]
        body = {"system": "\n".join(m["content"] for m in system), "messages": _bodies(rest)}
        done = parser.serialize_request(run(parser.parse_request(body, provider), config).request)
        view = [from_blocks(m["content"], o) for m, o in zip(done["messages"], rest, strict=True)]
        entries: list[Any] = numbered([*_system(done, system), *view], history)
        return entries

    return edit


def _bodies(messages: list[Json]) -> list[Json]:
    return [to_blocks(message) for message in messages]


def _system(done: Json, system: list[Json]) -> list[Json]:
    """Return the instructions as the pipeline left them, in one message."""
    return [{**system[0], "content": done["system"]}] if system and "system" in done else []


if __name__ == "__main__":
    serve(begin)
