"""The log of the hooks: one line for each thing done or failed, without likely keys, never an error."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from ctxgc.agents.settings import HookSettings
from ctxgc.errors import StoreError
from ctxgc.stores.files import append_log

LOG_NAME = "hook.log"
MOST_BYTES = 262_144
MOST_TEXT = 2_000


def note(settings: HookSettings, event: str, text: str) -> None:
    """Write down what a hook did; if that cannot be written, it is not."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = " ".join(f"{moment} {settings.agent} {event}: {text}"[:MOST_TEXT].split())
    with suppress(StoreError, OSError, ValueError):
        data = f"{line}\n".encode("utf-8", "backslashreplace")
        append_log(Path(settings.folder) / LOG_NAME, data, MOST_BYTES)


def note_failure(settings: HookSettings, event: str, error: BaseException) -> None:
    """Write down why a hook could not do its work; what it says may quote the agent, so keys are masked."""
    said = f"{type(error).__name__}: {error}"[:MOST_TEXT]
    try:
        from ctxgc.core.secrets import mask_secrets  # noqa: PLC0415 (only a failure needs it)

        said = mask_secrets(said)
    except Exception:  # noqa: BLE001 (a broken installation must not show in the agent)
        said = type(error).__name__
    note(settings, event, f"FAILED {said}")
