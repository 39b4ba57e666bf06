"""The server as a process of its own, over stdin and stdout."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from mcp import Client

from tests.mcp.clients import MODES, PATIENCE, call, command, over_stdio, run
from tests.requirements import requirement

HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


class Raw:
    """A server spoken to line by line, without a client in between."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self.lines: list[str] = []

    def send(self, *lines: str) -> None:
        self._in.write("".join(f"{line}\n" for line in lines))
        self._in.flush()

    def ask(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return self.answer(number)

    def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask(number, "tools/call", name=tool, arguments=arguments)["result"]
        return dict(result["structuredContent"])

    def answer(self, number: int) -> dict[str, Any]:
        while True:
            line = self._out.readline()
            assert line, "the server ended"
            self.lines.append(line)
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == number:
                return message


@contextmanager
def _raw(arguments: list[str], folder: Path) -> Iterator[Raw]:
    process = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", cwd=folder,
    )  # fmt: skip
    try:
        raw = Raw(process)
        raw.send(json.dumps(HELLO))
        raw.answer(0)
        raw.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        yield raw
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_drives_the_server_over_stdio(tmp_path: Path, mode: str) -> None:
    async def work() -> dict[str, Any]:
        async with Client(over_stdio(tmp_path), mode=mode) as client:
            assert len((await client.list_tools()).tools) == 14
            await call(client, "context_ingest", segments=[{"text": "kept", "name": "a"}])
            return await call(client, "context_recall", handle="a")

    assert run(work)["text"] == "kept"


@requirement("S0.tools.analyze", "S0.tools.prune", "S0.behavior.before-after")
def test_the_whole_story_with_a_crash_in_the_middle(tmp_path: Path) -> None:
    """Ingest, warning, analyse, pin, prune, recall, checkpoint, kill -9, restart, restore."""
    texts = [
        f"record {n}: " + " ".join(f"item_{n}_{k} = {n * k}" for k in range(8)) for n in range(300)
    ]
    limits = ("--context-limit", "28000")

    async def before_the_crash() -> dict[str, Any]:
        async with Client(over_stdio(tmp_path, *limits)) as client:
            quiet = await call(client, "context_gc_configure", auto_trigger=False)
            assert quiet["changed"]["auto_trigger"] == {"before": True, "after": False}
            alerts = []
            for start in range(0, 300, 100):
                batch = [{"text": t, "type": "log"} for t in texts[start : start + 100]]
                done = await call(client, "context_ingest", segments=batch)
                alerts.append(done.get("alert", {}).get("level"))
            assert [alert for alert in alerts if alert] == ["WARNING"]

            first = await call(client, "context_gc_analyze", max_candidates=5)
            keep = first["candidates"][0]["segment_id"]
            await call(client, "context_gc_pin", segment_ids=[keep])
            second = await call(client, "context_gc_analyze", target_tokens=5_000)
            assert keep not in {c["segment_id"] for c in second["candidates"]}
            pruned = await call(client, "context_gc_prune", plan_id=second["plan"]["plan_id"])
            assert pruned["usage"]["after"] <= 5_000 < pruned["usage"]["before"]

            lost = pruned["stashed"][0]
            back = await call(client, "context_recall", handle=lost)
            assert (back["text"] in texts, back["recalled"]) == (True, True)
            made = await call(client, "context_checkpoint", label="safe")
            await call(client, "context_gc_prune", segment_ids=[lost])
            after = await call(client, "context_usage")
            os.kill(_server_of(tmp_path), signal.SIGKILL)
            return {"keep": keep, "lost": lost, "made": made, "usage": after, "back": back}

    then = run(before_the_crash)

    async def after_the_restart() -> None:
        async with Client(over_stdio(tmp_path)) as client:
            assert await call(client, "context_usage") == then["usage"]
            restored = await call(client, "context_checkpoint", action="restore", label="safe")
            assert (restored["recalled"], restored["lost"]) == ([then["lost"]], [])
            assert restored["usage"]["after"] == then["made"]["usage"]["after"]
            again = await call(client, "context_recall", handle=then["lost"])
            assert again["text"] == then["back"]["text"]
            pins = await call(client, "context_gc_pin", segment_ids=[then["keep"]])
            assert pins["unchanged"] == [then["keep"]]

    run(after_the_restart)


def _server_of(folder: Path) -> int:
    """Return the process that serves the store in a folder."""
    wanted = f"json:{folder / 'store.json'}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "cmdline").read_bytes():
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("the server is not there")


def _garbage(count: int) -> list[str]:
    """Return lines that no server should have to read."""
    chance = random.Random(7)
    samples = [
        "", "{", "null", "[]", "[" * 5_000, '"text"', "123", "{}", '{"jsonrpc": "2.0"}',
        '{"jsonrpc": "1.0", "id": 5, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": 6, "method": "no/such/method"}',
        '{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}',
        '{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": 5}}',
        '{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "x", "arguments": 3}}',
        '{"jsonrpc": "2.0", "id": 10, "result": {}}',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}',
        '{"jsonrpc": "2.0", "id": 11, "method": "resources/read", "params": {"uri": "x:y"}}',
        '{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', "\x00\x01\x02", "\\ud800", "é" * 500,
    ]  # fmt: skip
    return [
        chance.choice(samples) if chance.random() < 0.7 else _mangled(chance) for _ in range(count)
    ]


def _mangled(chance: random.Random) -> str:
    line = list(
        json.dumps({"jsonrpc": "2.0", "id": 12, "method": "ping", "params": {"a": [1, "x"]}})
    )
    for _ in range(chance.randint(1, 5)):
        line[chance.randrange(len(line))] = chance.choice('{}[]",:x0\\')
    return "".join(line)


def test_a_thousand_lines_of_garbage_do_no_harm(tmp_path: Path) -> None:
    with _raw(command(tmp_path), tmp_path) as raw:
        raw.call(1, "context_ingest", segments=[{"text": "precious", "name": "p"}])
        raw.send(*_garbage(1_000))
        assert raw.call(10_000, "context_recall", handle="p")["text"] == "precious"
        assert raw.process.poll() is None
        assert [line for line in raw.lines if json.loads(line)["jsonrpc"] != "2.0"] == []


NOISE = """
import atexit, logging, os, subprocess, sys, warnings
print("a plugin says hello")
os.write(1, b"straight to the descriptor\\n")
subprocess.run(["echo", "from a child"])
warnings.warn("a warning")
logging.getLogger("x").warning("a log line")
atexit.register(print, "goodbye")
"""


def test_stdout_carries_only_protocol_whoever_prints(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(NOISE, encoding="utf-8")
    program = (
        "import sys; sys.argv[0] = 'ctxgc'\n"
        "from ctxgc.mcp import ProtocolStdout; stdout = ProtocolStdout()\n"
        "import noise\n"
        "from ctxgc.mcp import ServerOptions, run_stdio\n"
        "import ctxgc.mcp.service as service\n"
        "quiet = service.ContextService.usage\n"
        "def loud(self):\n"
        "    print('in the middle of a call'); import os; os.system('echo a shell')\n"
        "    return quiet(self)\n"
        "service.ContextService.usage = loud\n"
        f"run_stdio(ServerOptions(store='json:{tmp_path / 'store.json'}'), stdout)\n"
    )
    with _raw([sys.executable, "-c", program], tmp_path) as raw:
        assert raw.call(1, "context_usage")["usage"]["tokens"] == 0
        rest, errors = raw.process.communicate(timeout=PATIENCE)
    assert [json.loads(line)["id"] for line in raw.lines] == [0, 1]
    assert rest == ""
    for said in ("hello", "descriptor", "a child", "in the middle", "a shell", "goodbye"):
        assert said in errors


def test_the_command_keeps_its_stdout_for_the_protocol(tmp_path: Path) -> None:
    with _raw(command(tmp_path), tmp_path) as raw:
        assert raw.call(1, "context_usage")["usage"]["tokens"] == 0
        assert [json.loads(line)["jsonrpc"] for line in raw.lines] == ["2.0", "2.0"]


def test_a_store_that_cannot_be_read_is_told_at_the_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [*command(tmp_path)[:5], "sqlite:"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no path" in done.stderr


def test_the_cost_of_the_schemas_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ctxgc.cli", "mcp", "--print-schema-cost"],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=True,
    )
    heads, *lines = [line.split() for line in done.stdout.splitlines()]
    assert heads == ["profile", "tokens", "(o200k)"]
    assert [line[0] for line in lines] == ["minimal", "standard", "full"]
    assert all(int(line[1].replace(",", "")) > 300 for line in lines)


def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(tmp_path: Path) -> None:
    with _raw(command(tmp_path), tmp_path) as raw:
        raw.send("{not json", "", '{"jsonrpc": "2.0", "id": 5, "method": 7}', "[1]")
        raw.send('{"jsonrpc": "2.0", "id": "six", "method": "tools/call", "params": [1]}')
        assert raw.ask(7, "ping")["result"] == {}
        told = raw.lines
        while len(told) < 6:
            raw.send('{"jsonrpc": "2.0", "id": 8, "method": "ping"}')
            raw.answer(8)
    errors = [m for m in map(json.loads, told) if "error" in m]
    assert [(m["id"], m["error"]["code"]) for m in errors] == [
        (None, -32700), (5, -32600), (None, -32600), ("six", -32600),
    ]  # fmt: skip
