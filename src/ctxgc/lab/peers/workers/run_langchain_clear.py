"""LangChain's `ClearToolUsesEdit`, applied as its middleware does: to a copy of the whole history."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared import serve, to_langchain, to_view  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    middleware = import_module("langchain.agents.middleware.context_editing")
    count = import_module("langchain_core.messages.utils").count_tokens_approximately
    clearing = middleware.ClearToolUsesEdit(**settings)

    def edit(history: list[Json]) -> list[Any]:
        messages = to_langchain(history)
        clearing.apply(messages, count_tokens=count)
        view: list[Any] = to_view(messages, history)
        return view

    return edit


if __name__ == "__main__":
    serve(begin)
