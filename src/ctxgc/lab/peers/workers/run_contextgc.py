"""contextgc's `compile_messages` with the schema that it ships for coding."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import Any

from shared import numbered, serve  # type: ignore[import-not-found]  # in this folder

Json = dict[str, Any]


def begin(settings: Json) -> Any:
    """Return a function that edits a history."""
    library = import_module("contextgc")
    schema = library.load_schema("coding")

    def edit(history: list[Json]) -> list[Any]:
        compiled, _ = library.compile_messages(deepcopy(history), schema=schema, **settings)
        entries: list[Any] = numbered(compiled, history)
        return entries

    return edit


if __name__ == "__main__":
    serve(begin)
