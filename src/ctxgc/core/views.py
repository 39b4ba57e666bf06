"""The views of a file, and which of them show some of the same.

A file is cut into cards of lines; two views are linked when they share a card, and a view without a
line range shares all of them. Few views are compared one by one; many are filed under their cards, so
that ten thousand views of one file cost ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxgc.core.compact import FEW
from ctxgc.core.groups import NOBODY, Group, depart, join
from ctxgc.core.segment import ContextSegment

CARD_LINES = 64
MAX_CARDS = 64

WHOLE = -1
WHOLE_FILE = (WHOLE,)

Views = tuple[ContextSegment, ...] | dict[int, Group]
"""The views of one file: a tuple while they are few, by card once they are many."""


def cards(line_range: tuple[int, int] | None) -> Sequence[int]:
    """Return the cards that a range of lines covers; a missing or very long range is the whole file."""
    if line_range is None:
        return WHOLE_FILE
    first, last = line_range[0] // CARD_LINES, line_range[1] // CARD_LINES
    return WHOLE_FILE if last - first >= MAX_CARDS else range(first, last + 1)


def share_a_card(some: Sequence[int], others: Sequence[int]) -> bool:
    """Tell whether two views that cover these cards are linked."""
    if some[0] == WHOLE or others[0] == WHOLE:
        return True
    return some[0] <= others[-1] and others[0] <= some[-1]


def add_view(files: dict[str, Views], path: str, view: ContextSegment) -> None:
    """Add a view of a file; one that is there keeps its place."""
    known = files.get(path, NOBODY)
    if isinstance(known, dict):
        _file(known, view)
    elif view.segment_id not in [other.segment_id for other in known]:
        files[path] = _shaped((*known, view))


def drop_view(files: dict[str, Views], path: str, view: ContextSegment) -> None:
    """Take a view of a file out, and the file with the last of them."""
    rest = files.get(path, NOBODY)
    if isinstance(rest, dict):
        for card in cards(view.line_range):
            depart(rest, card, view)
    else:
        rest = tuple([other for other in rest if other.segment_id != view.segment_id])
    if rest:
        files[path] = rest
    else:
        files.pop(path, None)


def on_card(views: Views, card: int) -> Group:
    """Return the views that hold a card; empty when none does."""
    if isinstance(views, dict):
        return views.get(card, NOBODY)
    return tuple([view for view in views if card in cards(view.line_range)])


def cards_of(views: Views) -> Iterable[int]:
    """Return all cards that these views hold, in order of arrival."""
    if isinstance(views, dict):
        return views
    return dict.fromkeys([card for view in views for card in cards(view.line_range)])


def _shaped(views: tuple[ContextSegment, ...]) -> Views:
    if len(views) <= FEW:
        return views
    filed: dict[int, Group] = {}
    for view in views:
        _file(filed, view)
    return filed


def _file(filed: dict[int, Group], view: ContextSegment) -> None:
    for card in cards(view.line_range):
        join(filed, card, view)
