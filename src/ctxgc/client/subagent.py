"""Subagents: a task for a model of its own, with its own session and its own collector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ctxgc.client.answer import Reply
from ctxgc.client.setup import Setup
from ctxgc.client.tool import Tool
from ctxgc.config import GCConfig, Profile, unknown_key
from ctxgc.errors import ClientError
from ctxgc.plugins import gc_from_inline, gc_from_spec
from ctxgc.strategies.base import GCPlugin, GCResult

MOST_DEPTH = 3


class SubagentResult(Reply):
    """The text that a subagent ends with; also its session's id, its collections and its profile."""

    session_id: str
    profile: str | None
    depth: int
    gc_history: list[GCResult]


def check_depth(depth: int) -> None:
    """Make sure that a client at this depth may start another one.

    Raises:
        ClientError: it stands at the limit.
    """
    if depth >= MOST_DEPTH:
        raise ClientError(
            f"a subagent at depth {depth} cannot start another one",
            hint="let it do the task itself",
            depth=depth,
        )


def inherit(
    parent: Setup, profile: Profile | None, inline_config: Mapping[str, Any] | None
) -> Setup:
    """Return the set-up of a subagent: the parent's, but for what profile and inline say.

    Raises:
        ConfigError: the inline configuration is wrong, or the profile names an unknown tool.
    """
    own: dict[str, Any] = {"session_id": None}
    gc = choose_gc(profile, inline_config)
    if gc is not None:
        own |= {"plugin": gc[0], "config": gc[1]}
    changes: dict[str, Any] = {
        "tools": choose_tools(parent.tools, profile),
        "session": {**parent.session, **own},
        "owns_sdk": False,
        "depth": parent.depth + 1,
    }
    if profile is not None and profile.system_instructions is not None:
        changes["system"] = profile.system_instructions
    if profile is not None and profile.model is not None:
        changes["provider"] = parent.provider.with_model(profile.model)
    return msgspec.structs.replace(parent, **changes)


def hand_over(setup: Setup, parent: object, child: object) -> Setup:
    """Return a set-up in which tools that are methods of the parent are the child's own.

    So a subagent that is given `spawn_subagent` counts its own depth.
    """
    tools = [
        msgspec.structs.replace(tool, function=getattr(child, tool.function.__name__))
        if getattr(tool.function, "__self__", None) is parent
        else tool
        for tool in setup.tools
    ]
    return msgspec.structs.replace(setup, tools=tuple(tools))


def choose_gc(
    profile: Profile | None, inline_config: Mapping[str, Any] | None
) -> tuple[GCPlugin, GCConfig] | None:
    """Return the collector that inline configuration, else the profile asks for; None for neither."""
    inline = gc_from_inline(inline_config) if inline_config is not None else None
    if inline is not None:
        return inline
    return gc_from_spec(profile.gc) if profile is not None and profile.gc is not None else None


def choose_tools(tools: Iterable[Tool], profile: Profile | None) -> tuple[Tool, ...]:
    """Return the tools that a profile names in `plugins`; all of them if it names none.

    Raises:
        ConfigError: it names a tool that there is not.
    """
    known = {tool.name: tool for tool in tools}
    if profile is None or not profile.plugins:
        return tuple(known.values())
    for name in profile.plugins:
        if name not in known:
            raise unknown_key(name, known, f'tool in the profile "{profile.name}"')
    return tuple(known[name] for name in profile.plugins)
