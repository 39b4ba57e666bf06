"""The view: its messages, and the groups that leave together."""

from __future__ import annotations

from typing import Any

from ctxgc.session.view import View
from ctxgc.wire import parse

CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "text"}
HISTORY: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "read it"}, CALL, RESULT, {"role": "assistant", "content": "done"},
)  # fmt: skip


def _view() -> View:
    view = View()
    for number, message in enumerate(HISTORY):
        view.take(parse(message, "openai", f"m{number}"))
    return view


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
