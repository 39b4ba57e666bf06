"""All mistakes of a configuration file at once, where reading it stops at the first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config.environment import variables_in_use
from ctxgc.config.files import GCSpec, parse_spec, read_object
from ctxgc.config.gc_config import GCConfig
from ctxgc.errors import ConfigError


class Sifted(msgspec.Struct, frozen=True, kw_only=True):
    """The mistakes of a file and of the variables over it, and what both say without them.

    `spec` and `config` are None where nothing is left that could be used.
    """

    problems: tuple[str, ...] = ()
    spec: GCSpec | None = None
    config: GCConfig | None = None


def sift_file(path: str | Path, env: Mapping[str, str] | None = None) -> Sifted:
    """Return every mistake of a file and the environment, with what they say beside; never raises."""
    try:
        data = read_object(path)
    except ConfigError as error:
        return Sifted(problems=(_said(error, path),))
    return _Sieve(data, dict(os.environ if env is None else env), str(path)).sift()


class _Sieve:
    """Checks again and again, each time without what the last mistake was about."""

    def __init__(self, data: dict[str, Any], env: dict[str, str], origin: str) -> None:
        self._data, self._env, self._origin = data, env, origin
        self._doubtful: set[str] = set()
        self._problems: list[str] = []

    def sift(self) -> Sifted:
        while True:
            try:
                spec = parse_spec(self._data, origin=self._origin)
                config = spec.config(self._env)
            except ConfigError as error:
                self._note(error)
                if not self._take_out(error.details):
                    return Sifted(problems=tuple(self._problems))
            else:
                return Sifted(problems=tuple(self._problems), spec=spec, config=config)

    def _note(self, error: ConfigError) -> None:
        # Against a value that is a default only because the real one was wrong, nothing can be said.
        if self._doubtful.isdisjoint(error.details.get("keys", ())):
            self._problems.append(_said(error, self._origin))

    def _take_out(self, named: Mapping[str, Any]) -> bool:
        """Take out what a mistake is about; tell whether anything was there."""
        keys: list[str] = named.get("keys") or [named.get("key", "")]
        self._doubtful.update(keys, [named.get("nearest") or ""])
        if "variable" in named:
            return self._env.pop(named["variable"], None) is not None
        dropped = [self._drop(key) for key in keys]
        return any(dropped)

    def _drop(self, key: str) -> bool:
        inner = self._data.get("config")
        for place in (self._data, inner if isinstance(inner, dict) else {}):
            if key in place:
                del place[key]
                return True
        variable = variables_in_use(GCConfig, self._env).get(key)
        return variable is not None and self._env.pop(variable, None) is not None


def _said(error: ConfigError, path: str | Path) -> str:
    """Return the words of an error without the path, which stands beside all of them."""
    return str(error).removeprefix(f"{path}").removeprefix(":").lstrip()
