"""Which stash an installed agent recalls from, wherever it runs."""

from __future__ import annotations

from pathlib import Path

from ctxgc.agents.commands import Commands
from ctxgc.agents.places import Places, Scope
from ctxgc.agents.receipt import read_receipt


def stash_of(agent: str, project: Path) -> str | None:
    """Return the address of the store that the MCP server of an agent serves.

    An installation in the project goes before the user's own; None when there is neither.

    Raises:
        ConfigError: the receipt of the installation is damaged.
    """
    scopes: tuple[Scope, ...] = ("project", "user")
    for scope in scopes:
        home = Places(scope, project).home
        receipt = read_receipt(home, agent)
        if receipt is not None:
            return Commands(agent, home, receipt.store).store_url
    return None


def anchored(url: str) -> str:
    """Return the address of a store with the path of its file made absolute: agents run in many folders."""
    scheme, _, rest = url.partition(":")
    path = rest.removeprefix("//")
    if scheme not in ("json", "sqlite") or not path:
        return url
    return f"{scheme}:{Path(path).expanduser().absolute()}"
