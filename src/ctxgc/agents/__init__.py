"""Coding agents: what is put into their configuration, and what answers when they call.

The hooks have little time, so this page imports nothing; `ctxgc.agents.install` and the others are
loaded when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the constant of typing, which takes as long to load as the interpreter
if TYPE_CHECKING:
    from typing import Any

    from ctxgc.agents.change import Change
    from ctxgc.agents.checking import Finding, check
    from ctxgc.agents.installing import install, uninstall
    from ctxgc.agents.plugin_folder import write_plugin_folder

__all__ = [
    "Change",
    "Finding",
    "check",
    "install",
    "stash_that_goes",
    "uninstall",
    "write_plugin_folder",
]

_HOME_OF = {
    "Change": "ctxgc.agents.change",
    "Finding": "ctxgc.agents.checking",
    "check": "ctxgc.agents.checking",
    "install": "ctxgc.agents.installing",
    "stash_that_goes": "ctxgc.agents.installing",
    "uninstall": "ctxgc.agents.installing",
    "write_plugin_folder": "ctxgc.agents.plugin_folder",
}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ctxgc.agents' has no attribute '{name}'")
    import importlib  # noqa: PLC0415 (a hook that has nothing to do needs nothing)

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
