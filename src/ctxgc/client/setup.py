"""The set-up of a conversation: all that it takes to open one, so that a subagent can inherit it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.client.conversation import Conversation
from ctxgc.client.provider import Provider
from ctxgc.client.tool import Tool
from ctxgc.client.toolbox import Toolbox
from ctxgc.config import unknown_key
from ctxgc.errors import InputError
from ctxgc.session import Session

_SESSION_OPTIONS = tuple(
    name for name in inspect.signature(Session).parameters if name not in ("model", "recall_call")
)


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """A model, its tools and instructions, and the options of its session."""

    provider: Provider
    tools: tuple[Tool, ...]
    session: Mapping[str, Any]
    system: str | None
    recall: bool
    max_rounds: int
    tool_workers: int
    owns_sdk: bool = True
    depth: int = 0

    def __post_init__(self) -> None:
        for name in ("max_rounds", "tool_workers"):
            if getattr(self, name) < 1:
                value = getattr(self, name)
                raise InputError(f"{name} is {value}", hint="pass 1 or more", field=name)
        for name in self.session:
            if name not in _SESSION_OPTIONS:
                raise unknown_key(name, _SESSION_OPTIONS, "option of a session")

    @property
    def owns_store(self) -> bool:
        """Whether the session opens its store itself, and so has to close it."""
        return isinstance(self.session.get("store"), str | None)

    def close(self, session: Session) -> None:
        """Close what was opened; a store or an SDK that was handed in stays open."""
        if self.owns_store:
            session.close()
        else:
            session.flush()
        if self.owns_sdk:
            self.provider.close()


def open_conversation(setup: Setup) -> Conversation:
    """Return a conversation with a session of its own, new or continued."""
    toolbox = Toolbox(setup.tools, workers=setup.tool_workers)
    without_recall = {} if setup.recall else {"recall_call": None}
    session = Session(model=setup.provider.model, **{**setup.session, **without_recall})
    try:
        return Conversation(
            session,
            setup.provider,
            toolbox,
            system=setup.system,
            max_rounds=setup.max_rounds,
            recall=setup.recall,
        )
    except InputError:
        setup.close(session)
        raise
