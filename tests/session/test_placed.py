"""A host that keeps the bytes of its requests learns which messages changed, and where they came in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc import Session
from ctxgc.session import intake


def _bytes(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def _history(steps: int) -> list[bytes]:
    found = [_bytes({"role": "user", "content": "read all files"})]
    for n in range(steps):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        found.append(_bytes({"role": "assistant", "content": None, "tool_calls": [call]}))
        text = "\n".join(f"value_{n}_{line} = {line * n}" for line in range(40))
        found.append(_bytes({"role": "tool", "tool_call_id": f"c{n}", "content": text}))
    return found


def test_each_message_of_the_view_has_its_number_its_bytes_and_whether_it_changed() -> None:
    history = _history(12)
    session = Session(2_500, store="memory:")
    session.sync(history, "openai")
    placed = session.placed()
    whole = [each for each in placed if each.is_whole]
    assert [each.json for each in whole] == [history[each.number or 0] for each in whole]
    assert [each.number for each in placed if each.number is not None] == sorted(
        each.number for each in placed if each.number is not None
    )
    assert 0 < len(whole) < len(history)
    assert json.loads(b"[" + b",".join(each.json for each in placed) + b"]") == session.view()


def test_a_history_as_bytes_that_came_in_before_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = _history(4)
    session = Session(50_000, store="memory:")
    session.sync(history[:-2], "openai")
    assert session.shared(history) == len(history) - 2
    read: list[Any] = []
    parse = intake.parse
    monkeypatch.setattr(
        intake, "parse", lambda raw, *more: (read.append(raw), parse(raw, *more))[1]
    )
    session.sync(history, "openai")
    assert read == history[-2:]
    session.sync(history[:3], "openai")
    assert [each.number for each in session.placed()] == [0, 1, 2]
