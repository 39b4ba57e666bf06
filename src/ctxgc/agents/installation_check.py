"""Is it installed, does the command resolve, do the hooks answer: what `ctxgc doctor` asks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import msgspec

from ctxgc.agents.events import AGENTS, LOG_NAME
from ctxgc.agents.installation import Receipt, installed_agents, read_file, read_receipt
from ctxgc.agents.targets import (
    HOOK_MODULE,
    NO_SERVER,
    SERVER_HINT,
    Commands,
    Places,
    can_serve,
    targets_of,
)
from ctxgc.errors import CtxgcError
from ctxgc.session import open_store

HOOKED = ("claude-code", "codex")
"""The agents that get hooks; the others get the MCP server alone."""
SLOW_SECONDS = 1.0
PATIENCE_SECONDS = 20.0


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing about an installation, and what to do about it."""

    level: Literal["ok", "info", "warning", "error"]
    where: str
    what: str
    fix: str = ""


def check(project: Path | None = None) -> list[Finding]:
    """Return what there is to say about the installations for this user and in this project."""
    found: list[Finding] = []
    for scope in ("user", "project"):
        places = Places(scope, (project or Path.cwd()).absolute())
        for agent in installed_agents(places.home):
            if agent in AGENTS:
                found.extend(_check(agent, places))
    if not found:
        fix = f"ctxgc install {AGENTS[0]}"
        return [Finding(level="info", where="agents", what="not installed anywhere", fix=fix)]
    return found


def _check(agent: str, places: Places) -> list[Finding]:
    where = f"{agent} ({places.scope})"
    again = f"ctxgc install {agent} --{places.scope}"
    try:
        receipt = read_receipt(places.home, agent) or Receipt(agent=agent)
        missing = _missing(agent, places, receipt)
        open_store(Commands(agent, places.home, receipt.store).store_url).close()
    except CtxgcError as error:
        return [Finding(level="error", where=where, what=error.message, fix=error.hint)]
    if missing:
        return [Finding(level="error", where=where, what=f"{missing} lacks our entries", fix=again)]
    if not can_serve():
        return [Finding(level="error", where=where, what=NO_SERVER, fix=SERVER_HINT)]
    hooks = _hook_findings(where, places) if agent in HOOKED else []
    return [Finding(level="ok", where=where, what="installed"), *hooks]


def _missing(agent: str, places: Places, receipt: Receipt) -> str:
    """Return a file that is not as an installation by this interpreter leaves it."""
    for target in targets_of(agent, places, Commands(agent, places.home, receipt.store)):
        text = (read_file(target.path) or b"").decode("utf-8", "replace")
        if target.add(text) != text:
            return str(target.path)
    return ""


def _hook_findings(where: str, places: Places) -> list[Finding]:
    sample = json.dumps({"hook_event_name": "SessionStart", "source": "startup"})
    command = [sys.executable, "-P", "-m", HOOK_MODULE, "session-start", "--home", str(places.home)]
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
        return [Finding(level="error", where=where, what=what, fix=f"see {places.home / LOG_NAME}")]
    what = f"the hooks answer in {took * 1000:.0f} ms"
    return [Finding(level="warning" if took > SLOW_SECONDS else "ok", where=where, what=what)]
