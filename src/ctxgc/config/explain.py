"""What a configuration file means: its JSON Schema, and an explanation of one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config.environment import environment_values, unknown_variables, variables_in_use
from ctxgc.config.files import DEFAULT_PLUGIN, GCSpec
from ctxgc.config.gc_config import DEFAULTS, GCConfig
from ctxgc.config.mistakes import sift_file
from ctxgc.config.order import leaders
from ctxgc.config.settings import SessionSettings


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key: its value, safe to show, where that comes from, and what it means."""

    key: str
    value: Any
    origin: str
    meaning: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
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


def explain_file(path: str | Path, env: Mapping[str, str] | None = None) -> Explanation:
    """Return what the file and the environment set, or all that is wrong with them; never raises."""
    warnings = environment_warnings(env)
    found = sift_file(path, env)
    if found.problems or found.spec is None or found.config is None:
        return Explanation(path=str(path), problems=found.problems, warnings=warnings)
    return Explanation(
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
    """Return a sentence for each variable that looks like one of ours and sets nothing."""
    strange = unknown_variables((GCConfig, SessionSettings), env)
    return tuple(
        f"{name} sets nothing" + (f"; did you mean {guess}?" if guess else "")
        for name, guess in strange.items()
    )
