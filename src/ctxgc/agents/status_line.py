"""The status line: how full the context is, as the agent reports it or by its transcript."""

from __future__ import annotations

from typing import Any

from ctxgc.agents.checkpoints import save_if_due
from ctxgc.agents.events import HookSettings, log_failure
from ctxgc.agents.transcript import last_usage

Json = dict[str, Any]

DEFAULT_LIMIT = 200_000
ZONES = ((95.0, "critical", 31), (85.0, "danger", 31), (70.0, "warning", 33), (0.0, "safe", 32))
"""Lower limit in percent, name, colour. A test compares them with the defaults of the guard."""

_CELLS = 10


def status_line(settings: HookSettings, said: Json) -> str:
    """Return one line: zone, a bar, tokens, and the share of the window; make a checkpoint if one is due."""
    limit = _limit(said)
    used = _used(said)
    if used is None:
        return "ctxgc"
    percent = 100 * used / limit
    try:
        save_if_due(settings, said, percent)
    except Exception as error:  # noqa: BLE001 (the line is shown whatever happens)
        log_failure(settings, "checkpoint", error)
    name, colour = next((name, colour) for start, name, colour in ZONES if percent >= start)
    full = min(_CELLS, round(percent / 100 * _CELLS))
    bar = f"{'█' * full}{'░' * (_CELLS - full)}"
    return f"ctxgc \x1b[{colour}m{bar} {name}\x1b[0m {_short(used)}/{_short(limit)} {percent:.0f}%"


def _window(said: Json) -> Json:
    window = said.get("context_window")
    return window if isinstance(window, dict) else {}


def _limit(said: Json) -> int:
    size = _window(said).get("context_window_size")
    return size if isinstance(size, int) and size > 0 else DEFAULT_LIMIT


def _used(said: Json) -> int | None:
    """Return the tokens in use; None before the first answer."""
    window = _window(said)
    usage = window.get("current_usage")
    if isinstance(usage, dict):
        return _sum(usage)
    found = last_usage(said.get("transcript_path"))
    return _sum(found) if found else None


def _sum(usage: Json) -> int:
    keys = (
        "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens",
    )  # fmt: skip
    found = (usage.get(key) for key in keys)
    return sum(value for value in found if isinstance(value, int) and value > 0)


def _short(tokens: int) -> str:
    return f"{tokens / 1_000:.0f}k" if tokens >= 1_000 else str(tokens)
