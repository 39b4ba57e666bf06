"""The configuration in force, value by value, with the place that each one comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ctxgc.config import (
    DEFAULT_PLUGIN,
    GCConfig,
    GCSpec,
    SessionSettings,
    config_schema,
    origins,
    parse_spec,
    read_gc_file,
    shown,
    sift_file,
)
from ctxgc.config.environment import variables_in_use
from ctxgc.errors import CtxgcError
from ctxgc.plugins import load_gc_plugin
from ctxgc.session.roomy import preset_of
from ctxgc.session.setup import DEFAULT_PRICES, DEFAULT_STORE

_MEANINGS = {
    "plugin": "The strategy.",
    "store": "Where sessions and their stash are kept.",
    "context_limit": "The size of the model's window in tokens.",
    "prices": "The price sheet that decisions are weighed with.",
}


class Setting(NamedTuple):
    """One value: what it is called, what it is, where it comes from, what it means."""

    key: str
    value: Any
    source: str
    meaning: str

    @property
    def shown(self) -> str:
        """The value as JSON writes it."""
        return json.dumps(self.value, ensure_ascii=False, default=str)

    def to_dict(self) -> dict[str, Any]:
        """Return the setting as JSON-ready data."""
        return self._asdict()


def effective(path: Path | None) -> list[Setting]:
    """Return what a session would be set up with by this file and the environment.

    Raises:
        ConfigError: the file or a variable is wrong.
    """
    spec = read_gc_file(path) if path is not None else parse_spec({}, origin="defaults")
    config = spec.config()
    return [*_around(spec, path), *_keys(spec, config)]


def plugin_problem(path: Path) -> list[str]:
    """Return what is wrong with the plugin that a file names, if anything is."""
    found = sift_file(path)
    if found.spec is None or found.config is None:
        return []
    try:
        preset_of(load_gc_plugin(found.spec.plugin, found.config.plugin_config))
    except CtxgcError as error:
        return [str(error)]
    return []


def _around(spec: GCSpec, path: Path | None) -> list[Setting]:
    said = SessionSettings.from_env()
    variables = variables_in_use(SessionSettings)
    fallback = {
        "plugin": spec.plugin if path is not None else DEFAULT_PLUGIN,
        "store": DEFAULT_STORE,
        "context_limit": None,
        "prices": DEFAULT_PRICES,
    }
    return [
        Setting(
            key,
            shown(getattr(said, key) or value, key),
            variables.get(key) or ("file" if key == "plugin" and path is not None else "default"),
            _MEANINGS[key],
        )
        for key, value in fallback.items()
    ]


def _keys(spec: GCSpec, config: GCConfig) -> list[Setting]:
    described = config_schema()["$defs"]["keys"]["properties"]
    source = origins(spec)
    return [
        Setting(key, value, source[key], described[key]["description"])
        for key, value in config.describe().items()
    ]
