"""An agent under `ctxgc wrap`: a long tool session from a fresh home, collected on its way to the model."""

from __future__ import annotations

import sys
from pathlib import Path

from ctxgc.session import Session, open_store
from ctxgc.testing import RecordedRequest, ToolCall
from ctxgc.testing.model import Scripted, TurnLike
from tools.real_agents import acts
from tools.real_agents.claude_code import ClaudeCode
from tools.real_agents.codex import Codex
from tools.real_agents.stage import NEEDLE, Stage

_OF_SUBAGENT = "x-claude-code-agent-id"
WINDOW = 60_000
STEPS = 60
ROWS = 300
OUTCOME = f"It is the old worker: {NEEDLE}"
_CODEX_CONFIG = 'approval_policy = "never"\ntool_output_token_limit = 40000\n'


def wrapped(stage: Stage, folder: Path) -> None:
    """Let a stage run its agent through a proxy of its own."""
    script = folder / stage.program.name
    options = f"--context-limit {WINDOW} --own-compaction"
    words = f'"{sys.executable}" -m ctxgc.cli wrap {options} -- "{stage.program}"'
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    stage.program = script


class WrappedClaude(ClaudeCode):
    """Claude Code whose subagents have turns of their own: they work while it goes on."""

    def _answer(self, request: RecordedRequest) -> TurnLike:
        if _OF_SUBAGENT not in request.headers:
            return super()._answer(request)
        return "seen" if self.outputs(request) else self.shell("tail -c 900 build.log")


class WrappedCodex(Codex):
    """Codex with the provider that it comes with, whose address `ctxgc wrap` sets."""

    def is_ready(self, request: RecordedRequest) -> bool:  # noqa: ARG002 (it has no server to wait for)
        """Tell that it need not wait for our tools."""
        return True

    def settle(self) -> None:
        """Write the configuration of a user who names no provider."""
        (self.home / ".codex").mkdir()
        (self.home / ".codex" / "config.toml").write_text(_CODEX_CONFIG, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return where requests go without the proxy, and a key."""
        named = {"OPENAI_BASE_URL": self.server.openai_base_url, "CODEX_API_KEY": "any-text"}
        return {**super().environment(), **named}


def long_session(stage: Stage) -> tuple[str, str]:
    """Sixty tool outputs pass: the window is kept, a recall answered, and the outcome is the model's.

    Claude Code sends a subagent out in the middle.
    """
    rows = range(0, STEPS * ROWS, ROWS)
    reads = [stage.shell(f"seq -f 'row %.0f of the table' {n} {n + ROWS - 1}") for n in rows]
    middle: list[Scripted] = [_subagent] if isinstance(stage, ClaudeCode) else []
    turns: list[Scripted] = [*reads[:30], *middle, *reads[30:]]
    stage.script.extend([*turns, _recall, OUTCOME])
    session = stage.say(acts.TASK)
    every = stage.server.requests
    requests = [each for each in every if _OF_SUBAGENT not in each.headers][: len(turns) + 2]
    acts.must(not stage.script, f"{len(stage.script)} turns are left")
    acts.must(len(middle) == (len(every) > len(requests)), "the subagent did not work")
    must_be_valid(stage)
    most = max(request.tokens for request in requests)
    acts.must(most <= WINDOW, f"a request had {most} tokens")
    whole = sum(len(output) for output in stage.outputs(requests[-1]))
    acts.must(
        whole < STEPS * ROWS * len("row 999 of the table") / 2,
        f"{whole} characters of tool outputs were sent last",
    )
    recalled = stage.outputs(requests[-1])[-1]
    acts.must("of the table" in recalled, f"the recall brought back {recalled[:300]}")
    transcript = stage.transcript(session).read_text(encoding="utf-8")
    acts.must(OUTCOME in transcript, "the outcome differs")
    acts.must('"name":"context_recall"' not in transcript, "the agent saw the recall")
    seen = f"{len(requests)} requests of at most {most} tokens, one of them a recall"
    return session, f"{seen}; {collected(stage)}"


def _subagent(request: RecordedRequest) -> ToolCall:
    """Send a subagent out, by the name that the agent's tool for it has."""
    named = [tool.get("name") for tool in request.body["tools"]]
    name = next(each for each in ("Agent", "Task") if each in named)
    said = {"description": "look", "prompt": "Look at the end of build.log."}
    return ToolCall(name, {**said, "subagent_type": "general-purpose"})


def _recall(request: RecordedRequest) -> ToolCall:
    """Recall what left first, with the tool that the proxy sends."""
    handles = acts.HANDLE.findall(request.raw.decode())
    acts.must(handles, "no handle is in the view")
    return ToolCall("context_recall", {"handle": handles[0], "lines": [1, 20]})


def must_be_valid(stage: Stage) -> None:
    """Fail if the model server refused anything."""
    said = [breach.message for each in stage.server.refusals for breach in each.breaches]
    acts.must(not said, f"refused: {said[:3]}")


def collected(stage: Stage) -> str:
    """Return how often the sessions in the user's store were collected; they must have been."""
    address = f"sqlite:{stage.ours / 'stash.sqlite'}"
    store = open_store(address)
    names = [info.session_id for info in store.sessions() if info.session_id.startswith("proxy:")]
    store.close()
    times = []
    for name in names:
        with Session(store=address, session_id=name, plugin="gc_none") as session:
            times.append(len(session.gc_history))
    acts.must(sum(times), "nothing was collected")
    return f"{len(names)} sessions, collected {sum(times)} times"


def compaction(stage: Stage, session: str) -> str:
    """The agent's own compaction is answered without a model, and what follows has the roots."""
    before = len(stage.server.requests)
    stage.script.append("going on")
    stage.compact(session)
    must_be_valid(stage)
    asked = stage.server.requests[before:]
    acts.must(len(asked) == 1, f"{len(asked)} requests reached the model")
    sent = asked[0].raw.decode()
    for root in ("ctxgc compacted this conversation", acts.CONSTRAINT, NEEDLE):
        acts.must(root in sent, f"after the compaction the model is not told: {root}")
    return f"answered from the session, {asked[0].tokens} tokens were sent next"
