"""A huge output is durable in the stash before another text takes its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.agents.big_output import LIMIT, LIMITS, post_tool_use
from ctxgc.agents.events import HookSettings
from ctxgc.core import is_tombstone, segment_from_dict
from ctxgc.errors import StoreError
from ctxgc.mcp import ContextService
from ctxgc.stores import open_store

HUGE = "\n".join(f"line {n} says nothing" for n in range(4_000)) + "\nERROR: the end"


def hook(home: Path, tool: str, response: Any, **more: Any) -> Any:
    said = {"session_id": "s1", "tool_name": tool, "tool_response": response, **more}
    return post_tool_use(HookSettings(home=str(home)), json.loads(json.dumps(said)))


def stashed(home: Path) -> dict[str, Any]:
    store = open_store(f"sqlite:{home}/stash.sqlite")
    found = {doc["handle"]: doc for _, doc in store.load("claude-code/s1", "segments")}
    store.close()
    return found


SHAPES: list[tuple[str, Any, Any]] = [
    ("mcp__x__y", HUGE, lambda o: o),
    ("Bash", {"stdout": HUGE, "stderr": "", "interrupted": False}, lambda o: o["stdout"]),
    ("Bash", {"stdout": "", "stderr": HUGE, "isImage": False}, lambda o: o["stderr"]),
    ("Read", {"type": "text", "file": {"content": HUGE, "numLines": 9}}, lambda o: o["file"]["content"]),
    ("Grep", {"mode": "content", "content": HUGE, "numFiles": 0}, lambda o: o["content"]),
    ("WebFetch", {"bytes": 1, "code": 200, "result": HUGE}, lambda o: o["result"]),
    ("mcp__x__y", [{"type": "text", "text": HUGE}, {"type": "image"}], lambda o: o[0]["text"]),
    ("mcp__x__y", {"content": [{"type": "text", "text": HUGE}]}, lambda o: o["content"][0]["text"]),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "response", "text_of"), SHAPES)
def test_the_output_keeps_its_shape_and_the_original_is_in_the_stash(
    home: Path, tool: str, response: Any, text_of: Any
) -> None:
    answer = hook(home, tool, response)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUse"
    new = answer["updatedToolOutput"]
    stub = text_of(new)
    assert is_tombstone(stub)
    assert len(stub) < 6_000
    assert "line 0 says nothing\n" in stub
    assert stub.endswith("ERROR: the end")
    assert json.dumps(new).replace(json.dumps(stub), "*") == json.dumps(response).replace(
        json.dumps(HUGE), "*"
    )
    ((handle, doc),) = stashed(home).items()
    assert doc["text"] == HUGE
    assert f'mcp__ctxgc__context_recall(handle="{handle}")' in stub
    segment_from_dict({key: value for key, value in doc.items() if key != "handle"})


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", {"stdout": "x" * LIMIT}),
        ("Read", {"type": "text", "file": {"content": "x" * LIMITS["Read"]}}),
        ("Write", {"type": "create", "content": HUGE}),
        ("Edit", {"originalFile": HUGE}),
        ("mcp__ctxgc__context_recall", HUGE),
        ("mcp__plugin_ctxgc_ctxgc__context_recall", [{"type": "text", "text": HUGE}]),
        ("Glob", {"filenames": [HUGE]}),
        ("Strange", {"unknown": HUGE}),
        ("Strange", [[HUGE], 7, None, {"type": "text", "text": 7}]),
        ("Bash", "[ctxgc: moved out already]" + HUGE),
        ("Bash", None),
    ],
)
def test_what_is_small_unknown_or_ours_is_left_as_it_is(
    home: Path, tool: str, response: Any
) -> None:
    assert hook(home, tool, response) is None
    assert stashed(home) == {}


def test_the_whole_output_is_stashed_where_the_agent_cut_it(home: Path) -> None:
    whole = home / "whole.txt"
    whole.write_text(HUGE + "\nbeyond the cut", encoding="utf-8")
    cut = {"stdout": HUGE[:30_000], "persistedOutputPath": str(whole), "persistedOutputSize": 9}
    answer = hook(home, "Bash", cut)["hookSpecificOutput"]["updatedToolOutput"]
    assert list(answer) == ["stdout"]
    assert answer["stdout"].endswith("beyond the cut")
    ((_, doc),) = stashed(home).items()
    assert doc["text"] == HUGE + "\nbeyond the cut"


@pytest.mark.parametrize("path", ["/missing", "/dev/zero", "", None, 7])
def test_a_file_that_cannot_be_the_output_is_not_read(home: Path, path: Any) -> None:
    answer = hook(home, "Bash", {"stdout": HUGE, "persistedOutputPath": path})
    assert answer["hookSpecificOutput"]["updatedToolOutput"]["persistedOutputPath"] == path
    assert [doc["text"] for doc in stashed(home).values()] == [HUGE]


def test_words_of_the_last_request_choose_lines(home: Path) -> None:
    text = HUGE.replace("line 2000 says nothing", "line 2000 is about zebras")
    transcript = home / "t.jsonl"
    line = {"type": "user", "message": {"role": "user", "content": "where are the zebras?"}}
    transcript.write_text(json.dumps(line) + "\n", encoding="utf-8")
    stub = hook(home, "mcp__x__y", text, transcript_path=str(transcript))
    assert "line 2000 is about zebras" in stub["hookSpecificOutput"]["updatedToolOutput"]


def test_the_tombstone_names_the_command_and_the_environment_may_set_the_limit(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXGC_HUGE_OUTPUT", "100")
    answer = hook(home, "Bash", "x\n" * 200, tool_input={"command": "make  all\n-j"})
    stub = answer["hookSpecificOutput"]["updatedToolOutput"]
    assert stub.startswith("[ctxgc: output of make all -j moved out, about 100 tokens: 201 lines")


def test_codex_gets_the_text_in_the_only_way_it_knows(home: Path) -> None:
    said = {"session_id": "s", "tool_name": "Bash", "tool_response": HUGE}
    answer = post_tool_use(HookSettings(agent="codex", home=str(home)), said)
    assert answer is not None
    assert answer["decision"] == "block"
    assert is_tombstone(answer["reason"])


@pytest.mark.parametrize("session", ["x" * 50_000, "\ud800\x00", 7, None, "../s"])
def test_an_odd_session_id_does_not_lose_the_output(home: Path, session: Any) -> None:
    hook(home, "Bash", HUGE, session_id=session)
    store = open_store(f"sqlite:{home}/stash.sqlite")
    (info,) = store.sessions()
    assert [doc["text"] for _, doc in store.load(info.session_id, "segments")] == [HUGE]
    store.close()


def test_without_a_stash_the_output_stays(home: Path) -> None:
    (home / "stash.sqlite.inbox").write_text("no folder", encoding="utf-8")
    with pytest.raises(StoreError):
        hook(home, "Bash", HUGE)


def test_the_mcp_server_recalls_what_a_hook_stashed_while_it_runs(home: Path) -> None:
    service = ContextService(f"sqlite:{home}/stash.sqlite")
    hook(home, "Bash", HUGE)
    (path,) = (home / "stash.sqlite.inbox").glob("*.json")
    answer = service.recall(path.stem, lines=(11, 12))
    assert answer["text"] == "line 10 says nothing\nline 11 says nothing"
    service.close()
