"""The collector: what makes a view smaller.

`priorities` ranks segments by S4's matrix and decision tree, from what always stays to what goes first.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.collector.priorities import (
        Category, Focus, Priority, Ranked, kind_of, rank, rank_heap,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "priorities": "Category Focus Priority Ranked kind_of rank rank_heap",
        },
    )
