from __future__ import annotations

import json
import warnings
from enum import IntEnum
from typing import Any, ClassVar

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import MessageError
from ctxgc.wire import dump, encode
from ctxgc.wire.json_text import MAX_DEPTH, MAX_NODES, load, snapshot
from ctxgc.wire.messages import copies
from tests.wire.histories import JSON


def _nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    return {"content": value}


def test_a_snapshot_shares_no_container_with_its_owner() -> None:
    data = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    taken = snapshot(data)
    data["content"][0]["text"] = "changed"
    assert taken == {"role": "user", "content": [{"type": "text", "text": "hi"}]}


def test_objects_of_an_sdk_become_the_data_they_stand_for() -> None:
    class Block(pydantic.BaseModel):
        kind: str = pydantic.Field(alias="type")
        text: str
        from_: str = pydantic.Field(alias="from", default="")
        unset: int | None = None

    block = Block.model_validate({"type": "text", "text": "hi", "from": "a"})
    assert snapshot({"content": (block,)}) == {
        "content": [{"type": "text", "text": "hi", "from": "a"}]
    }


def test_what_an_sdk_keeps_out_of_a_request_stays_out() -> None:
    class Call(pydantic.BaseModel):
        name: str
        parsed_arguments: object = None

        __api_exclude__: ClassVar = {"parsed_arguments"}

    assert snapshot(Call(name="Read", parsed_arguments={"path": "a"})) == {"name": "Read"}


def test_an_object_with_a_value_that_its_type_does_not_know_makes_no_noise() -> None:
    class Item(pydantic.BaseModel):
        status: str

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert snapshot(Item.model_construct(status=["new"])) == {"status": ["new"]}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "must be a JSON object, not list"),
        (None, "must be a JSON object, not NoneType"),
        ({"a": {1, 2}}, "cannot hold a set"),
        ({1: "a"}, "key 1 of a message is not a string"),
        ({"a": float("nan")}, "nan is not a JSON number"),
        ({"a": [0] * (MAX_NODES + 1)}, "more than 500000 values"),
    ],
)
def test_what_is_not_json_is_refused_by_name(value: Any, words: str) -> None:
    with pytest.raises(MessageError, match=words):
        snapshot(value)


def test_the_depth_of_a_message_is_limited_for_data_and_for_text() -> None:
    assert snapshot(_nested(MAX_DEPTH)) == _nested(MAX_DEPTH)
    for hostile in (_nested(MAX_DEPTH + 1), _nested(5_000)):
        with pytest.raises(MessageError, match="nested deeper than 64 levels"):
            snapshot(hostile)
    for text in (json.dumps(_nested(MAX_DEPTH + 1)), "[" * 200_000):
        with pytest.raises(MessageError, match="nested deeper than 64 levels"):
            load(text)


@pytest.mark.parametrize("text", ["", "{", "nul", '{"a": NaN}', b"\xff\xfe", b'{"a": "\xff"}'])
def test_text_that_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(MessageError, match="not valid JSON"):
        load(text)


def test_the_source_keeps_what_python_cannot() -> None:
    text = b'{ "n": 1e2, "n": %s, "big": 1e999, "s": "\\ud83d" }' % (b"7" * 5_000)
    data, source = load(text)
    assert source == text
    assert data == {"n": "7" * 5_000, "big": "1e999", "s": "\ud83d"}


def test_a_text_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxgc.wire.json_text.MAX_BYTES", 10)
    with pytest.raises(MessageError, match="more than 10"):
        load('{"a": "long"}')


def test_lone_surrogates_become_escapes_that_mean_the_same() -> None:
    assert encode('{"s": "\ud83d"}') == b'{"s": "\\ud83d"}'
    assert json.loads(dump({"s": "\ud83d☕"})) == {"s": "\ud83d☕"}


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_any_json_comes_back_from_its_dump_its_snapshot_and_its_copy(data: dict[str, Any]) -> None:
    assert snapshot(data) == copies([data])[0] == data
    assert load(dump(data).encode())[0] == data
    assert list(snapshot(data)) == list(copies([data])[0]) == list(data)


class Own(str):
    """A text of somebody's own class."""

    __slots__ = ()


class Ratio(float):
    """A number of somebody's own class."""


class Rank(IntEnum):
    FIRST = 1


def test_texts_and_numbers_of_somebodys_own_class_become_plain() -> None:
    taken = snapshot({Own("role"): Own("user"), "n": [Ratio(0.5), Rank.FIRST, True]})
    assert taken == {"role": "user", "n": [0.5, 1, True]}
    kinds = [*map(type, taken), type(taken["role"]), *map(type, taken["n"])]
    assert kinds == [str, str, str, float, int, bool]


@pytest.mark.parametrize(
    "number",
    [Ratio("nan"), Ratio("inf"), 10**4_000, -(10**5_000)],
    ids=["nan", "inf", "long", "longer"],
)
def test_a_number_that_json_cannot_spell_is_refused(number: float) -> None:
    with pytest.raises(MessageError, match=r"not a JSON number|more than 4,000 digits"):
        snapshot({"role": "user", "n": number})


@pytest.mark.parametrize("text", ["hi", Own("hi")])
def test_copies_share_no_container_with_what_they_are_of(text: str) -> None:
    data = [{"role": "user", "content": [{"text": text}]}, {"n": [2**70, 0.5, None, True]}]
    found = copies(data)
    found[0]["content"][0]["text"] = "changed"
    found[1]["n"].append(1)
    assert data == [{"role": "user", "content": [{"text": "hi"}]}, {"n": [2**70, 0.5, None, True]}]
