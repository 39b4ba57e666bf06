"""The set-up of a conversation: all that it takes to open one, so that a subagent can inherit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.client.conversation import Conversation
from ctxgc.client.provider import Provider
from ctxgc.client.tool import Tool
from ctxgc.client.toolbox import Toolbox
from ctxgc.errors import InputError
from ctxgc.session import Session


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """A model, its tools and instructions, and the options of its session."""

    provider: Provider
    tools: tuple[Tool, ...]
    session: Mapping[str, Any]
    system: str | None
    recall: bool
    max_rounds: int
    tool_workers: int
    depth: int = 0

    def __post_init__(self) -> None:
        for name in ("max_rounds", "tool_workers"):
            if getattr(self, name) < 1:
                value = getattr(self, name)
                raise InputError(f"{name} is {value}", hint="pass 1 or more", field=name)

    @property
    def owns_store(self) -> bool:
        """Whether the session opens its store itself, and so has to close it."""
        return isinstance(self.session.get("store"), str | None)


def open_conversation(setup: Setup) -> Conversation:
    """Return a conversation with a session of its own, new or continued."""
    toolbox = Toolbox(setup.tools, workers=setup.tool_workers)
    without_recall = {} if setup.recall else {"recall_call": None}
    session = Session(model=setup.provider.model, **{**setup.session, **without_recall})
    return Conversation(
        session,
        setup.provider,
        toolbox,
        system=setup.system,
        max_rounds=setup.max_rounds,
        recall=setup.recall,
    )
