"""The real Claude Code or the real Codex works with ctxgc: `python -m tools.real_agents AGENT`.

A scripted model on loopback drives it on a sample repository, in a home of its own. What is asserted is
what the model server received.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools import agents_env
from tools.real_agents import acts
from tools.real_agents.claude_code import ClaudeCode
from tools.real_agents.codex import Codex
from tools.real_agents.stage import Stage

AGENTS: dict[str, tuple[type[Stage], Callable[[], Path]]] = {
    "claude-code": (ClaudeCode, agents_env.claude),
    "codex": (Codex, agents_env.codex),
}
_SERVER = {"extra_fields": ("client_metadata",), "context_limit": 1_000_000}
"""Codex sends a field that the provider does not document; Claude Code takes its window to be so large."""


def main(words: list[str]) -> int:
    """Return 0 if everything was shown, or the agent cannot be had here."""
    name = words[0] if words else ""
    if name not in AGENTS:
        print(f"usage: python -m tools.real_agents {'|'.join(AGENTS)}")
        return 2
    kind, program = AGENTS[name]
    try:
        found = program()
    except agents_env.MissingError as error:
        return agents_env.skip(f"real {name}", error)
    with tempfile.TemporaryDirectory() as folder:
        stage = kind(found, Path(folder), **_SERVER, validate=kind is Codex)
        try:
            with stage.server:
                play(stage)
        except AssertionError as error:
            print(f"FAILED real {name}: {error}")
            return 1
    return 0


def play(stage: Stage) -> None:
    """Show all acts on a stage, and say what was seen."""
    stage.settle()
    before = stage.snapshot()
    stage.ctxgc("install", stage.name)
    tell("install", "nothing to do" in stage.ctxgc("install", stage.name) and "twice is once")
    session, seen = acts.evacuation_and_recall(stage)
    tell("evacuation and recall", seen)
    tell("compaction", acts.compaction(stage, session))
    tell("pruned and resumed", acts.pruned_session(stage))
    tell("MCP tools", acts.mcp_tools(stage))
    if isinstance(stage, ClaudeCode):
        tell("tool list", acts.lists_tools(stage.events("hello")))
    tell("broken on purpose", acts.works_when_broken(stage))
    tell("uninstall", acts.uninstalled(stage, before))
    if isinstance(stage, ClaudeCode):
        tell("plugin folder", acts.plugin(stage))
    tell("histories", acts.valid_histories(stage))


def tell(act: str, seen: str | bool) -> None:
    """Say what an act showed."""
    acts.must(seen, f"{act} showed nothing")
    print(f"held: {act}: {seen}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
