"""A figure that several doors show is one number: each is asked for it, and the answers are compared."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxgc.agents.events import HookSettings
from ctxgc.agents.status_line import status_line
from ctxgc.dashboard import DashboardSessions
from ctxgc.insight import SessionFollower
from tests.cli.conftest import Run
from tests.wire.transcripts import made
from tools.requirement_scan import ROOT

REAL = ROOT.parent / "shared" / "data" / "claude_code_raw"
STEPS = made.conversation(turns=12, lines=60)
NAMES = ("5f8cbb78", "d7d349f9", "e80aa543", "f67ab274")
CASES: dict[str, Callable[[Path], Path]] = {
    "claude_code": lambda f: made.write_lines(f / "a.jsonl", made.claude_code(STEPS)),
    "compacted": lambda f: made.write_lines(
        f / "a.jsonl", made.claude_code(STEPS, compact_after=8)
    ),
    "codex": lambda f: made.write_lines(f / "rollout-a.jsonl", made.codex(STEPS)),
    "chat": lambda f: made.write_lines(f / "a.jsonl", made.chat(STEPS)),
}
RECORDED: dict[str, Callable[[Path], Path]] = {
    name: lambda f, name=name: _recorded(f, name) for name in NAMES
}


def _recorded(folder: Path, name: str) -> Path:
    if not REAL.is_dir():
        pytest.skip("the recorded sessions are not on this machine")
    packed = next(REAL.glob(f"{name}*.gz"))
    path = folder / packed.stem
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


recorded_too = pytest.mark.parametrize("session", [*CASES, *RECORDED], indirect=True)
"""Also with the sessions that an agent recorded, where they are at hand."""


@pytest.fixture(params=CASES)
def session(request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session where its agent keeps it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(project / "codex"))
    is_codex = request.param == "codex"
    folder = project / ("codex/sessions/2026" if is_codex else "claude/projects/-repo")
    folder.mkdir(parents=True)
    return {**CASES, **RECORDED}[request.param](folder)


@recorded_too
def test_the_tokens_in_the_window(run: Run, session: Path) -> None:
    found = _json(run, "analyze", session)["window"]
    window = found["tokens"], found["limit"], found["percent"], found["zone"]
    live = _json(run, "watch", session)
    assert (live["tokens"], live["limit"], live["percent"], live["zone"]) == window
    follower = SessionFollower(session)  # what the MCP server tells of its agent's session
    follower.look()
    assert follower.fill() == window
    assert _json(run, "prune", session)["tokens_before"] == window[0]
    row = json.loads(run("sessions", "--json").stdout)[0]
    assert (row["tokens"] or window[0], row["percent"] or window[2]) == (window[0], window[2])
    line = status_line(HookSettings(), {"transcript_path": str(session)})
    assert line == "ctxgc" or line.endswith(f"{100 * window[0] / window[1]:.0f}%")
    page = _page(run, session)
    assert f"{window[2]:.0f}%" in page
    assert f"of {window[1]:,} tokens: {window[3]}" in page


def test_the_share_of_garbage(run: Run, session: Path) -> None:
    garbage = _json(run, "analyze", session)["garbage"]
    assert _json(run, "watch", session)["garbage"] == garbage
    checked = _json(run, "check", session, "--max-garbage", "0", "--max-secrets", "99")
    assert (
        next(each["found"] for each in checked[str(session)] if each["rule"] == "garbage")
        == (garbage["percent"])
    )
    if garbage["tokens"]:
        said = f"{garbage['tokens']:,} of {garbage['of_tokens']:,} tokens"
        assert f"{said} ({garbage['percent']:.0f}%)" in run("analyze", str(session)).stdout
        assert said in _page(run, session)


@recorded_too
def test_what_pruning_would_free(run: Run, session: Path) -> None:
    found = _json(run, "analyze", session)
    dry = _json(run, "prune", session)
    assert {k: found["prune"][k] for k in ("tokens_before", "tokens_after")} == {
        k: dry[k] for k in ("tokens_before", "tokens_after")
    }
    advised = [each for each in found["advice"] if each["command"].startswith("ctxgc prune")]
    for advice in advised:
        sizes = f"from {dry['tokens_before']:,} to {dry['tokens_after']:,} tokens"
        assert f"{sizes} ({found['prune']['percent_less']:.0f}% less)" in advice["text"]
        assert f"{found['prune']['percent_less']:.0f}% less" in run("prune", str(session)).stdout
    if session.suffix == ".jsonl" and found["about"]["kind"] != "plain" and dry["segments"]:
        run("prune", str(session), "-o", "pruned.jsonl")
        after = _json(run, "analyze", Path("pruned.jsonl"))["window"]["tokens"]
        assert after == pytest.approx(dry["tokens_after"], rel=0.02)


def test_what_the_advised_command_frees_in_a_window_of_ones_own(run: Run, session: Path) -> None:
    found = _json(run, "analyze", session, "--context-limit", "9000")
    command = found["advice"][0]["command"]
    dry = json.loads(run(*shlex.split(command)[1:], "--json").stdout)
    assert found["prune"]["tokens_before"] > found["prune"]["tokens_after"]
    assert found["prune"] == {
        "tokens_before": dry["tokens_before"],
        "tokens_after": dry["tokens_after"],
        "percent_less": found["prune"]["percent_less"],
    }


@recorded_too
def test_what_collections_save(run: Run, session: Path) -> None:
    bill = _json(run, "analyze", session)["bill"]
    said = re.search(r"([\d.]+)% (saved|lost) by", run("analyze", str(session)).stdout)
    assert said is not None
    assert float(said[1]) == abs(bill["saved_percent"])
    assert said[0] in _page(run, session)
    without, with_ = bill["without"]["cost"], bill["with"]["cost"]
    assert bill["saved_percent"] == round(100 * (without - with_) / without, 1)


@recorded_too
def test_the_lab_replays_the_requests_of_the_bill(
    run: Run, session: Path, request: pytest.FixtureRequest
) -> None:
    """What they save differs: the lab leaves out the system prompt, the output and a model's own prices.

    It plays the messages in the chat format, too, which is a few tokens more or less: in made sessions,
    whose collections just pay for themselves, there may be one more here than there.
    """
    found = _json(run, "analyze", session)
    words = (
        "--data",
        str(session),
        "--least-tokens",
        "0",
        "--policy",
        "ctxgc",
        "--bits-every",
        "0",
    )
    run("lab", "run", *words, "--json", "lab.json", "-q")
    report = json.loads(Path("lab.json").read_bytes())
    without, with_ = (found["bill"][line]["spend"]["requests"] for line in ("without", "with"))
    assert report["requests"] == found["requests"] == without == with_
    (row,) = (each for each in report["rows"] if each["policy"] == "ctxgc")
    assert row["breaks"] == row["collections"]
    if request.node.callspec.params["session"] in NAMES:
        assert row["collections"] == found["bill"]["collections"]


@recorded_too
def test_requests_turns_and_cost(run: Run, session: Path) -> None:
    found, cost = (
        _json(run, "analyze", session),
        json.loads(run("cost", str(session), "--json").stdout),
    )
    bill = found["bill"]
    if not cost["total"]["requests"]:
        assert bill["paid"] is None
        return
    row = json.loads(run("sessions", "--json").stdout)[0]
    assert (row["turns"], row["requests"]) == (len(found["turns"]), found["requests"])
    sums = cost["by"]["subagent"]
    main, total = sums["main conversation"], cost["total"]
    assert (main["requests"], bill["paid"]["spend"]["requests"]) == (row["requests"],) * 2
    assert bill["paid"]["cost"] == pytest.approx(main["dollars"], abs=1e-5)
    assert row["dollars"] == pytest.approx(total["dollars"])
    beside = bill["subagents"]["cost"] if bill["subagents"] else 0.0
    assert bill["paid"]["cost"] + beside == pytest.approx(total["dollars"], abs=1e-5)


@recorded_too
def test_the_dashboard_shows_the_figures_of_the_commands(run: Run, session: Path) -> None:
    found, row = _json(run, "analyze", session), json.loads(run("sessions", "--json").stdout)[0]
    shown = DashboardSessions(None)
    (told,) = [each for each in shown.listed()["sessions"] if each["parent"] is None]
    window = found["window"]
    assert (told["requests"], told["cost"]) == (row["requests"], row["dollars"])
    assert (told["tokens"], told["limit"], told["percent"], told["zone"]) == tuple(
        window[name] for name in ("tokens", "limit", "percent", "zone")
    )
    timeline = json.loads(shown.timeline_json(told["id"]))
    assert timeline["requests"][-1]["tokens"] == window["tokens"]
    real = [each for each in timeline["requests"] if "now" not in each["marks"]]
    assert len(real) == found["requests"]
    if found["bill"]["paid"] is not None:
        paid = sum(each["cost"] or 0 for each in real)
        assert paid == pytest.approx(found["bill"]["paid"]["cost"], abs=1e-4)


def test_now_is_never_more_than_ever(run: Run, session: Path) -> None:
    found = _json(run, "analyze", session)
    for row in (*found["sources"], *found["tools"], *found["files"]):
        assert row["window_tokens"] <= row["tokens"]


def _json(run: Run, command: str, session: Path, *words: str) -> dict:
    return json.loads(run(command, str(session), *words, "--json").stdout)


def _page(run: Run, session: Path) -> str:
    assert run("analyze", str(session), "--html", "page.html", "-q").exit_code == 0
    return Path("page.html").read_text(encoding="utf-8")
