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
    seen = _seen(said)
    if seen is None:
        return "ctxgc"
    used, limit = seen
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


def _seen(said: Json) -> tuple[int, int] | None:
    """Return the tokens in use and the size of the window; None before the first answer."""
    window, path = _window(said), said.get("transcript_path")
    size = window.get("context_window_size")
    limit = size if isinstance(size, int) and size > 0 else None
    usage = window.get("current_usage")
    if isinstance(usage, dict):
        return _sum(usage), limit or DEFAULT_LIMIT
    return _recorded(str(path), limit) if last_usage(path) else None


def _recorded(path: str, limit: int | None) -> tuple[int, int] | None:
    """Return what the transcript shows, for agents that do not report it: as all other doors do."""
    from pathlib import Path  # noqa: PLC0415 (0.1 s that a report of the agent spares)

    from ctxgc.errors import CtxgcError  # noqa: PLC0415
    from ctxgc.insight import SessionFollower  # noqa: PLC0415

    follower = SessionFollower(Path(path), limit)
    try:
        follower.look()
        fill = follower.fill()
    except CtxgcError:
        return None
    return fill.tokens, fill.limit


def _sum(usage: Json) -> int:
    keys = (
        "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens",
    )  # fmt: skip
    found = (usage.get(key) for key in keys)
    return sum(value for value in found if isinstance(value, int) and value > 0)


def _short(tokens: int) -> str:
    return f"{tokens / 1_000:.0f}k" if tokens >= 1_000 else str(tokens)
