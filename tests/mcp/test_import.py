"""A coding agent's transcript comes in, and later only what was added."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import InputError
from ctxgc.mcp import ContextService, ingest
from tests.mcp.contexts import everything, filled, make, opened


def _line(number: int, content: Any, role: str = "user") -> dict[str, Any]:
    return {
        "sessionId": "s", "uuid": f"u{number}", "type": role, "isSidechain": False,
        "timestamp": f"2026-01-01T00:00:{number % 60:02d}.000Z",
        "message": {"role": role, "content": content},
    }  # fmt: skip


TALK = [
    _line(1, "look at src/a.py"),
    _line(2, [{"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "src/a.py"}}], "assistant"),
    _line(3, [{"type": "tool_result", "tool_use_id": "c1", "content": "def parse(): ..."}]),
    _line(4, [{"type": "text", "text": "it parses"}], "assistant"),
]  # fmt: skip


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _import_all(service: ContextService, path: Path) -> dict[str, Any]:
    while True:
        piece = service.import_piece(str(path))
        if piece["done"]:
            return piece


def test_a_transcript_becomes_segments_with_the_times_it_names(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    _write(file, TALK)
    service = make(roots=[tmp_path])
    done = service.import_piece(str(file))
    assert (done["ingested"], done["broken"], done["done"]) == (4, 0, True)
    result = service.segment("u3.0")
    assert (result["file_path"], result["type"]) == ("src/a.py", "code")
    assert result["origin"]["created_at"] == "2026-01-01T00:00:03+00:00"


def test_a_second_import_reads_only_what_was_added_also_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    _write(file, TALK[:2])
    store = opened()
    assert make(store, roots=[tmp_path]).import_piece(str(file))["ingested"] == 2
    _write(file, TALK)
    done = make(store, roots=[tmp_path]).import_piece(str(file))
    assert (done["ingested"], done["already_known"]) == (2, 0)
    assert make(store, roots=[tmp_path]).segment("u3.0")["file_path"] == "src/a.py"
    again = make(store, roots=[tmp_path]).import_piece(str(file))
    assert (again["ingested"], again["already_known"]) == (0, 0)


def test_a_replaced_file_is_read_from_its_beginning_and_nothing_comes_in_twice(
    tmp_path: Path,
) -> None:
    file = tmp_path / "t.jsonl"
    _write(file, TALK)
    service = make(roots=[tmp_path])
    service.import_piece(str(file))
    _write(file, [_line(9, "a new beginning"), *TALK])
    done = service.import_piece(str(file))
    assert (done["ingested"], done["already_known"]) == (1, 4)


def test_a_long_transcript_comes_in_by_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "PIECE", 300)
    file = tmp_path / "t.jsonl"
    _write(file, [_line(n, f"word{n} " * (1 if n != 7 else 500)) for n in range(30)])
    service = make(roots=[tmp_path], limit=100_000)
    pieces = 0
    while not service.import_piece(str(file))["done"]:
        pieces += 1
    assert pieces > 5
    assert service.usage()["segments"]["working"]["segments"] == 30


def test_a_line_without_an_end_is_refused_when_it_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "PIECE", 10)
    monkeypatch.setattr(ingest, "LONGEST_LINE", 1_000)
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"x" * 5_000)
    with pytest.raises(InputError, match="longer than"):
        make(roots=[tmp_path]).import_piece(str(file))


@pytest.mark.parametrize(
    "name",
    [
        "../secret.jsonl", "link.jsonl", "linked/secret.jsonl", ".", "missing", "pipe", "\0",
        "~nobody/x", "a" * 5_000,
    ],
)  # fmt: skip
def test_only_plain_files_below_the_roots_are_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.jsonl").write_text(json.dumps(TALK[0]), encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    store = opened()
    service = make(store, roots=[root])
    filled(service, 5)
    before = everything(store)
    with pytest.raises(InputError) as caught:
        service.import_piece(name if name.startswith("~") else f"{root}/{name}")
    assert caught.value.details["field"] == "path"
    assert everything(store) == before


def test_without_roots_nothing_is_read(tmp_path: Path) -> None:
    _write(tmp_path / "t.jsonl", TALK)
    with pytest.raises(InputError, match="outside the allowed roots"):
        make().import_piece(str(tmp_path / "t.jsonl"))
