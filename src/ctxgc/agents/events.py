"""The events that hooks answer: their settings, the function for each event, and the log."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

from ctxgc.places import agents_folder, store_in

# -- Settings


AGENTS = ("claude-code", "codex", "cursor", "vscode")
MCP_RECALL_TOOL = "mcp__ctxgc__context_recall"


class HookSettings(NamedTuple):
    """The options of a hook's command line."""

    agent: str = "claude-code"
    home: str = ""
    store: str = ""
    recall: str = MCP_RECALL_TOOL

    @property
    def folder(self) -> str:
        """The folder for logs, checkpoints and the stash."""
        return self.home or agents_folder()

    @property
    def store_url(self) -> str:
        """The address of the stash."""
        return self.store or store_in(self.folder)


def read_settings(words: Sequence[str]) -> HookSettings:
    """Return the settings that `--name value` pairs give; unknown ones are ignored."""
    found = {name[2:]: value for name, value in pairwise(words) if name.startswith("--")}
    return HookSettings(**{k: v for k, v in found.items() if k in HookSettings._fields})


Json = dict[str, Any]
Answer = Callable[[HookSettings, Json], Json | str | None]

EVENTS = {
    "post-tool-use": "ctxgc.agents.big_output:post_tool_use",
    "pre-compact": "ctxgc.agents.compaction:pre_compact",
    "session-start": "ctxgc.agents.compaction:session_start",
    "status-line": "ctxgc.agents.status_line:status_line",
}


def answer(event: str, settings: HookSettings, raw: bytes) -> bytes:
    """Return the answer to an event: JSON, a line of text, or nothing.

    Raises:
        InputError: there is no such event, or the agent did not send an object.
    """
    if event not in EVENTS:
        from ctxgc.errors import InputError  # noqa: PLC0415 (rarely needed, and hooks must be quick)

        raise InputError(f"there is no event {event[:40]!r}", hint=", ".join(EVENTS), field="event")
    said = json.loads(raw)
    if not isinstance(said, dict):
        raise InputError(
            f"{event} got {type(said).__name__}, not an object", hint="send a JSON object"
        )
    _note_session(event, settings, said)
    module, _, name = EVENTS[event].partition(":")
    function: Answer = getattr(importlib.import_module(module), name)
    found = function(settings, said)
    if isinstance(found, str):
        return f"{found}\n".encode("utf-8", "replace")
    return json.dumps(found).encode() if found is not None else b""


def _note_session(event: str, settings: HookSettings, said: Json) -> None:
    from ctxgc.agents.running import note_session  # noqa: PLC0415 (it needs the settings of this file)

    try:
        note_session(settings, said)
    except Exception as error:  # noqa: BLE001 (the event is answered whatever happens)
        log_failure(settings, event, error)


# -- The log


LOG_NAME = "hook.log"
MOST_BYTES = 262_144
MOST_TEXT = 2_000


def log_event(settings: HookSettings, event: str, text: str) -> None:
    """Log what a hook did, if the log can be written."""
    from pathlib import Path  # noqa: PLC0415 (the status line logs nothing)

    from ctxgc.errors import StoreError  # noqa: PLC0415
    from ctxgc.files import append_log  # noqa: PLC0415

    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = " ".join(f"{moment} {settings.agent} {event}: {text}"[:MOST_TEXT].split())
    with suppress(StoreError, OSError, ValueError):
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        append_log(Path(settings.folder) / LOG_NAME, data, MOST_BYTES)


def log_failure(settings: HookSettings, event: str, error: BaseException) -> None:
    """Log why a hook failed; the error may quote the agent, so likely keys are masked."""
    said = f"{type(error).__name__}: {error}"[:MOST_TEXT]
    try:
        from ctxgc.session import mask_secrets  # noqa: PLC0415

        said = mask_secrets(said)
    except Exception:  # noqa: BLE001 (a broken installation must not show in the agent)
        said = type(error).__name__
    log_event(settings, event, f"FAILED {said}")
