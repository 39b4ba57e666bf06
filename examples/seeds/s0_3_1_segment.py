"""S0 3.1, block 1: the segment model; ours has the same fields, defaults and validation."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel

import ctxgc

# -- the block


class ContextSegment(BaseModel):  # Pydantic model
    segment_id: str
    text: str
    type: Literal["message", "code", "log", "note", "decision", "summary"]

    created_at: datetime
    last_touched_at: datetime

    pinned: bool = False
    generation: Literal["young", "old"] = "young"
    gc_survival_count: int = 0

    refcount: int = 0

    file_path: str | None = None
    line_range: tuple[int, int] | None = None
    tags: list[str] = []
    topic_id: str | None = None


# -- ours: frozen, so the list of tags is a tuple in it

now = datetime(2026, 1, 2, tzinfo=UTC)
required = {"segment_id": "s1", "text": "def total(): ...", "type": "code"}
times = {"created_at": now, "last_touched_at": now}
more = {"tags": ["bug-123"], "file_path": "src/cart.py", "line_range": [3, 9], "pinned": True}

for given in ({**required, **times}, {**required, **times, **more}):
    theirs, ours = ContextSegment(**given), ctxgc.ContextSegment(**given)
    for name, value in theirs:
        assert getattr(ours, name) == (tuple(value) if name == "tags" else value), name

for wrong in ({"type": "poem"}, {"generation": "ancient"}, {"refcount": "many"}, {"text": None}):
    for model, refusal in ((ContextSegment, ValueError), (ctxgc.ContextSegment, ctxgc.CtxgcError)):
        try:
            model(**{**required, **times, **wrong})
        except refusal as error:
            assert next(iter(wrong)) in str(error)
        else:
            raise AssertionError(f"{model} takes {wrong}")
