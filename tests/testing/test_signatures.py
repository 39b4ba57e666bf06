"""Signed thinking goes back as it was issued, in the conversation it was issued in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ctxgc.testing import Breach, ThinkingSignatures
from ctxgc.testing.signatures import BINDING_BETA
from tests.testing.builders import assistant, text, thought, tool_result, tool_use, user

Body = dict[str, Any]


def _asked() -> Body:
    return {
        "system": "be brief",
        "tools": [{"name": "read", "input_schema": {}}],
        "messages": [user("one"), assistant("two"), user("three")],
    }


def _continued(book: ThinkingSignatures) -> Body:
    """Return the request that sends back a thinking block and the call issued with it."""
    body = _asked()
    block = thought("hm", book.sign("hm", body))
    book.remember([block, tool_use("a")])
    body["messages"] += [assistant([block, tool_use("a")]), user([tool_result("a")])]
    return body


def _bound(words: str, path: str = "messages.3.content.0", index: int = 3) -> Breach:
    message = (
        f"{path}: Invalid `signature` in `thinking` block. The block is bound to a different "
        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` "
        f'to "drop_block". That setting requires the `{BINDING_BETA}` value in the '
        f"`anthropic-beta` header. {words}"
    )
    return Breach("thinking_bound", message, path, index=index)


SYSTEM = _bound("The `system` prompt differs from the one this block was created with.")
TOOLS = _bound("The `tools` differ from the ones this block was created with.")
EARLIER = _bound("The messages before this block differ from the ones it was created with.")


@pytest.mark.parametrize("bind", [True, False])
def test_what_was_issued_is_taken_back(bind: bool) -> None:
    book = ThinkingSignatures(bind=bind)
    assert book.check(_continued(book)) == []


def test_a_changed_thought_is_refused_wherever_it_stands() -> None:
    book = ThinkingSignatures()
    body = _continued(book)
    body["messages"] += [assistant("later"), user("still")]
    body["messages"][3]["content"][0]["thinking"] = "hmm"
    message = "messages.3.content.0: Invalid `signature` in `thinking` block"
    assert book.check(body) == [Breach("signature", message, "messages.3.content.0", index=3)]


def test_thinking_of_the_last_turn_is_whole_or_gone() -> None:
    book = ThinkingSignatures()
    body = _asked()
    first = thought("hm", book.sign("hm", body))
    second = thought("ha", book.sign("ha", body, [first]))
    book.remember([first, second, tool_use("a")])
    history = body["messages"]

    def sent(*blocks: Any) -> list[str]:
        turn = [assistant([*blocks, tool_use("a")]), user([tool_result("a")])]
        return [breach.rule for breach in book.check({**body, "messages": history + turn})]

    assert sent(first, second) == []
    assert sent() == []
    assert sent(first) == ["thinking_changed"]
    assert sent(second, first) == ["thinking_changed", "thinking_bound", "thinking_bound"]


@pytest.mark.parametrize("where", ["system", "tools", "messages"])
def test_a_bound_block_notices_what_changed_before_it(where: str) -> None:
    book = ThinkingSignatures(bind=True)
    body = _continued(book)
    expected = {"system": SYSTEM, "tools": TOOLS, "messages": EARLIER}[where]
    changed = copy.deepcopy(body)
    if where == "system":
        changed["system"] = "be long"
    elif where == "tools":
        changed["tools"][0]["name"] = "write"
    else:
        changed["messages"][0]["content"] = "ONE"
    assert book.check(changed) == [expected]
    unbound = ThinkingSignatures(bind=False)
    assert unbound.check(changed) == []


def test_a_message_taken_out_before_a_bound_block_is_noticed() -> None:
    book = ThinkingSignatures()
    body = _continued(book)
    del body["messages"][1]
    words = "The messages before this block differ from the ones it was created with."
    assert book.check(body) == [_bound(words, "messages.2.content.0", 2)]


def test_what_comes_after_a_bound_block_may_change() -> None:
    book = ThinkingSignatures()
    body = _continued(book)
    body["messages"][-1] = user([tool_result("a", "shorter")])
    assert book.check(body) == []


def test_moving_a_cache_breakpoint_or_spelling_a_text_as_a_block_changes_nothing() -> None:
    book = ThinkingSignatures()
    body = _continued(book)
    body["messages"][0] = user([{**text("one"), "cache_control": {"type": "ephemeral"}}])
    body["system"] = [{**text("be brief"), "cache_control": {"type": "ephemeral"}}]
    assert book.check(body) == []


def test_a_request_that_drops_blocks_is_not_refused_and_says_which_fall() -> None:
    book = ThinkingSignatures()
    body = _continued(book)
    body["system"] = "be long"
    body["thinking"] = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert book.check(body) == []
    assert [block.path for block in book.dropped(body)] == ["messages.3.content.0"]


@pytest.mark.parametrize("signature", ["", "sig", "AAAA", "A" * 88])
def test_a_foreign_signature_is_refused_unless_it_is_accepted(signature: str) -> None:
    messages = [user(), assistant([thought("hm", signature), text()]), user()]
    body = {"messages": messages}
    assert [breach.rule for breach in ThinkingSignatures().check(body)] == ["signature"]
    assert ThinkingSignatures(accept_foreign=True).check(body) == []
