"""What Claude Code keeps beside a result."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.wire.transcripts.claude_code import edited_result

LONG = "\n".join(f"line {n} of the output" for n in range(40))
NUMBERED = "\n".join(f"{n:>6}\t{row}" for n, row in enumerate(LONG.split("\n"), 1))


@pytest.mark.parametrize(
    ("kept", "said", "wanted"),
    [
        ("Error: not there", "Error: not there", "[gone]"),
        (
            {"stdout": LONG, "stderr": "", "code": 1},
            LONG,
            {"stdout": "[gone]", "stderr": "", "code": 1},
        ),
        ({"stdout": LONG, "again": LONG}, LONG, {"stdout": "[gone]", "again": ""}),
        (
            {"file": {"content": LONG, "numLines": 40}},
            NUMBERED,
            {"file": {"content": "[gone]", "numLines": 1}},
        ),
        ([{"type": "text", "text": LONG}], LONG, [{"type": "text", "text": "[gone]"}]),
        (
            {"oldString": "x" * 500, "filePath": "a.py"},
            LONG,
            {"oldString": "x" * 500, "filePath": "a.py"},
        ),
        ({"filenames": ["a.py"], "n": 3}, LONG, {"filenames": ["a.py"], "n": 3}),
        (None, LONG, None),
    ],
)
def test_the_text_is_replaced_where_it_stands(kept: Any, said: str, wanted: Any) -> None:
    assert edited_result(kept, said, "[gone]") == wanted
