"""An agent under `ctxgc wrap`: a long tool session from a fresh home, collected on its way to the model."""

from __future__ import annotations

import sys
from pathlib import Path

from ctxgc.session import Session, open_store
from tools.real_agents import acts
from tools.real_agents.claude_code import ClaudeCode
from tools.real_agents.codex import Codex
from tools.real_agents.stage import NEEDLE, Stage

WINDOW = 60_000
STEPS = 20
OUTCOME = f"It is the old worker: {NEEDLE}"
_CODEX_CONFIG = 'approval_policy = "never"\ntool_output_token_limit = 40000\n'


def wrapped(stage: Stage, folder: Path) -> None:
    """Let a stage run its agent through a proxy of its own."""
    script = folder / stage.program.name
    words = f'"{sys.executable}" -m ctxgc.cli wrap --context-limit {WINDOW} -- "{stage.program}"'
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    stage.program = script


class WrappedCodex(Codex):
    """Codex with the provider that it comes with, whose address `ctxgc wrap` sets."""

    def settle(self) -> None:
        """Write the configuration of a user who names no provider."""
        (self.home / ".codex").mkdir()
        (self.home / ".codex" / "config.toml").write_text(_CODEX_CONFIG, encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return where requests go without the proxy, and a key."""
        named = {"OPENAI_BASE_URL": self.server.openai_base_url, "CODEX_API_KEY": "any-text"}
        return {**super().environment(), **named}


def long_session(stage: Stage) -> str:
    """Twenty long tool outputs pass through the proxy: the window is kept, and the outcome is the model's."""
    reads = [stage.shell(f"head -c {12_000 - n} build.log") for n in range(STEPS)]
    stage.script.extend([*reads, OUTCOME])
    session = stage.say(acts.TASK)
    requests = stage.server.requests
    acts.must(len(requests) == STEPS + 1, f"{len(requests)} requests reached the model")
    acts.must(not stage.server.refusals, f"refused: {stage.server.refusals[:1]}")
    most = max(request.tokens for request in requests)
    acts.must(most <= WINDOW, f"a request had {most} tokens")
    whole = sum(len(output) for output in stage.outputs(requests[-1]))
    acts.must(whole < STEPS * 12_000 / 2, f"{whole} characters of tool outputs were sent last")
    acts.must(
        OUTCOME in stage.transcript(session).read_text(encoding="utf-8"), "the outcome differs"
    )
    return f"{len(requests)} requests of at most {most} tokens; {collected(stage)}"


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


def compaction(stage: ClaudeCode, session: str) -> str:
    """The agent's own compaction passes through, and the session is checkpointed before it."""
    stage.script.extend(["a poor summary", "going on"])
    stage.compact(session)
    acts.must(not stage.server.refusals, f"refused: {stage.server.refusals[:1]}")
    with Session(
        store=f"sqlite:{stage.ours / 'stash.sqlite'}",
        session_id=f"proxy:default:{session}",
        plugin="gc_none",
    ) as stored:
        labels = [each.label for each in stored.checkpoints()]
    acts.must("before the agent's compaction" in labels, f"the checkpoints are {labels}")
    return "a checkpoint was made before it"
