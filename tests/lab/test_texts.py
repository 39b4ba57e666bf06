"""What a message says."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.lab.facts import texts_of


def call(arguments: Any) -> dict[str, Any]:
    function = {"name": "edit", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"function": function}]}


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ({"role": "user", "content": "hello"}, ("hello",)),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}, ("a",)),
        (call('{"path": "a\\nb", "n": [1, {"deep": "c"}], "ok": true}'), ("edit", "a\nb", "1", "c")),
        (call("no json"), ("edit", "no json")),
        (call({"already": "decoded"}), ("edit", "decoded")),
        ({"role": "assistant", "content": "", "tool_calls": None}, ()),
        ({"role": "assistant", "tool_calls": ["?", {"function": 3}]}, ()),
    ],
)  # fmt: skip
def test_texts_are_the_content_and_the_decoded_arguments(
    message: dict[str, Any], texts: tuple[str, ...]
) -> None:
    assert texts_of(message) == texts
