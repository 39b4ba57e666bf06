"""Before a compaction the transcript is kept; after it the roots come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.agents.checkpoints import KEPT
from ctxgc.agents.compaction import pre_compact, session_start
from ctxgc.agents.events import HookSettings

TASK = "Port the parser to Rust. You must never change the public API."


def claude(role: str, content: Any, **more: Any) -> str:
    return json.dumps({"type": role, "message": {"role": role, "content": content}, **more})


def codex(role: str, text: str) -> str:
    block = {"type": "input_text", "text": text}
    payload = {"type": "message", "role": role, "content": [block]}
    return json.dumps({"type": "response_item", "payload": payload})


STUB = '[ctxgc: output of make all moved out, about 9 tokens. To see it: r(handle="h-abcdefghijklmnop")]'
LINES = [
    claude("user", TASK),
    claude("user", "<system-reminder>never mind</system-reminder>"),
    claude("user", "you must not read this", isMeta=True),
    claude("assistant", [{"type": "text", "text": "We decided to use nom. It is fast."}]),
    claude("user", [{"type": "tool_result", "tool_use_id": "t", "content": STUB}]),
    claude("user", "Please go on with the lexer."),
    claude("user", TASK),
    claude(
        "user",
        [
            {
                "type": "tool_result",
                "tool_use_id": "u",
                "is_error": True,
                "content": "E0308: mismatch",
            }
        ],
    ),
]


@pytest.fixture
def transcript(home: Path) -> Path:
    path = home / "session.jsonl"
    path.write_text("\n".join([*LINES, '{"half']), encoding="utf-8")
    return path


def said(path: Path, **more: Any) -> dict[str, Any]:
    return {"session_id": "s/../1", "transcript_path": str(path), "source": "compact", **more}


def context(home: Path, path: Path) -> str:
    answer = session_start(HookSettings(home=str(home)), said(path))
    assert answer is not None
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    return str(answer["hookSpecificOutput"]["additionalContext"])


def test_task_requests_constraints_decisions_errors_and_handles_come_back(
    home: Path, transcript: Path
) -> None:
    assert context(home, transcript).split("\n")[1:] == [
        "Task (the first request):",
        f"- {TASK}",
        "Newest requests:",
        "- Please go on with the lexer.",
        "Constraints from the user:",
        "- You must never change the public API.",
        "Decisions:",
        "- We decided to use nom.",
        "Open errors:",
        "- E0308: mismatch",
        "Moved out; mcp__ctxgc__context_recall(handle=...) shows it:",
        "- h-abcdefghijklmnop: output of make all",
    ]


def test_transcripts_of_codex_are_understood(home: Path) -> None:
    path = home / "rollout.jsonl"
    path.write_text("\n".join([codex("user", TASK), codex("assistant", "ok")]), encoding="utf-8")
    assert TASK in context(home, path)


def test_a_long_transcript_gives_its_first_request_and_its_end(home: Path) -> None:
    path = home / "long.jsonl"
    filler = claude("assistant", "x" * 100_000)
    last = claude("user", "Only use safe code.")
    path.write_text("\n".join([LINES[0], *[filler] * 120, last]), encoding="utf-8")
    found = context(home, path)
    assert TASK in found
    assert "Only use safe code." in found


@pytest.mark.parametrize("source", ["startup", "resume", "clear", None])
def test_at_other_starts_nothing_is_added(home: Path, transcript: Path, source: Any) -> None:
    assert session_start(HookSettings(home=str(home)), said(transcript, source=source)) is None


@pytest.mark.parametrize("path", ["/missing", "/dev/zero", "", "\x00", "."])
def test_without_a_transcript_nothing_is_added_and_nothing_is_kept(home: Path, path: str) -> None:
    settings = HookSettings(home=str(home / "ours"))
    asked = {**said(home), "transcript_path": path}
    assert session_start(settings, asked) is None
    pre_compact(settings, asked)
    assert not (home / "ours").exists()


def test_the_transcript_is_kept_once_for_each_compaction(home: Path, transcript: Path) -> None:
    settings = HookSettings(home=str(home / "ours"))
    pre_compact(settings, said(transcript, trigger="auto"))
    pre_compact(settings, said(transcript, trigger="auto"))
    (kept,) = (home / "ours/checkpoints/s-1").iterdir()
    assert kept.read_bytes() == transcript.read_bytes()
    assert kept.name.endswith("-auto.jsonl")


def test_old_checkpoints_go(home: Path, transcript: Path) -> None:
    settings = HookSettings(home=str(home / "ours"))
    for number in range(KEPT + 3):
        transcript.write_text(f"{number}\n", encoding="utf-8")
        pre_compact(settings, said(transcript))
    kept = sorted((home / "ours/checkpoints/s-1").iterdir())
    assert [path.read_text(encoding="utf-8") for path in kept] == [
        f"{number}\n" for number in range(3, KEPT + 3)
    ]


def test_constraints_and_decisions_are_whole_sentences_and_not_pasted(home: Path) -> None:
    asked = """Port the kernels. Prepare it for
the competition and make
sure it uses the GPU.

ada@host:~$ pip install torch
error: externally-managed-environment: you must not do this

    Make sure you have pipx installed.

```
# never run this
```
1. Always keep the logs."""
    answer = "I ran the CPU tests instead of the GPU ones. We decided to use CUDA 12."
    path = home / "pasted.jsonl"
    lines = [claude("user", asked), claude("assistant", [{"type": "text", "text": answer}])]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert context(home, path).partition("Constraints")[2] == (
        " from the user:\n- Prepare it for the competition and make sure it uses the GPU.\n"
        "- Always keep the logs.\nDecisions:\n- We decided to use CUDA 12."
    )
