"""The tables of gather and use go between their marks in the docs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ctxgc.lab import GatherReport, GatherSuite, gather_markdown, run_gather
from tools import gather_table

SMALL = GatherSuite(policies=("never",), windows=(16_000,), families=("chat",), tools=("sql",))


def test_the_kept_report_is_written_between_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = run_gather(SMALL)
    kept = tmp_path / "gather.json"
    kept.write_bytes(msgspec.json.encode(report))
    assert msgspec.json.decode(kept.read_bytes(), type=GatherReport) == report
    page = tmp_path / "lab.md"
    marks = ["<!-- table: gather (begin) -->\n", "<!-- table: gather (end) -->\n"]
    page.write_text(f"before\n{marks[0]}old\n{marks[1]}after\n", encoding="utf-8")
    monkeypatch.setattr(gather_table, "REPORT", kept)
    monkeypatch.setattr(gather_table, "PAGE", page)
    assert gather_table.main(["--kept"]) == 0
    new = gather_markdown(report)
    assert page.read_text("utf-8") == f"before\n{marks[0]}{new}{marks[1]}after\n"


def test_the_page_of_the_lab_has_the_marks() -> None:
    text = gather_table.PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- table: gather (begin) -->\n") == 1
    assert text.count("<!-- table: gather (end) -->\n") == 1
