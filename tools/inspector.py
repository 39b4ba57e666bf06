"""The MCP Inspector lists and calls our tools: `python -m tools.inspector`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

from ctxgc.mcp.tools import TOOLS
from tools import agents_env

NOTE = '[{"text": "kept by the inspector", "name": "note"}]'


def main() -> int:
    """Return 0 if the Inspector found and called what it should."""
    try:
        package = agents_env.suite("inspector")
        launcher = json.loads((package / "package.json").read_text(encoding="utf-8"))["bin"]
        program = [str(agents_env.node()), str(package / launcher["mcp-inspector"]), "--cli"]
    except agents_env.MissingError as error:
        return agents_env.skip("Inspector", error)
    with tempfile.TemporaryDirectory() as folder:
        ours = ["-m", "ctxgc.cli", "mcp", "--store", f"json:{folder}/store.json"]
        command = [*program, sys.executable, *ours]
        listed = _ask(command, "--method", "tools/list", "--strict")
        _ask(command, *_call("context_ingest", f"segments={NOTE}"))
        recalled = _ask(command, *_call("context_recall", "handle=note"))
    names = [tool["name"] for tool in listed["tools"]]
    text = recalled["structuredContent"]["text"]
    if names != [tool.name for tool in TOOLS] or text != "kept by the inspector":
        print(f"FAILED Inspector: {names} {recalled}")
        return 1
    print(f"held: the Inspector listed {len(names)} tools and called two")
    return 0


def _call(tool: str, argument: str) -> list[str]:
    return ["--method", "tools/call", "--tool-name", tool, "--tool-arg", argument]


def _ask(command: list[str], *more: str) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, *more],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
        env=agents_env.environment(),
    )
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        raise RuntimeError(
            f"the Inspector said: {done.stdout[-500:]} {done.stderr[-500:]}"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
