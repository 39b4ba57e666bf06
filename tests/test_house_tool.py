"""The tool that measures the house."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import house
from tools.requirement_scan import ROOT

BEFORE = ROOT / "docs" / "development" / "house-before.json"


def test_the_rooms_together_are_the_house() -> None:
    found = house.rooms()
    whole = found.pop(house.ALL)
    assert whole["files"] == len(list(house.SOURCE.rglob("*.py")))
    assert whole["files"] == sum(room["files"] for room in found.values())
    assert whole["lines"] == sum(room["lines"] for room in found.values())
    assert whole["longest"] == max(room["longest"] for room in found.values())


def test_only_files_of_ctxgc_that_are_called_count() -> None:
    assert house.files_walked(lambda: json.loads("[]")) == set()
    assert all(Path(name).is_file() for name in house.files_walked(house.GCConfig))


def test_each_walk_leads_through_some_files() -> None:
    found = house.walks()
    assert tuple(found) == house.WALKS
    assert all(count > 0 for count in found.values())


def test_before_and_after_are_set_side_by_side(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    assert tuple(before["walks"]) == house.WALKS
    monkeypatch.setattr(house, "measure", lambda with_wheel: before)
    assert house.main(["--before", str(BEFORE)]) == 0
    said = capsys.readouterr().out
    count = f"{before['walks']['append']} > {before['walks']['append']}"
    assert any(line.split(maxsplit=1) == ["append", count] for line in said.splitlines())
