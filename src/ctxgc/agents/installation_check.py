"""Installations checked for `ctxgc doctor`: their entries, the server, the store and the hooks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import msgspec

from ctxgc.agents.agent_configs import (
    HOOK_MODULE,
    NO_SERVER,
    SERVER_HINT,
    AgentCommands,
    AgentPaths,
    can_serve,
    config_files,
)
from ctxgc.agents.events import AGENTS, LOG_NAME
from ctxgc.agents.installation import Receipt, installed_agents, read_file, read_receipt
from ctxgc.errors import CtxgcError
from ctxgc.session import open_store

_HOOKED = ("claude-code", "codex")
"""The agents that get hooks; the others get the MCP server alone."""
_SLOW_SECONDS = 1.0
PATIENCE_SECONDS = 20.0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a check, and what to do about it."""

    level: Literal["ok", "info", "warning", "error"]
    where: str
    what: str
    fix: str = ""


def check(project: Path | None = None) -> list[Finding]:
    """Return the findings about the installations of this user and of this project."""
    found: list[Finding] = []
    for scope in ("user", "project"):
        paths = AgentPaths(scope, (project or Path.cwd()).absolute())
        for agent in installed_agents(paths.home):
            if agent in AGENTS:
                found.extend(_check(agent, paths))
    if not found:
        fix = f"ctxgc install {AGENTS[0]}"
        return [Finding(level="info", where="agents", what="not installed for any agent", fix=fix)]
    return found


def _check(agent: str, paths: AgentPaths) -> list[Finding]:
    where = f"{agent} ({paths.scope})"
    again = f"ctxgc install {agent} --{paths.scope}"
    try:
        receipt = read_receipt(paths.home, agent) or Receipt(agent=agent)
        missing = _missing(agent, paths, receipt)
        open_store(AgentCommands(agent, paths.home, receipt.store).store_url).close()
    except CtxgcError as error:
        return [Finding(level="error", where=where, what=error.message, fix=error.hint)]
    if missing:
        return [
            Finding(
                level="error", where=where, what=f"{missing} lacks the entries of ctxgc", fix=again
            )
        ]
    if not can_serve():
        return [Finding(level="error", where=where, what=NO_SERVER, fix=SERVER_HINT)]
    hooks = _hook_findings(where, paths) if agent in _HOOKED else []
    return [Finding(level="ok", where=where, what="installed"), *hooks]


def _missing(agent: str, paths: AgentPaths, receipt: Receipt) -> str:
    """Return a file that differs from what this interpreter would install; empty if none does."""
    for config in config_files(agent, paths, AgentCommands(agent, paths.home, receipt.store)):
        text = (read_file(config.path) or b"").decode("utf-8", "replace")
        if config.add(text) != text:
            return str(config.path)
    return ""


def _hook_findings(where: str, paths: AgentPaths) -> list[Finding]:
    sample = json.dumps({"hook_event_name": "SessionStart", "source": "startup"})
    command = [sys.executable, "-P", "-m", HOOK_MODULE, "session-start", "--home", str(paths.home)]
    started = time.perf_counter()
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command, input=sample, capture_output=True, encoding="utf-8",
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return [Finding(level="error", where=where, what=f"the hooks do not run: {error}")]
    took = time.perf_counter() - started
    if done.returncode or done.stderr:
        what = f"the hooks fail: {done.stderr.strip()[-200:] or done.returncode}"
        return [Finding(level="error", where=where, what=what, fix=f"see {paths.home / LOG_NAME}")]
    what = f"the hooks answer in {took * 1000:.0f} ms"
    return [Finding(level="warning" if took > _SLOW_SECONDS else "ok", where=where, what=what)]
