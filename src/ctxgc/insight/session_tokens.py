"""What tools, servers and files ate of a session, and which tool schemas were never called."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import msgspec

from ctxgc.config import GCConfig
from ctxgc.insight.cost import NO_SERVER, CostedRequest, server_of, total_cost
from ctxgc.insight.measurement import Measurement
from ctxgc.insight.segment_reason import stored_heap
from ctxgc.insight.survey import Tally, largest
from ctxgc.stores import Store
from ctxgc.wire.transcripts import Transcript

_MOST_ROWS = 40


class ToolTokens(msgspec.Struct, frozen=True, kw_only=True):
    """One tool: its calls, the tokens with those of results, and what the requests that called it cost."""

    tool: str
    server: str | None
    calls: int
    tokens: int
    cost: float | None = None


class FileTokens(msgspec.Struct, frozen=True, kw_only=True):
    """One file: how often tools were asked about it, and the tokens of that."""

    path: str
    reads: int
    tokens: int


class UncalledTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool whose schema is sent with each request although the session never called it."""

    tool: str
    tokens: int


class SessionTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What ate the tokens of a session, the largest first."""

    tools: list[ToolTokens]
    files: list[FileTokens]
    uncalled_tools: list[UncalledTool]


def recorded_tokens(transcript: Transcript, requests: Iterable[CostedRequest]) -> SessionTokens:
    """Return what ate the tokens of a recorded session: what `ctxgc analyze` and `ctxgc cost` say.

    Args:
        transcript: the session.
        requests: those of its main conversation.
    """
    measured = Measurement(
        transcript, context_limit=None, prices=None, config=GCConfig(),
        progress=lambda _stage, _done, _all: None,
    )  # fmt: skip
    survey = measured.passed.survey
    spends = total_cost(requests).by["tool"]
    costs = {name: s.dollars for name, s in spends.items() if s.dollars}
    return _rows(survey.tools, survey.files, costs, measured.scaled, [])


def stored_tokens(store: Store, session_id: str) -> SessionTokens:
    """Return what ate the tokens of a stored session; what requests with a tool cost is not known."""
    tools: dict[str, Tally] = {}
    files: dict[str, Tally] = {}
    heap = stored_heap(store, session_id)
    called = {each.call_id: each.name for each in heap if each.part == "tool_call" and each.call_id}
    for segment in heap:
        if segment.part not in ("tool_call", "tool_result") or segment.derived_from is not None:
            continue
        times = int(segment.part == "tool_call")
        name = segment.name or called.get(segment.call_id or "")
        if name is not None:
            tools.setdefault(name, Tally()).add(segment.tokens or 0, times=times)
        if segment.file_path is not None:
            path = os.path.normpath(segment.file_path)
            files.setdefault(path, Tally()).add(segment.tokens or 0, times=times)
    state = store.get(session_id, "state", "session") or {}
    uncalled = [
        UncalledTool(tool=str(doc["key"]), tokens=int(doc["tokens"]))
        for doc in state.get("beside", ())
        if doc.get("source") == "plugin" and not doc.get("left") and doc["key"] not in tools
    ]
    return _rows(tools, files, {}, round, uncalled)


def _rows(
    tools: dict[str, Tally],
    files: dict[str, Tally],
    costs: dict[str, float],
    scaled: Callable[[int], int],
    uncalled: list[UncalledTool],
) -> SessionTokens:
    return SessionTokens(
        tools=[
            ToolTokens(
                tool=name,
                server=None if server_of(name) == NO_SERVER else server_of(name),
                calls=tally.count,
                tokens=scaled(tally.tokens),
                cost=costs.get(name),
            )
            for name, tally in largest(tools, _MOST_ROWS)
        ],
        files=[
            FileTokens(path=name, reads=tally.count, tokens=scaled(tally.tokens))
            for name, tally in largest(files, _MOST_ROWS)
        ],
        uncalled_tools=sorted(uncalled, key=lambda each: (-each.tokens, each.tool))[:_MOST_ROWS],
    )
