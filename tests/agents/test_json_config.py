"""JSON of others is edited as text: what is not ours keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.agents import json_config
from ctxgc.errors import ConfigError

KEYS = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
INDENTS = st.sampled_from([None, 2, 4, "\t"])

COMMENTED = """{
  // servers of mine
  "servers": {
    "one": {"command": "a"}, /* keep */
  },
}
"""


@given(OBJECTS, INDENTS, st.lists(KEYS, min_size=1, max_size=3), VALUES)
def test_a_member_comes_in_and_goes_out_without_a_change_to_the_others(
    value: dict[str, Any], indent: Any, path: list[str], member: Any
) -> None:
    text = json.dumps(value, indent=indent)
    expected: Any = json.loads(text)
    if not _is_open(expected, path):
        return
    new = json_config.put(text, path, member)
    _put(expected, path, member)
    assert json.loads(new) == expected
    place = expected
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    assert json.loads(json_config.drop(new, path)) == expected


@given(st.lists(VALUES, max_size=4), INDENTS, VALUES)
def test_an_item_comes_last_and_goes_again(items: list[Any], indent: Any, item: Any) -> None:
    text = json.dumps({"list": items}, indent=indent)
    new = json_config.append(text, ["list"], item)
    assert json.loads(new) == {"list": [*items, item]}
    assert json.loads(json_config.drop(new, ["list", len(items)])) == {"list": items}


def test_comments_and_trailing_commas_stay() -> None:
    new = json_config.put(COMMENTED, ["servers", "two"], {"command": "b"})
    assert json_config.parse(new, "f") == {
        "servers": {"one": {"command": "a"}, "two": {"command": "b"}}
    }
    assert "// servers of mine" in new
    assert "/* keep */" in new
    assert json_config.drop(new, ["servers", "two"]) == COMMENTED


def test_a_comment_before_the_only_member_stays() -> None:
    text = '{\n  // mine\n  "a": 1,\n}\n'
    assert json_config.drop(text, ["a"]) == "{\n  // mine\n}\n"
    assert json_config.drop('{"b": {"a": 1}}', ["b", "a"]) == '{"b": {}}'


def test_the_indentation_of_the_file_is_kept() -> None:
    new = json_config.put('{\n\t"a": 1\n}\n', ["b", "c"], [1])
    assert new == '{\n\t"a": 1,\n\t"b": {\n\t\t"c": [\n\t\t\t1\n\t\t]\n\t}\n}\n'


@pytest.mark.parametrize("text", ["", "  \n", "// nothing yet\n"])
def test_an_empty_file_becomes_an_object(text: str) -> None:
    assert json_config.parse(json_config.put(text, ["a"], 1), "f") == {"a": 1}


@pytest.mark.parametrize(
    "text",
    ["{", '{"a" 1}', '{"a": }', "{'a': 1}", '{"a": 1} x', "[1, 2", '{"a": tru}', "[" * 9_999],
)
def test_damaged_text_is_refused_with_the_name_of_the_file(text: str) -> None:
    with pytest.raises(ConfigError, match=r"settings\.json is not JSON"):
        json_config.put(text, ["b"], 1, "settings.json")


@pytest.mark.parametrize("text", ["[]", "1", '"text"'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a JSON object"):
        json_config.parse(text, "f")


def test_a_value_that_stands_in_the_way_is_named() -> None:
    with pytest.raises(ConfigError, match="'hooks' is not an object"):
        json_config.put('{"hooks": 1}', ["hooks", "Stop"], [])
    with pytest.raises(ConfigError, match="'hooks' is not a list"):
        json_config.append('{"hooks": {}}', ["hooks"], 1)


def _is_open(value: Any, path: list[str]) -> bool:
    for key in path[:-1]:
        value = value.get(key, {})
        if not isinstance(value, dict):
            return False
    return path[-1] not in value


def _put(value: Any, path: list[str], member: Any) -> None:
    for key in path[:-1]:
        value = value.setdefault(key, {})
    value[path[-1]] = member
