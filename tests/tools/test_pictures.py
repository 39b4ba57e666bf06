"""The pictures of the docs: made by a command, small, whole, and shown."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.markdown import read
from tools import recording
from tools.pictures import MAKERS, PICTURES, main
from tools.requirement_scan import ROOT

MOST_BYTES = 350_000
SVG = "{http://www.w3.org/2000/svg}"

needs_tmux = pytest.mark.skipif(recording.find() is None, reason="tmux is not installed")


def _texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def _fill(svg: str, word: str) -> str:
    """Return the colour in which a terminal picture writes a word."""
    style = re.search(rf'class="t-(r\d+)"[^>]*>{word}', svg)
    assert style is not None
    return re.findall(rf"\.t-{style[1]} {{ fill: (#\w+)", svg)[0]


def test_the_docs_lead_to_every_picture_and_each_is_small() -> None:
    docs = ROOT / "docs"
    guides = [docs / "concepts" / "garbage-collection.md", docs / "guides" / "dashboard.md"]
    pages = [ROOT / "README.md", *guides]
    shown = {Path(link).name for page in pages for _, link in read(page).links()}
    files = {file for file, _ in MAKERS.values()}
    assert {path.name for path in PICTURES.iterdir()} == files
    assert files - shown == set()
    assert [f for f in files if (PICTURES / f).stat().st_size > MOST_BYTES] == []


@pytest.mark.parametrize("name", ["analyze", "lab"])
def test_a_terminal_picture_shows_its_command(name: str) -> None:
    drawn = (PICTURES / MAKERS[name][0]).read_text(encoding="utf-8")
    assert _texts(drawn)[1].replace("\xa0", " ").startswith("$ ctxgc ")


@pytest.mark.parametrize("name", ["path", "liveness", "worth", "price", "order"])
def test_a_picture_of_the_concepts_is_what_the_example_of_its_page_finds(
    name: str, tmp_path: Path
) -> None:
    file, make = MAKERS[name]
    assert make(tmp_path) == (PICTURES / file).read_bytes()


@pytest.mark.parametrize("file", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_needs_no_other_file(file: Path) -> None:
    drawn = file.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", drawn)) == {"http://www.w3.org/2000/svg"}


def test_a_colour_lasts_until_the_next_one_and_the_same_lines_give_the_same_bytes() -> None:
    lines = ["\x1b[31mred", "still", "\x1b[0mplain & <b>"]
    drawn = recording.draw(["echo", "a b"], lines, 40)
    words = [text.replace("\xa0", " ").strip() for text in _texts(drawn)]
    assert [word for word in words if word] == [
        "echo",
        "$ echo 'a b'",
        "red",
        "still",
        "plain & <b>",
    ]
    assert _fill(drawn, "red") == _fill(drawn, "still") != _fill(drawn, "plain")
    assert recording.draw(["echo", "a b"], lines, 40) == drawn


@needs_tmux
def test_a_command_is_recorded_as_a_terminal_shows_it(tmp_path: Path) -> None:
    green = 'test -t 1 && printf "\\033[32mgreen\\033[0m %s\\n" "$(basename "$PWD")"'
    script = f'{green} && stty size | cut -d" " -f2'
    seen = recording.record(["sh", "-c", script], tmp_path, 72)
    assert seen[0].startswith("\x1b[32mgreen\x1b[39m")
    assert seen[0].endswith(tmp_path.name)
    assert seen[1:] == ["72"]


@needs_tmux
def test_a_command_that_fails_makes_no_picture(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended 3: out of paint"):
        recording.record(["sh", "-c", "echo out of paint; exit 3"], tmp_path, 72)


def test_an_unknown_picture_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["portrait"])
    assert "unknown picture: portrait" in capsys.readouterr().err
