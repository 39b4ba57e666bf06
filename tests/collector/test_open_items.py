"""The open items: in order, and woken by what concerns them."""

from __future__ import annotations

from ctxgc.collector.calls import Kind, read_call
from ctxgc.collector.reader import Item, Opened
from ctxgc.core import Text
from tests.collector.agent import view_of


def item(place: int, kind: Kind = "view", path: int = 0) -> Item:
    call = read_call("Read", f'{{"file_path": "src/{path}.py"}}')
    made = Item(f"m{place}", 0, Text(view_of(path, 0, 5)), kind=kind, call=call, born=1)
    made.place = place
    made.looks_at = 9
    made.elsewhere = False
    return made


def test_items_stand_in_the_order_of_the_view_whenever_they_came() -> None:
    opened, items = Opened(), [item(place) for place in range(4)]
    for place in (1, 3, 0, 2):
        opened.add(items[place])
    assert list(opened) == items
    assert opened.newest_first() == items[::-1]


def test_items_keep_their_order_when_the_view_grows_shorter() -> None:
    opened, items = Opened(), [item(place) for place in range(4)]
    for each in items:
        opened.add(each)
    opened.drop(items[1])
    items[2].place, items[3].place = 1, 2
    opened.add(late := item(4))
    assert list(opened) == [items[0], items[2], items[3], late]
    assert items[1] not in opened


def test_a_result_is_woken_by_the_files_that_it_is_about_alone() -> None:
    opened, (view, other, shell) = Opened(), (item(0), item(1, path=1), item(2, "shell"))
    for each in (view, other, shell):
        opened.add(each)
    opened.hear({view.call.path, "nowhere"})
    assert [each.looks_at for each in (view, other, shell)] == [0, 9, 0]
    assert view.elsewhere is False


def test_a_view_is_woken_by_its_lines_alone() -> None:
    opened, (view, other) = Opened(), (item(0), item(1, path=1))
    for each in (view, other):
        opened.add(each)
    opened.see(frozenset({next(iter(view.text.line_keys)), "nowhere"}))
    assert [(each.looks_at, each.elsewhere) for each in (view, other)] == [(0, None), (9, False)]


def test_who_was_dropped_is_not_woken_and_may_be_dropped_again() -> None:
    opened, view, twin = Opened(), item(0), item(1)
    for each in (view, twin):
        opened.add(each)
    opened.drop(view)
    opened.drop(view)
    opened.hear({view.call.path})
    opened.see(view.text.line_keys)
    assert [(each.looks_at, each.elsewhere) for each in (view, twin)] == [(9, False), (0, None)]
