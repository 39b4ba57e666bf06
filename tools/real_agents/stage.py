"""A stage for an agent: a home of its own, a sample repository, and the model server it talks to."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path
from typing import Any

from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall
from ctxgc.testing.model import Scripted, TurnLike

PATIENCE = 600
NEEDLE = "ERROR: port 48151 is busy"
LOG_LINES = 2_000


class Stage(ABC):
    """One agent with a fresh home; what it does and sends can be looked at."""

    name: str
    compact_at: int | None = None
    """At how many tokens the agent compacts by itself, if not at its own limit."""

    def __init__(self, program: Path, folder: Path, **settings: Any) -> None:
        self.program = program
        self.script: deque[Scripted] = deque()
        self.server = StrictServer(ScriptedModel(then=self._answer), **settings)
        self.home = folder / "home"
        self.repository = folder / "repository"
        self.home.mkdir(parents=True)
        make_repository(self.repository)

    def _answer(self, request: RecordedRequest) -> TurnLike:
        """Return the next turn; while our tools are not there yet, one that lets a moment pass."""
        if not self.script:
            return "nothing more to say"
        turn = self.script[0]
        if (callable(turn) or (isinstance(turn, ToolCall) and turn.name.startswith("mcp__"))) and (
            not self.is_ready(request)
        ):
            return self.shell("sleep 0.3")
        self.script.popleft()
        return turn(request) if callable(turn) else turn

    def is_ready(self, request: RecordedRequest) -> bool:  # noqa: ARG002 (most need not wait)
        """Tell whether the agent has our tools."""
        return True

    @abstractmethod
    def is_own(self, name: str) -> bool:
        """Tell whether a file of the home is one that the agent itself writes."""

    @abstractmethod
    def settle(self) -> None:
        """Write the configuration that a user of this agent has before ctxgc comes."""

    @abstractmethod
    def say(self, prompt: str, session: str | None = None) -> str:
        """Have one conversation, or go on with one, and return its id."""

    @abstractmethod
    def compact(self, session: str) -> None:
        """Compact a conversation and go on with it."""

    @abstractmethod
    def shell(self, command: str) -> ToolCall:
        """Return the call that runs a command."""

    @abstractmethod
    def outputs(self, request: RecordedRequest) -> list[str]:
        """Return the tool outputs of a request, oldest first."""

    @abstractmethod
    def transcript(self, session: str) -> Path:
        """Return the file of a conversation."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return what the agent finds in its environment."""

    def pruned_id(self, original: Path) -> str:
        """Return the id of the session that was written beside another last."""
        beside = (path for path in original.parent.iterdir() if path.suffix == original.suffix)
        return max(beside, key=lambda path: path.stat().st_mtime_ns).stem[-36:]

    def history(self, request: RecordedRequest) -> list[Any]:
        """Return the messages of a request that the provider's rules are about."""
        return request.messages

    def ctxgc(self, *words: str, folder: Path | None = None) -> str:
        """Run a command of ours, in the repository if no other folder is named; return what it prints."""
        return self.run([sys.executable, "-m", "ctxgc.cli", *words], folder)

    def agent(self, *words: str) -> str:
        """Run the agent in the repository and return what it prints."""
        return self.run([str(self.program), *words])

    def run(self, command: list[str], folder: Path | None = None) -> str:
        """Run a program and return its output; a failure is an error."""
        done = subprocess.run(  # noqa: S603 - programs of our own environment
            command,
            env=self.environment(),
            cwd=folder or self.repository,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            said = f"{done.stdout[-1_000:]}\n{done.stderr[-2_000:]}"
            raise AssertionError(f"{Path(command[0]).name} ended with {done.returncode}: {said}")
        return done.stdout

    def base_environment(self) -> dict[str, str]:
        """Return the environment of every program on this stage."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    def snapshot(self) -> dict[str, bytes]:
        """Return all files of the home and the repository, but for the agent's own."""
        return {
            str(path.relative_to(folder.parent)): path.read_bytes()
            for folder in (self.home, self.repository)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not self.is_own(path.relative_to(folder).as_posix())
        }

    @property
    def ours(self) -> Path:
        """Our own folder in this home."""
        return self.home / ".local" / "state" / "ctxgc" / "agents"


def make_repository(folder: Path) -> None:
    """Write a small project with a log that is far too long to read."""
    folder.mkdir(parents=True)
    lines = [f"step {n} of the build took {n * 7 % 90} ms" for n in range(LOG_LINES)]
    lines[LOG_LINES // 2] += f" {NEEDLE}"
    (folder / "build.log").write_text("\n".join(lines), encoding="utf-8")
    (folder / "server.py").write_text("PORT = 48151\n", encoding="utf-8")
    (folder / "README.md").write_text("# A sample project\n", encoding="utf-8")


def text_of(content: Any) -> str:
    """Return the text of a tool result, which may come in blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
