"""Changes of files that others write to as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc.agents import FileEdit
from ctxgc.agents.installation import apply_edits
from ctxgc.errors import StoreBusyError


def test_what_an_agent_wrote_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    first.write_bytes(b"old")
    second.write_bytes(b"what the agent wrote meanwhile")
    changes = [
        FileEdit(first, b"old", b"new"),
        FileEdit(second, b"old", b"new"),
        FileEdit(third, None, b"new"),
    ]
    with pytest.raises(StoreBusyError, match="changed by another program") as error:
        apply_edits(changes)
    assert error.value.details == {"path": str(second)}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "first": b"old",
        "second": b"what the agent wrote meanwhile",
    }


def test_a_file_that_somebody_made_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"theirs")
    with pytest.raises(StoreBusyError):
        apply_edits([FileEdit(path, None, b"ours")])
    assert path.read_bytes() == b"theirs"
