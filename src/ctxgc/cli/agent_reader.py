"""Who opens the handles of a session that a command writes: its agent, where that has our server."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ctxgc.agents import MCP_RECALL_TOOL, PLUGIN_RECALL_TOOL, absolute_url, stash_url_of
from ctxgc.errors import ConfigError
from ctxgc.session import RECALL_CALL, recall_template, retold

_KNOWN = (recall_template(MCP_RECALL_TOOL), recall_template(PLUGIN_RECALL_TOOL), RECALL_CALL)


class AgentReader(NamedTuple):
    """The tool with which the reader of a session recalls a handle; None if there is no way to."""

    tool: str | None = None
    warning: str = ""
    advice: str = ""

    @property
    def call(self) -> str | None:
        """The call that tombstones name, with `{handle}` in it."""
        return None if self.tool is None else recall_template(self.tool)

    def retold(self, text: str) -> str:
        """Return a text with the call of this reader in our notes, whoever they were written for."""
        strange = (call for call in _KNOWN if call != self.call)
        return retold(text, strange, self.call) if "[ctxgc" in text else text


def reader_of(agent: str, url: str) -> AgentReader:
    """Return how an agent recalls from a store: with our server, if that has the same store."""
    try:
        serves = stash_url_of(agent, Path.cwd())
    except ConfigError as error:
        return AgentReader(warning=f"whether {agent} can recall is not known: {error}")
    if serves is None:
        advice = (
            f"{agent} has no server of ctxgc, so tombstones name no handle: `ctxgc install {agent}` "
            "first, and the model gets back what it needs"
        )
        return AgentReader(advice=advice)
    if absolute_url(serves) != absolute_url(url):
        warning = f"{agent} recalls from another store (next: add --store {serves})"
        return AgentReader(warning=warning)
    return AgentReader(MCP_RECALL_TOOL)
