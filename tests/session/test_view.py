"""The view: its messages, and the groups that leave together."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import Message
from ctxgc.session.view import View
from ctxgc.wire import parse

_CALLED = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
CALL: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [_CALLED]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "text"}
HISTORY: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "read it"}, CALL, RESULT, {"role": "assistant", "content": "done"},
)  # fmt: skip


def _view() -> View:
    view = View()
    for number, message in enumerate(HISTORY):
        view.take(parse(message, "openai", f"m{number}"))
    return view


def _said(number: int) -> Message:
    return parse({"role": "user", "content": f"text {number}"}, "openai", f"m{number}")


def test_the_groups_of_a_history_follow_what_it_holds() -> None:
    view = _view()
    assert view.groups_of(view.messages) == [(0,), (1, 2), (3,)]
    assert view.groups_of(view.messages[1:]) == [(0, 1), (2,)]
    view.take(parse({"role": "user", "content": "thanks"}, "openai", "m4"))
    assert view.groups_of(view.messages) == [(0,), (1, 2), (3,), (4,)]
    view.show(view.messages[3:])
    assert view.groups_of(view.messages) == [(0,), (1,)]


def test_what_leaves_with_its_whole_group_is_known_to_have_left_together() -> None:
    assert _view().left_together({"m0", "m1", "m2"}) == {
        "m0": ("m0",), "m1": ("m1", "m2"), "m2": ("m1", "m2"),
    }  # fmt: skip
    assert _view().left_together({"m2"}) == {}


@given(st.lists(st.integers(0, 5), unique=True), st.integers(0, 5), st.booleans())
def test_another_history_waits_for_the_same_results_however_it_came_to_be_shown(
    chosen: list[int], edited: int, more: bool
) -> None:
    """A view that follows only what changed is judged by one that reads everything."""
    later = {"role": "assistant", "content": None, "tool_calls": [{**_CALLED, "id": "c2"}]}
    all_ = [parse(m, "openai", f"m{n}") for n, m in enumerate((*HISTORY, later))]
    view, fresh = View(), View()
    for message in all_[: 5 if more else 4]:
        view.take(message)
    shown = [all_[n] for n in sorted(chosen) if n < 5]
    shown = [
        parse(m.data, "openai", m.message_id) if n == edited else m for n, m in enumerate(shown)
    ]
    places = {message.message_id: float(n) for n, message in enumerate(all_)}
    for each in (view, fresh):
        each.show(shown, places)
    assert (view.waiting, view._tail_from) == (fresh.waiting, fresh._tail_from)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=8))
def test_a_reader_has_seen_what_stayed_as_it_was(changes: list[tuple[int, int, bool]]) -> None:
    view, read = View(), list[Message]()
    for keep, more, reads in changes:
        view.show([*view.messages[:keep], *(_said(n) for n in range(more))])
        view.take(_said(9))
        pairs = enumerate(zip(read, view.messages, strict=False))
        differs = (n for n, (old, new) in pairs if old is not new)
        assert view.seen_by("x") == next(differs, min(len(read), len(view.messages)))
        if reads:
            view.note_seen("x")
        read = list(view.messages if reads else view.messages[: view.seen_by("x")])
