"""Explain a configuration file: its JSON Schema, all its mistakes at once, and each key with its origin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config.environment import (
    SessionSettings,
    environment_values,
    unknown_variables,
    variables_in_use,
)
from ctxgc.config.files import DEFAULT_PLUGIN, GCSpec, parse_spec, read_object
from ctxgc.config.gc_config import DEFAULTS, GCConfig, leaders
from ctxgc.errors import ConfigError

# -- All mistakes of a file at once


class Sifted(msgspec.Struct, frozen=True, kw_only=True):
    """The mistakes in a file and in the variables over it, and what both say without them.

    `spec` and `config` are None if nothing usable is left.
    """

    problems: tuple[str, ...] = ()
    spec: GCSpec | None = None
    config: GCConfig | None = None


def sift_file(path: str | Path, env: Mapping[str, str] | None = None) -> Sifted:
    """Return every mistake in a file and the environment, and what remains without them; never raises."""
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
        # A value that is a default only because the real one was wrong cannot contradict another.
        if self._doubtful.isdisjoint(error.details.get("keys", ())):
            self._problems.append(_said(error, self._origin))

    def _take_out(self, named: Mapping[str, Any]) -> bool:
        """Remove what a mistake is about; return whether anything was there."""
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
    """Return the text of an error without the path, which is shown once for all of them."""
    return str(error).removeprefix(f"{path}").removeprefix(":").lstrip()


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key: its value, safe to show, where that comes from, and what it means."""

    key: str
    value: Any
    origin: str
    meaning: str


class ConfigReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `ctxgc config check` shows. A file with problems has no keys."""

    path: str
    plugin: str | None = None
    shape: str | None = None
    keys: tuple[ExplainedKey, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file can be used as it is."""
        return not self.problems


def explain_file(path: str | Path, env: Mapping[str, str] | None = None) -> ConfigReport:
    """Return what the file and the environment set, or all that is wrong with them; never raises."""
    warnings = environment_warnings(env)
    found = sift_file(path, env)
    if found.problems or found.spec is None or found.config is None:
        return ConfigReport(path=str(path), problems=found.problems, warnings=warnings)
    return ConfigReport(
        path=str(path),
        plugin=found.spec.plugin,
        shape=found.spec.shape,
        keys=_keys(found.spec, found.config, env),
        warnings=warnings,
    )


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a configuration file, both shapes."""
    keys = msgspec.json.schema(GCConfig)["$defs"]["GCConfig"]["properties"]
    for key, schema in keys.items():
        schema.setdefault("default", GCConfig.from_dict({}).to_dict()[key])
    name = {"type": "string", "minLength": 1, "default": DEFAULT_PLUGIN}
    link = {"$schema": {"type": "string"}}
    config = {"type": "object", "properties": keys, "additionalProperties": False}
    nested = {"plugin": name, "config": {"$ref": "#/$defs/keys"}, **link}
    flat = {"type": name, **{key: {"$ref": f"#/$defs/keys/properties/{key}"} for key in keys}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ctxgc configuration (.ctxgc/gc.json)",
        "$defs": {"keys": config},
        "anyOf": [
            _closed(nested, "plugin and config (S2)"),
            _closed({**flat, **link}, "flat (S3)"),
        ],
    }


def _closed(properties: dict[str, Any], title: str) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def origins(spec: GCSpec, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return, for each key, the place that its value comes from, or the key that it follows."""
    file = dict.fromkeys(spec.values, "file")
    variables = variables_in_use(GCConfig, env)
    led = leaders({**spec.values, **environment_values(GCConfig, env)}, DEFAULTS)
    follows = {key: f"follows {leader}" for key, leader in led.items()}
    return {**dict.fromkeys(DEFAULTS, "default"), **follows, **file, **variables}


def _keys(
    spec: GCSpec, config: GCConfig, env: Mapping[str, str] | None
) -> tuple[ExplainedKey, ...]:
    schema = config_schema()["$defs"]["keys"]["properties"]
    origin = origins(spec, env)
    return tuple(
        ExplainedKey(key=key, value=value, origin=origin[key], meaning=schema[key]["description"])
        for key, value in config.describe().items()
    )


def environment_warnings(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return a sentence for each variable that looks like a ctxgc variable but sets nothing."""
    strange = unknown_variables((GCConfig, SessionSettings), env)
    return tuple(
        f"{name} sets nothing" + (f"; did you mean {guess}?" if guess else "")
        for name, guess in strange.items()
    )
