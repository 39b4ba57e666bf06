from __future__ import annotations

from ctxgc.invariants import ItemsAreUnique
from tests.wire.talk import parsed, user

UNIQUE = ItemsAreUnique()


def test_a_second_item_of_one_id_is_refused() -> None:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    (found,) = UNIQUE.check(parsed("responses", user(), [item], user(), [item]))
    assert (found.index, found.provider_error) == (3, "Duplicate item found with id msg_1.")


def test_items_without_an_id_and_references_may_stand_twice() -> None:
    reference = {"type": "item_reference", "id": "msg_1"}
    assert UNIQUE.check(parsed("responses", user(), user(), [reference, reference])) == []
