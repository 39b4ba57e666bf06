"""LangChain's `trim_messages`, set as its guide to short-term memory of agents sets it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared import serve, to_langchain, to_view  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    library = import_module("langchain_core.messages")
    count = import_module("langchain_core.messages.utils").count_tokens_approximately

    def edit(history: list[Json]) -> list[Any]:
        kept = library.trim_messages(
            to_langchain(history),
            max_tokens=settings["max_tokens"],
            token_counter=count,
            strategy="last",
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
        )
        view: list[Any] = to_view(kept, history)
        return view

    return edit


if __name__ == "__main__":
    serve(begin)
