"""Every kind of message, block and item that the SDKs of today can send is handled right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.testing import check_history
from tests.sdk import placement
from tests.sdk.placement import Json, kind_of, place
from tests.sdk.type_walk import names
from tests.sdk.unions import REQUESTS, name_of, objects, request_types

TYPES = request_types()
each_type = pytest.mark.parametrize(("form", "member"), TYPES, ids=name_of)


def test_no_kind_of_the_sdks_is_unknown_here() -> None:
    """A kind that is new needs a place in `placing`, and a look at how it is read and paired."""
    anthropic = set().union(*(names(union, "type") for union in REQUESTS["anthropic"]))
    known = {
        *placement.ANTHROPIC_USER,
        *placement.ANTHROPIC_SYSTEM,
        *placement.ANTHROPIC_ASSISTANT,
        *placement.ANTHROPIC_PAIRS,
        *placement.ANTHROPIC_CALLS,
    }
    assert anthropic == known
    assert names(REQUESTS["responses"][0], "type") == {
        *placement.RESPONSES_ALONE,
        *placement.RESPONSES_PAIRS,
        *placement.RESPONSES_PAIRS.values(),
    }
    assert names(REQUESTS["openai"][0], "role") == placement.CHAT_ROLES


@each_type
def test_it_comes_back_as_it_came(form: Format, member: Any) -> None:
    for instance in objects(member):
        history = place(instance, form)
        texts = [json.dumps(message, indent=1).encode() for message in history]
        assert wire.render(wire.parse_history(history, form)) == history
        assert [wire.message_bytes(m) for m in wire.parse_history(texts, form)] == texts


@each_type
def test_a_history_with_it_is_valid_and_needs_no_repair(form: Format, member: Any) -> None:
    for instance in objects(member):
        history = place(instance, form)
        assert check_history(history, form) == []
        assert wire.validate(history, form) == []
        assert wire.repair(history, form).messages == history


@each_type
def test_it_tells_its_format_or_nothing(form: Format, member: Any) -> None:
    for instance in objects(member):
        history = place(instance, form)
        found = wire.detect_format(history)
        assert found == form or wire.validate(history, found) == []


def _cases() -> list[tuple[Format, list[Json], int, int]]:
    """Return histories with a call and its result by the places of both."""
    found: list[tuple[Format, list[Json], int, int]] = []
    for form, member in TYPES:
        history = place(objects(member)[0], form)
        for one, other in _pairs(history, form):
            found.append((form, _talked_over(history, form), one, other))
    return found


def _pairs(history: list[Json], form: Format) -> list[tuple[int, int]]:
    if form == "responses":
        kinds = [kind_of(item) for item in history]
        return [(n, n + 1) for n, kind in enumerate(kinds[:-1])
                if kinds[n + 1] == placement.RESPONSES_PAIRS.get(kind)]  # fmt: skip
    roles = [message["role"] for message in history]
    if form == "openai":
        return [(n - 1, n) for n, role in enumerate(roles) if role in ("tool", "function")]
    return [(1, 2)] if roles[:3] == ["user", "assistant", "user"] else []


def _talked_over(history: list[Json], form: Format) -> list[Json]:
    """Return the history with a further turn, so that nothing in it is still going on."""
    return [*history, {"role": "user", "content": "and"}, {"role": "assistant", "content": "so"}]


@pytest.mark.parametrize(("form", "history", "call", "result"), _cases())
@pytest.mark.parametrize("lost", ["call", "result"])
def test_a_call_or_result_alone_is_found_and_mended(
    form: Format, history: list[Json], call: int, result: int, lost: str
) -> None:
    gone = call if lost == "call" else result
    broken = history[:gone] + history[gone + 1 :]
    assert [each.promise for each in wire.validate(broken, form)] != []
    mended = wire.repair(broken, form)
    assert mended.fixes != []
    assert wire.validate(mended.messages, form) == []
    assert check_history(mended.messages, form) == []


@pytest.mark.parametrize("result", sorted(placement.ANTHROPIC_PAIRS))
@pytest.mark.parametrize("lost", [0, 1])
def test_a_block_that_lost_its_partner_is_found_and_mended(result: str, lost: int) -> None:
    block = {"type": result, "tool_use_id": "a", "content": []}
    history = _talked_over(place(block, "anthropic"), "anthropic")
    place_of = 1 if lost == 0 or result != "tool_result" else 2
    content = history[place_of]["content"]
    kept = [each for each in content if each["type"] != (result if lost else _call(result))]
    history[place_of] = {**history[place_of], "content": kept or "hm"}
    assert {each.call_id for each in wire.validate(history, "anthropic")} == {"a"}
    mended = wire.repair(history, "anthropic")
    assert mended.fixes != []
    assert wire.validate(mended.messages, "anthropic") == []
    assert check_history(mended.messages, "anthropic") == []


def _call(result: str) -> str:
    return str(placement.ANTHROPIC_PAIRS[result]["type"])
