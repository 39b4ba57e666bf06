"""Kinds: what a call does to files, and what its result is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.collector.calls import CallEffect, kind_of_result, read_call


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("Read", {"file_path": "src/a.py"},
         CallEffect(kind="view", path="a.py", file="src/a.py", named=frozenset({"a.py"}))),
        ("Edit", {"file_path": "src/a.py", "old_string": "x"},
         CallEffect(
             kind="edit", path="a.py", file="src/a.py", named=frozenset({"a.py"}),
             edited=frozenset({"a.py"}),
         )),
        ("Bash", {"command": "cat src/a.py"},
         CallEffect(kind="shell_view", path="a.py", named=frozenset({"a.py"}))),
        ("Bash", {"command": "cat src/a.py | wc -l"},
         CallEffect(kind="shell_view", path="a.py", named=frozenset({"a.py"}))),
        ("Bash", {"command": "cat src/a.py src/b.py"},
         CallEffect(kind="shell_view", named=frozenset({"a.py", "b.py"}))),
        ("Bash", {"command": "sed -i s/a/b/ src/a.py"},
         CallEffect(kind="shell", named=frozenset({"a.py"}), edited=frozenset({"a.py"}))),
        ("Bash", {"command": "pytest tests/test_a.py"},
         CallEffect(kind="shell", named=frozenset({"test_a.py"}), checks=True)),
        ("Bash", {"command": "grep -rn test ."}, CallEffect(kind="shell")),
        ("Grep", {"pattern": "x", "path": "src/a.py"},
         CallEffect(kind="search", named=frozenset({"a.py"}))),
        ("TodoWrite", {"todos": [{"content": "Fix it", "file": "src/a.py"}]},
         CallEffect(kind="todo", tool="TodoWrite", named=frozenset({"a.py"}))),
        ("Weather", {"city": "Ulm"}, CallEffect(kind="other", gathers=True)),
        ("search_flights", {"to": "Ulm"}, CallEffect(kind="other", gathers=True)),
        ("Read", {"file_path": "a/b.yaml"},
         CallEffect(
             kind="view", path="b.yaml", file="a/b.yaml", named=frozenset({"b.yaml"}), gathers=True,
         )),
        ("Bash", {"command": "cd x && kubectl get pods"}, CallEffect(kind="shell", gathers=True)),
        ("Bash", {"command": "cd x && python tools/show.py ada"},
         CallEffect(kind="shell", named=frozenset({"show.py"}), gathers=True)),
        ("Bash", {"command": "cat deploy/ada.cfg"},
         CallEffect(
             kind="shell_view", path="ada.cfg", named=frozenset({"ada.cfg"}), gathers=True,
         )),
        ("Bash", {"command": "# look\nFOO=1 git log"}, CallEffect(kind="shell")),
        ("Bash", {"command": "grep -h ada all.csv"},
         CallEffect(kind="shell", named=frozenset({"all.csv"}), gathers=True)),
    ],
)  # fmt: skip
def test_a_call_is_known_by_its_name_and_arguments(
    name: str, given: dict[str, Any], expected: CallEffect
) -> None:
    assert read_call(name, json.dumps(given)) == expected


def test_broken_arguments_are_no_error() -> None:
    assert read_call("Weather", "{broken").kind == "other"


def test_a_search_that_found_only_paths_is_a_list_of_paths() -> None:
    search = CallEffect(kind="search")
    assert kind_of_result(search, ["src/a.py", "src/b.py", ""]) == "paths"
    assert kind_of_result(search, ["src/a.py:3: x = 1", "src/b.py:4: y = 2"]) == "search"
    assert kind_of_result(CallEffect(kind="view"), ["src/a.py"]) == "view"
    assert kind_of_result(CallEffect(kind="todo"), ["src/a.py"]) == "other"
