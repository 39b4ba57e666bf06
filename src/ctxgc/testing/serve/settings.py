"""The options of a strict server, and the faults planned for its next requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from ctxgc.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request; a field that is not set does nothing.

    `status` refuses it, `delay` makes it wait (seconds), `cut_after` ends its stream after that
    many events without the closing ones.
    """

    status: int | None = None
    message: str | None = None
    retry_after: float | None = None
    delay: float = 0.0
    cut_after: int | None = None


class FaultQueue:
    """Planned faults, one for each of the next requests."""

    def __init__(self) -> None:
        self._faults: deque[Fault] = deque()
        self._lock = threading.Lock()

    def add(self, fault: Fault, times: int = 1) -> None:
        """Plan this fault for `times` requests, after those already planned."""
        with self._lock:
            self._faults.extend([fault] * times)

    def take(self) -> Fault | None:
        """Return the fault of the request that just arrived, or None."""
        with self._lock:
            return self._faults.popleft() if self._faults else None


_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits and options of one strict server.

    Attributes:
        context_limit: Tokens that a prompt may have; None for no limit.
        count_output: Whether the output that a request reserves counts against the limit too.
        max_body_bytes: Largest request body; Anthropic's own limit is 32 MB.
        require_key: Whether a request without a key is refused; any key will do.
        validate: Whether histories are checked at all.
        bind_thinking: Whether a thinking block is bound to the conversation before it; None goes by the
            name of the model, and binds one that it does not know.
        accept_foreign_thinking: Whether thinking that another server signed is accepted.
        min_cache_tokens: Shortest prefix that the prompt cache keeps.
        models: The names that `GET /v1/models` lists; requests may name any model.
        extra_fields: Top-level fields to accept beyond those that the provider documents.
    """

    context_limit: int | None = 200_000
    count_output: bool = True
    max_body_bytes: int = 32 * _MEGABYTE
    require_key: bool = True
    validate: bool = True
    bind_thinking: bool | None = None
    accept_foreign_thinking: bool = False
    min_cache_tokens: int = 1024
    models: tuple[str, ...] = ("scripted-model",)
    extra_fields: tuple[str, ...] = ()


def make_settings(options: Mapping[str, Any]) -> Settings:
    """Return the settings with these fields; an unknown one is an error that names the nearest."""
    known = [field.name for field in fields(Settings)]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1, 0.0)[0]
            raise ConfigError(
                f"{name}: unknown setting of the strict server",
                hint=f"did you mean `{near}`?",
                field=name,
            )
    return Settings(**options)
