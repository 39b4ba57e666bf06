"""`ctxgc watch`: the picture of a session, and how it follows the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ctxgc.cli.watch import draw
from ctxgc.drawing import text_of
from ctxgc.errors import TranscriptError
from ctxgc.insight import Garbage, LiveWindow, RequestSample, SessionFollower, ToolSample
from ctxgc.insight.garbage import Reason
from tests.reported_files import reported_claude_code
from tests.session_files import SESSION, all_files, chat, claude_code, codex, dumped

Run = Callable[..., Result]

FRAME = LiveWindow(
    name="s.jsonl", path="/repo/s.jsonl", called="s.jsonl", kind="claude_code", project="/repo",
    model="claude-x", messages=3,
    tokens=176_000,
    limit=200_000, percent=88.0, zone="danger", window=2,
    samples=[RequestSample(20_000, 1), RequestSample(176_000, 2)],
    tools=[
        ToolSample("Read", '{"file_path": "a.py"}', 1_200, False),
        ToolSample("Bash", "make", None, False),
    ],
    garbage=Garbage(
        of_tokens=176_000, tokens=44_000, percent=25.0, largest=[],
        reasons=[
            Reason(reason="superseded", tokens=4_000, count=2),
            Reason(reason="unreachable", tokens=40_000, count=9),
            Reason(reason="verbose", tokens=0, count=0),
        ],
    ),
    seconds_quiet=0.5,
)  # fmt: skip


def test_the_picture_of_a_session() -> None:
    lines = [text_of(line).rstrip() for line in draw(FRAME, 60)]
    assert lines[:6] == [
        "s.jsonl  claude code, claude-x, /repo",
        "█" * 35 + "░" * 5 + " danger",
        "176,000 of 200,000 tokens (88%), 3 messages, window 2, last",
        "written now",
        "",
        "fill over time",
    ]
    assert lines[16:] == [
        "",
        "last tools",
        "         …  Bash make (running)",
        '     1,200  Read {"file_path": "a.py"}',
        "",
        "garbage: 44,000 tokens, 25%",
        "  unreachable  █████████████████████████████  40,000  tokens",
        "  superseded   ██▉                             4,000  tokens",
        "what would leave: ctxgc prune s.jsonl",
    ]
    assert all(len(line) <= 60 for line in lines)


@pytest.mark.parametrize(
    ("height", "kept"),
    [(25, range(25)), (24, [*range(19), *range(20, 25)]), (23, [*range(16), *range(20, 25)]),
     (20, [*range(4), *range(16, 25)]), (12, [*range(4), *range(16, 19), *range(20, 25)]),
     (9, [*range(4), *range(20, 25)]), (1, [*range(4), *range(20, 25)])],
)  # fmt: skip
def test_a_low_screen_shows_the_garbage_before_the_chart_and_the_newest_tools(
    height: int, kept: list[int]
) -> None:
    whole = draw(FRAME, 60)
    assert draw(FRAME, 60, height) == [whole[place] for place in kept]


@pytest.mark.parametrize("name", [name for name in sorted(all_files()) if name.endswith(".jsonl")])
def test_one_picture_of_each_kind(run: Run, name: str) -> None:
    Path(name).write_bytes(all_files()[name])
    done = run("watch", name, "--once")
    assert done.exit_code == 0
    assert done.stdout.startswith(name)
    assert "last tools" in done.stdout
    assert "garbage: " in done.stdout
    found = json.loads(run("watch", name, "--json", "--context-limit", "50000").stdout)
    assert (found["limit"], found["zone"]) == (50_000, "safe")
    assert found["garbage"]["tokens"] > 1_000


def test_a_session_that_its_agent_keeps_is_called_by_its_id(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "home"))
    path = project / "home" / "projects" / "-repo" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(claude_code())
    done = run("watch", SESSION[:8], "--once")
    assert done.stdout.endswith(f"what would leave: ctxgc prune {SESSION[:8]}\n")
    assert json.loads(run("watch", str(path), "--json").stdout)["path"] == str(path)


def test_only_whole_lines_count_and_only_new_ones_are_read(project: Path) -> None:
    path = project / "s.jsonl"
    data = dumped(chat())
    cut = data.index(b"\n", len(data) // 2) + 20
    path.write_bytes(data[:cut])
    follower = SessionFollower(path)
    assert follower.look() is True
    before = follower.window()
    assert follower.look() is False
    with path.open("ab") as agent:
        agent.write(data[cut:])
    assert follower.look() is True
    assert follower.window().messages == len(chat()) > before.messages
    assert follower.window().tokens > before.tokens


def test_a_file_that_is_cut_replaced_or_moved_away_is_followed(project: Path) -> None:
    path = project / "s.jsonl"
    path.write_bytes(dumped(chat()))
    follower = SessionFollower(path)
    follower.look()
    path.write_bytes(dumped(chat(1)))
    follower.look()
    assert follower.window().messages == len(chat(1))
    path.rename(project / "old.jsonl")
    assert follower.look() is False
    (project / "new.jsonl").write_bytes(claude_code())
    (project / "new.jsonl").rename(path)
    assert follower.look() is True
    assert (follower.window().kind, follower.window().window) == ("claude_code", 2)


def test_usage_that_the_agent_reports_is_the_fill_over_time(project: Path) -> None:
    counts = {
        "last_token_usage": {"input_tokens": 9_000, "output_tokens": 1_000},
        "model_context_window": 20_000,
    }
    event = {"type": "event_msg", "payload": {"type": "token_count", "info": counts}}
    path = project / "r.jsonl"
    path.write_bytes(codex() + dumped([event]))
    follower = SessionFollower(path)
    follower.look()
    frame = follower.window()
    assert frame.samples == [RequestSample(9_000, 2)]
    assert (frame.limit, frame.tokens) == (20_000, 10_000)


def test_garbage_and_tools_are_counted_as_the_provider_does(project: Path) -> None:
    path = project / "s.jsonl"
    path.write_bytes(claude_code())
    bare = SessionFollower(path)
    bare.look()
    (project / "t.jsonl").write_bytes(reported_claude_code(0.5))
    told = SessionFollower(project / "t.jsonl")
    told.look()
    plain, scaled = bare.window(), told.window()
    ratio = scaled.garbage.tokens / plain.garbage.tokens
    assert 0.5 < ratio < 0.95
    for one, other in zip(plain.tools, scaled.tools, strict=True):
        assert (one.tokens, other.tokens) == (None, None) or other.tokens == pytest.approx(
            ratio * (one.tokens or 0), abs=2
        )


def test_a_terminal_is_drawn_on_until_somebody_ends_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(f"{SESSION}.jsonl")
    path.write_bytes(claude_code())
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("ctxgc.cli.watch.time.sleep", sleep)
    monkeypatch.setattr("ctxgc.cli.watch._is_seen", lambda: True)
    done = run("watch", path.name, "--interval", "0.5")
    assert (done.exit_code, slept) == (0, [0.5] * 3)
    assert "last tools" in done.stdout


@pytest.mark.parametrize("data", [b"[1, 2]", b"hello\n", json.dumps({"messages": chat()}).encode()])
def test_what_does_not_grow_by_lines_is_refused(run: Run, project: Path, data: bytes) -> None:
    (project / "x.json").write_bytes(data)
    done = run("watch", "x.json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "error: x.json is not a session that grows line by line (next: ctxgc analyze reads documents)\n"
    )
    with pytest.raises(TranscriptError, match="cannot be read"):
        SessionFollower(project / "none.jsonl").look()


def test_a_folder_is_one_line_that_says_so(run: Run, project: Path) -> None:
    (project / "x.jsonl").mkdir()
    done = run("watch", "x.jsonl")
    assert (done.exit_code, done.stderr) == (
        1, "error: x.jsonl cannot be read: Is a directory (next: ctxgc sessions lists them)\n",
    )  # fmt: skip
