"""JSON files that people read."""

from __future__ import annotations

from ctxgc.drawing import readable_json


def test_each_value_has_a_line_of_its_own() -> None:
    assert readable_json({"b": [1, 2], "a": "x"}) == (b'{\n "b": [\n  1,\n  2\n ],\n "a": "x"\n}\n')
