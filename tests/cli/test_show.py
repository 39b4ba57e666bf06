"""`ctxgc show` and `ctxgc search`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ctxgc.cli import main
from ctxgc.cli.output import highlighted
from ctxgc.places import user_store
from ctxgc.stores import add_to_inbox
from tests.cli.stash_cases import make_session

Run = Callable[..., Result]
HANDLE = "h-aaaabbbbccccdddd"


@pytest.mark.usefixtures("wide")
def test_a_stashed_segment_tells_which_collection_moved_it(run: Run) -> None:
    with make_session() as session:
        hit = session.search("function_3_30", limit=1)[0]
    done = run("show", hit.handle)
    facts, _, text = done.stdout.partition("\n\n")
    assert text == f"{hit.segment.text}\n"
    rows = dict(line.split(None, 1) for line in facts.splitlines() if not line.startswith(" "))
    assert rows["segment"].startswith(f"{hit.segment.segment_id} ({hit.handle}) of session work")
    assert rows["tier"] == "stashed: out of the view, intact"
    assert rows["left"].startswith("collection 1 (gc_mark_sweep, ")
    assert rows["file_path"] == "src/m3.py"
    assert "bond" in rows


def test_a_working_segment_tells_which_root_reaches_it(run: Run) -> None:
    with make_session() as session:
        first = session.segments()[0]
    found = json.loads(run("show", first.segment_id, "--json").stdout)
    assert found["text"] == first.text
    assert found["why"]["standing"] == "working: a root, no collection removes it"
    assert found["why"]["because"][0].startswith(f"{first.segment_id}: ")
    assert "original request" in found["why"]["because"][0]


def test_parts_of_a_text_and_only_the_reason(run: Run) -> None:
    with make_session() as session:
        hit = session.search("function_3_30", limit=1)[0]
    assert run("show", hit.handle, "--lines", "2").stdout.endswith(
        "\n\n" + hit.segment.text.split("\n")[1] + "\n"
    )
    assert "function_3" not in run("show", hit.handle, "--why").stdout
    by_message = json.loads(run("show", str(hit.segment.message_id), "--json", "--why").stdout)
    assert (by_message["segment_id"], by_message["text"]) == (hit.segment.segment_id, None)
    assert run("show", hit.handle, "--quiet").output == ""


def test_what_nothing_answers_to_is_one_line(run: Run) -> None:
    make_session().close()
    done = run("show", "h-nothing")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "error: no segment with the handle 'h-nothing' (next: ctxgc search WORDS finds it by its text)\n"
    )


def test_what_a_hook_left_is_shown_before_anybody_opened_its_store(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = user_store()
    document = {"segment_id": "s-1", "text": "the whole log", "type": "log", "tier": "stashed"}
    add_to_inbox(url, "claude-code/s1", HANDLE, document)
    done = run("show", HANDLE, "--json")
    assert json.loads(done.stdout)["text"] == "the whole log"


def test_search_ranks_and_marks_the_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_session().close()
    plain = run("search", "function_3_30").stdout
    assert plain == run("stash", "search", "function_3_30").stdout
    assert "\x1b[" not in plain
    seen = CliRunner().invoke(main, ["search", "function_3_30"], color=True).stdout
    assert "\x1b[36m\x1b[1mfunction_3_30\x1b[0m" in seen
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in CliRunner().invoke(main, ["search", "function_3_30"], color=True).stdout


def test_without_words_nothing_is_marked() -> None:
    assert highlighted("text", []) == [("text", "")]
