"""The demo writes its session, with the page that `ctxgc analyze` makes of it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxgc import validate
from ctxgc.cli import main as cli
from ctxgc.demo.__main__ import main
from ctxgc.demo.pages import PAGE, SESSION, write_report
from ctxgc.demo.run import ROOM_WINDOW, messages

SHORT = ["--segments", "60", "--seed", "1"]


def test_the_last_line_is_the_path_of_the_page(tmp_path: Path) -> None:
    stream = io.StringIO()
    folder = tmp_path / "out" / "demo"
    assert main([*SHORT, "--report", str(folder)], stream) == 0
    assert Path(stream.getvalue().splitlines()[-1].strip()) == folder / PAGE
    assert sorted(file.name for file in folder.iterdir()) == [PAGE, SESSION]


def test_the_page_is_the_one_of_analyze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = write_report(Path("demo"), 200)
    named = ["analyze", f"demo/{SESSION}", "--context-limit", str(ROOM_WINDOW)]
    done = CliRunner().invoke(cli, [*named, "--html", "again.html", "-q"])
    assert done.exit_code == 0
    assert page.read_text(encoding="utf-8") == Path("again.html").read_text(encoding="utf-8")


def test_the_file_holds_the_session_that_was_told(tmp_path: Path) -> None:
    write_report(tmp_path, 200)
    lines = (tmp_path / SESSION).read_text(encoding="utf-8").splitlines()
    recorded = [json.loads(line) for line in lines]
    assert recorded == list(messages(200))
    assert validate(recorded, "openai") == []


def test_the_same_session_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = write_report(Path("demo"), 60).read_bytes()
    assert write_report(Path("demo"), 60).read_bytes() == first


def test_without_a_folder_to_write_to_the_story_is_told_and_the_error_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    stream = io.StringIO()
    assert main([*SHORT, "--report", str(tmp_path / "file")], stream) == 1
    assert "nothing was lost" in stream.getvalue()
    assert "(next: use a writable folder)" in capsys.readouterr().err


def test_the_command_line_writes_it_too(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["demo", *SHORT, "--report", str(tmp_path)])
    assert (done.exit_code, done.output.splitlines()[-1].strip()) == (0, str(tmp_path / PAGE))
