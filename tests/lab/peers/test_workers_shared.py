"""What the workers share: the loop, and messages in other people's shapes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from ctxgc.lab.peers.policy import WORKERS
from tests.lab.builders import Json, user
from tests.lab.long_runs import calls, tool


def script(name: str) -> ModuleType:
    """Load a script as its interpreter would, without running it."""
    spec = importlib.util.spec_from_file_location(f"worker_{name}", WORKERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HISTORY = [user("a"), calls("b", ["x", "y"]), tool("x", "1"), tool("y", "2"), user("a")]


def test_messages_that_stand_as_they_came_are_named_by_their_numbers() -> None:
    changed = {**HISTORY[2], "content": "short"}
    view = [HISTORY[0], HISTORY[1], changed, dict(HISTORY[3]), HISTORY[4]]
    assert script("shared").numbered(view, HISTORY) == [0, 1, changed, 3, 4]


def test_a_message_that_stands_twice_is_found_once_for_each() -> None:
    assert script("shared").numbered([HISTORY[4], HISTORY[4]], HISTORY) == [0, 4]


@pytest.mark.parametrize("message", HISTORY)
def test_a_message_comes_back_from_blocks_as_it_was(message: Json) -> None:
    module = script("shared")
    assert module.from_blocks(module.to_blocks(message)["content"], message) == message


def test_what_blocks_leave_out_is_left_out() -> None:
    module = script("shared")
    blocks = module.to_blocks(HISTORY[1])["content"]
    left = module.from_blocks(blocks[1:2], HISTORY[1])
    assert left == {**HISTORY[1], "tool_calls": HISTORY[1]["tool_calls"][:1]}
    result = [{"type": "tool_result", "tool_use_id": "x", "content": [{"text": "cut"}]}]
    assert module.from_blocks(result, HISTORY[2]) == {**HISTORY[2], "content": "cut"}


def test_litellm_counts_each_text_once_for_each_model(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, str]] = []

    def count_function(model: str, _: None = None) -> Callable[[str], int]:
        return lambda text: counted.append((model, text)) or len(model + text)

    counter = ModuleType("token_counter")
    vars(counter)["_get_count_function"] = count_function
    monkeypatch.setitem(sys.modules, "litellm.litellm_core_utils.token_counter", counter)
    monkeypatch.setitem(sys.modules, "shared", script("shared"))
    script("run_litellm_trim").remember_counts()
    asked = [("a", "x"), ("a", "y"), ("bb", "x"), ("a", "x"), ("bb", "x")]
    found = [vars(counter)["_get_count_function"](model, None)(text) for model, text in asked]
    assert found == [2, 2, 3, 2, 3]
    assert counted == [("a", "x"), ("a", "y"), ("bb", "x")]
