"""The real Claude Code works with our MCP server: `python -m tools.real_claude`.

A scripted model on loopback makes it call ingest, analyze, prune and recall in one conversation; what
the tools answered is read from the requests that it sends back to the model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ctxgc.mcp.tools import TOOLS
from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall
from tools import agents_env

PREFIX = "mcp__ctxgc__"
KEPT = "the staging port is 48151"
SEGMENTS = [{"text": KEPT, "type": "log", "name": "port"}] + [
    {"text": f"build line {number}: nothing to see", "type": "log"} for number in range(14)
]


def main() -> int:
    """Return 0 if the conversation went as it should."""
    try:
        program = agents_env.claude()
    except agents_env.MissingError as error:
        return agents_env.skip("real Claude Code", error)
    model = ScriptedModel(
        [
            ToolCall(f"{PREFIX}context_ingest", {"segments": SEGMENTS}),
            ToolCall(f"{PREFIX}context_gc_analyze", {"max_candidates": 3}),
            lambda request: ToolCall(
                f"{PREFIX}context_gc_prune", {"plan_id": last_answer(request)["plan"]["plan_id"]}
            ),
            ToolCall(f"{PREFIX}context_recall", {"handle": "port"}),
        ],
        then="all done",
    )
    with StrictServer(model, validate=False) as server, tempfile.TemporaryDirectory() as folder:
        events = talk(program, server.base_url, Path(folder))
        problems = judge(events, [answer for r in server.requests for answer in answers(r)])
    for problem in problems:
        print(f"FAILED real Claude Code: {problem}")
    if not problems:
        print("held: Claude Code listed 14 tools and called ingest, analyze, prune and recall")
    return len(problems) and 1


def talk(program: Path, model_url: str, folder: Path) -> list[dict[str, Any]]:
    """Return what Claude Code reports of one conversation with our server at hand."""
    server = [sys.executable, "-m", "ctxgc.cli", "mcp", "--store", f"json:{folder}/store.json"]
    config = {"mcpServers": {"ctxgc": {"command": server[0], "args": server[1:]}}}
    (folder / "mcp.json").write_text(json.dumps(config), encoding="utf-8")
    command = [
        str(program), "-p", "tidy up", "--output-format", "stream-json", "--verbose",
        "--mcp-config", str(folder / "mcp.json"), "--strict-mcp-config",
        "--allowedTools", ",".join(f"{PREFIX}{tool.name}" for tool in TOOLS),
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603 - the program of our own environment
        command,
        env=_environment(model_url, folder),
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        print(done.stderr[-2_000:], file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def judge(events: list[dict[str, Any]], said: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with a conversation."""
    start = next((e for e in events if e.get("subtype") == "init"), {})
    ours = {name.removeprefix(PREFIX) for name in start.get("tools", ()) if PREFIX in name}
    missing = sorted({tool.name for tool in TOOLS} - ours)
    last = said[-4:]
    wrong = [
        (bool(missing), f"it does not list {', '.join(missing)}"),
        (len(last) < 4, f"only {len(last)} tools answered: {last}"),
        (any("error" in answer for answer in last), f"a tool failed: {last}"),
    ]
    if len(last) == 4 and not any("error" in answer for answer in last):
        ingested, analyzed, pruned, recalled = last
        wrong += [
            (ingested["ingested"] != 15, f"ingest: {ingested}"),
            (not analyzed["candidates"], f"analyze: {analyzed}"),
            (pruned["tokens_saved"] <= 0, f"prune: {pruned}"),
            (recalled["text"] != KEPT, f"recall: {recalled}"),
        ]
    return [text for is_wrong, text in wrong if is_wrong]


def answers(request: RecordedRequest) -> list[dict[str, Any]]:
    """Return what our tools answered in the newest message of a request."""
    return _answers_in(request.messages[-1]) if request.messages else []


def _answers_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    return [_data(b.get("content")) for b in blocks if b.get("type") == "tool_result"]


def last_answer(request: RecordedRequest) -> dict[str, Any]:
    """Return the newest answer of our tools; Claude Code may add messages of its own behind it."""
    found = [answer for message in request.messages for answer in _answers_in(message)]
    return found[-1] if found else {}


def _data(content: Any) -> dict[str, Any]:
    text = (
        content if isinstance(content, str) else "".join(b.get("text", "") for b in content or ())
    )
    try:
        found = json.loads(text)
    except ValueError:
        return {"error": text}
    return found if isinstance(found, dict) else {"error": text}


def _environment(model_url: str, folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "any-text",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
