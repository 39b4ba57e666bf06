"""What a Responses server remembers of the items it sent: ids, owners, encrypted reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxgc.testing.breach import Json


class ItemBook:
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
        """Keep a response: what it was asked with and the items it answered with.

        One that is not `stored` can neither be continued nor referred to.
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
