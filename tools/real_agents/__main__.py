"""The real Claude Code or the real Codex works with ctxgc: `python -m tools.real_agents AGENT`.

A scripted model on loopback drives it on a sample repository, in a home of its own. What is asserted is
what the model server received. With `both`, a session goes from one agent to the other and back; with `proxy`
both run under `ctxgc wrap`; with `dashboard` a browser looks at Claude Code behind `ctxgc serve`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools import agents_env, browser
from tools.real_agents import acts, on_dashboard, through_proxy
from tools.real_agents.claude_code import ClaudeCode
from tools.real_agents.codex import Codex
from tools.real_agents.stage import Stage

AGENTS: dict[str, tuple[type[Stage], Callable[[], Path]]] = {
    "claude-code": (ClaudeCode, agents_env.claude),
    "codex": (Codex, agents_env.codex),
}
_BOTH = "both"
_PROXY = "proxy"
_DASHBOARD = "dashboard"
_SERVER = {"extra_fields": ("client_metadata",), "context_limit": 1_000_000}
"""Codex sends a field that the provider does not document; Claude Code takes its window to be so large."""


def main(words: list[str]) -> int:
    """Return 0 if everything was shown, or the agent cannot be had here."""
    name = words[0] if words else ""
    others = {_BOTH: both, _PROXY: proxied, _DASHBOARD: looked_at}
    if name in others:
        return others[name]()
    if name not in AGENTS:
        print(
            f"usage: python -m tools.real_agents {'|'.join([*AGENTS, _BOTH, _PROXY, _DASHBOARD])}"
        )
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
    tell("pruned in place", acts.pruned_in_place(stage))
    tell("MCP tools", acts.mcp_tools(stage))
    tell("own window", acts.own_window(stage))
    if isinstance(stage, ClaudeCode):
        tell("tool list", acts.lists_tools(stage.events("hello")))
    tell("broken on purpose", acts.works_when_broken(stage))
    tell("uninstall", acts.uninstalled(stage, before))
    tell("pruned without a server", acts.pruned_without_server(stage))
    if isinstance(stage, ClaudeCode):
        tell("plugin folder", acts.plugin(stage))
    tell("histories", acts.valid_histories(stage))


def both() -> int:
    """Return 0 if sessions were resumed by the other agent, or one of them cannot be had here."""
    try:
        programs = [program() for _, program in AGENTS.values()]
    except agents_env.MissingError as error:
        return agents_env.skip("conversion", error)
    with tempfile.TemporaryDirectory() as folder:
        stages = [
            kind(program, Path(folder) / name, **_SERVER, validate=kind is Codex)
            for (name, (kind, _)), program in zip(AGENTS.items(), programs, strict=True)
        ]
        try:
            with stages[0].server, stages[1].server:
                pass_on(*stages)
        except AssertionError as error:
            print(f"FAILED conversion: {error}")
            return 1
    return 0


def pass_on(one: Stage, other: Stage) -> None:
    """Show that each agent goes on with a session of the other, and the first one with it again."""
    other.repository, other.home = one.repository, one.home
    for stage in (one, other):
        stage.settle()
        stage.ctxgc("install", stage.name)
    for source, target in ((one, other), (other, one)):
        session, seen = acts.conversion(source, target)
        tell("converted", seen)
        _, seen = acts.conversion(target, source, session)
        tell("converted back", seen)
    for stage in (one, other):
        tell(f"histories of {stage.name}", acts.valid_histories(stage))


def proxied() -> int:
    """Return 0 if both agents worked through the proxy, or one of them cannot be had here."""
    kinds: tuple[tuple[type[Stage], Callable[[], Path]], ...] = (
        (through_proxy.WrappedClaude, agents_env.claude),
        (through_proxy.WrappedCodex, agents_env.codex),
    )
    try:
        programs = [program() for _, program in kinds]
    except agents_env.MissingError as error:
        return agents_env.skip("proxy", error)
    for (kind, _), program in zip(kinds, programs, strict=True):
        with tempfile.TemporaryDirectory() as folder:
            stage = kind(
                program,
                Path(folder) / "stage",
                **_SERVER,
                validate=kind is not through_proxy.WrappedClaude,
            )
            through_proxy.wrapped(stage, Path(folder))
            try:
                with stage.server:
                    play_proxied(stage)
            except AssertionError as error:
                print(f"FAILED {kind.name} through the proxy: {error}")
                return 1
    return 0


def play_proxied(stage: Stage) -> None:
    """Show what an agent does through the proxy."""
    stage.settle()
    session, seen = through_proxy.long_session(stage)
    tell(f"{stage.name} through the proxy", seen)
    tell("compaction through the proxy", through_proxy.compaction(stage, session))
    tell(f"histories of {stage.name}", acts.valid_histories(stage))


def looked_at() -> int:
    """Return 0 if the dashboard showed Claude Code at work, or one of the programs cannot be had here."""
    try:
        program = agents_env.claude()
        if browser.find() is None:
            raise agents_env.MissingError("no browser: python -m tools.browser installs one")
    except agents_env.MissingError as error:
        return agents_env.skip("dashboard", error)
    with tempfile.TemporaryDirectory() as folder:
        stage = on_dashboard.ServedClaude(program, Path(folder), **_SERVER, validate=False)
        try:
            with stage.server:
                stage.settle()
                tell("dashboard", on_dashboard.looked_at(stage))
        except AssertionError as error:
            print(f"FAILED dashboard: {error}")
            return 1
    return 0


def tell(act: str, seen: str | bool) -> None:
    """Say what an act showed."""
    acts.must(seen, f"{act} showed nothing")
    print(f"held: {act}: {seen}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
