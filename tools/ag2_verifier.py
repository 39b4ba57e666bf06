"""AG2's own referee on compaction strategies: ours, next to those that AG2 has.

python -m tools.ag2_verifier          print the statistics
python -m tools.ag2_verifier write    write them into docs/adapters/ag2.md

To be run with the Python of AG2's environment: `out/adapters/ag2/bin/python`. The agent is a script behind
the strict server: it patches units one after the other, and each patch needs the codes of two logs. It knows
what its context shows, and nothing else: it goes on after the last patch that it sees, recalls a log that
left under a handle, and reads it again if it sees neither. So strategies differ by what they leave to see.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ag2 import Agent
from ag2.annotations import Context
from ag2.compact import TailWindowCompact
from ag2.config import OpenAIConfig
from ag2.events import BaseEvent
from ag2.extensions.compaction_verifier import (
    CompactionVerifier,
    IdentityCompact,
    Recording,
    ReplayEnvironment,
)
from ag2.knowledge import KnowledgeStore
from ag2.stream import MemoryStream
from ag2.tools import tool

from ctxgc.adapters.ag2 import CtxgcCompact
from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall
from tools.agents_env import ROOT

PAGE = ROOT / "docs" / "adapters" / "ag2.md"
MARKS = ("<!-- made: verifier (begin) -->", "<!-- made: verifier (end) -->")
UNITS = 24
HORIZON = 6
WINDOW = 200_000
TASK = f"Patch units 0 to {UNITS - 1}. A patch needs the codes of its unit and of the one of half its number."


class Plant:
    """What the agent works on: logs with codes, and patches that need them."""

    def read_log(self, unit: int) -> str:
        """Read the log of a unit."""
        lines = [
            f"unit {unit} step {n}: valve {n * 37 % 91}, {n * unit % 83} ms" for n in range(24)
        ]
        lines[11] = f"unit {unit} has code {code_of(unit)}"
        return "\n".join(lines)

    def patch(self, unit: int, codes: str) -> str:
        """Patch a unit with the codes that it needs."""
        if codes.split() != [code_of(each) for each in needed(unit)]:
            raise ValueError(f"unit {unit} needs other codes")
        return f"patched unit {unit}"

    def tools(self) -> dict[str, Callable[..., Any]]:
        """Return the functions by their names."""
        return {"read_log": self.read_log, "patch": self.patch}


class Remembered:
    """Our strategy, and recall for whatever stream it compacted: the verifier goes on in another stream."""

    def __init__(self, **options: Any) -> None:
        self._gc = CtxgcCompact(store="memory:", context_limit=WINDOW, **options)
        self._gc.tools()
        self._keys: list[str] = []

    async def compact(
        self, events: list[BaseEvent], context: Context, store: KnowledgeStore | None
    ) -> list[BaseEvent]:
        """Compact, and remember the stream."""
        self._keys.append(str(context.stream.id))
        return await self._gc.compact(events, context, store)

    def recall(self, handle: str) -> str:
        """Return what the handle stands for."""
        given = {"handle": handle}
        told = [self._gc.sessions.answer("context_recall", given, key) for key in self._keys]
        return next((text for text in told if " has code " in text), told[0])


def code_of(unit: int) -> str:
    """Return the code that the log of a unit names."""
    return f"QX-{unit * 7919 % 9973:04d}"


def needed(unit: int) -> list[int]:
    """Return the units whose codes a patch needs."""
    return sorted({unit // 2, unit})


def next_action(request: RecordedRequest) -> ToolCall | str:
    """Return what the scripted agent does, from nothing but what the request shows."""
    read, said = _results(request.messages)
    patched = [int(n) for text in said for n in re.findall(r"^patched unit (\d+)", text)]
    unit = max(patched, default=-1) + 1
    if unit == UNITS:
        return "All units are patched."
    codes = dict(match for text in said for match in re.findall(r"unit (\d+) has code (.*)", text))
    for each in map(str, needed(unit)):
        handle = re.search(r'context_recall\(handle="([^"]+)"', read.get(each, ""))
        if each not in codes and handle:
            return ToolCall("context_recall", {"handle": handle[1]})
        if each not in codes:
            return ToolCall("read_log", {"unit": int(each)})
    return ToolCall("patch", {"unit": unit, "codes": " ".join(codes[str(e)] for e in needed(unit))})


def _results(messages: Sequence[dict[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """Return what is left of each log that was read, by its unit, and what all results say."""
    asked = {call["id"]: call["function"] for m in messages for call in m.get("tool_calls") or ()}
    said = [(asked[m["tool_call_id"]], str(m["content"])) for m in messages if m["role"] == "tool"]
    read = {
        str(json.loads(function["arguments"])["unit"]): text
        for function, text in said
        if function["name"] == "read_log"
    }
    return read, [text for _, text in said]


def statistics() -> str:
    """Return what AG2's verifier says."""
    with StrictServer(ScriptedModel(then=next_action), context_limit=WINDOW) as server:
        return asyncio.run(_verified(server))


def on_page() -> str:
    """Return the statistics that the page shows."""
    block = PAGE.read_text(encoding="utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0]
    return block.strip().removeprefix("```text").removesuffix("```").strip()


async def _verified(server: StrictServer) -> str:
    ours = {target: Remembered(target_tokens=target) for target in (2_000, 4_000)}

    @tool
    def context_recall(handle: str) -> str:
        """Bring back what left."""
        told = [each.recall(handle) for each in ours.values()]
        return next((text for text in told if " has code " in text), told[0])

    config = OpenAIConfig("gpt-4o", api_key="any", base_url=server.openai_base_url, max_retries=0)
    agent = Agent("patcher", config=config, tools=[context_recall])
    stream = MemoryStream()
    await agent.ask(
        TASK, stream=stream, tools=[tool(f, name=n) for n, f in Plant().tools().items()]
    )
    recording = Recording(
        list(await stream.history.get_events()), ReplayEnvironment(lambda: Plant().tools())
    )
    verifier = CompactionVerifier(agent, horizon=HORIZON, samples=1, concurrency=1)
    report = await verifier.verify([recording], {
        "unchanged": IdentityCompact(),
        **{f"tail window {n}": TailWindowCompact(n) for n in (24, 48, 96)},
        **{f"ctxgc {target}": strategy for target, strategy in ours.items()},
    }, every=4)  # fmt: skip
    return str(report.summary())


def main(arguments: Sequence[str]) -> int:
    """Print the statistics, or write them into the page; return the exit code."""
    said = statistics()
    print(said)
    if "write" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(MARKS[0])
        tail = rest.split(MARKS[1])[1]
        made = f"{head}{MARKS[0]}\n```text\n{said}\n```\n{MARKS[1]}{tail}"
        PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
