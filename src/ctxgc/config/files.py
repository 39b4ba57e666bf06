"""Configuration files, in both shapes that the seeds write.

S2: `{"plugin": "gc_budget", "config": {"target_percent": 60}}`
S3: `{"type": "hybrid", "threshold_percent": 80, "plugin_config": {}}`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ctxgc.config.environment import environment_values, place_of
from ctxgc.config.gc_config import FrozenDict, GCConfig
from ctxgc.config.keys import located, reject_unknown
from ctxgc.errors import ConfigError

DEFAULT_PLUGIN = "gc_mark_sweep"
FOLDERS: tuple[str, ...] = (".ctxgc", ".jaato")
_PLUGIN_OPTIONS = ("summarizer",)


class GCSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What one file, profile or inline dictionary says: a plugin and the keys that it sets."""

    plugin: str
    values: Mapping[str, Any]
    shape: Literal["flat", "nested"]
    origin: str

    def config(self, env: Mapping[str, str] | None = None, **code: Any) -> GCConfig:
        """Return these values under those of the environment, and both under those in code.

        Raises:
            ConfigError: a value is wrong; it names the file or the variable that sets it.
        """
        try:
            return GCConfig.from_dict({**self.values, **environment_values(GCConfig, env), **code})
        except ConfigError as error:
            place = place_of(error, GCConfig, env, code=code, file=self.values, origin=self.origin)
            raise located(error, place) from None


NO_FILE = GCSpec(plugin=DEFAULT_PLUGIN, values=FrozenDict(), shape="flat", origin="")
"""What is said where there is no file: nothing."""


def load_config(
    path: str | Path | None = None, env: Mapping[str, str] | None = None, **code: Any
) -> GCConfig:
    """Return the configuration from every place: code over environment over file over default.

    Without a path the file is searched as `find_gc_file` does, and may be missing.

    Raises:
        ConfigError: something in one of the places is wrong, or the named file does not exist.
    """
    found = find_gc_file() if path is None else Path(path)
    spec = NO_FILE if found is None else read_gc_file(found)
    return spec.config(env, **code)


def find_gc_file(root: str | Path | None = None) -> Path | None:
    """Return `.ctxgc/gc.json`, else `.jaato/gc.json`, under `root` (else here), if it exists."""
    base = Path.cwd() if root is None else Path(root)
    candidates = (base / folder / "gc.json" for folder in FOLDERS)
    return next((path for path in candidates if path.exists()), None)


def read_gc_file(path: str | Path) -> GCSpec:
    """Return what the file says, unknown keys and wrong shapes refused."""
    return parse_spec(read_object(path), origin=str(path))


def read_object(path: str | Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ConfigError: the file cannot be read, is not JSON, or holds something else.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        return msgspec.json.decode(text, type=dict[str, Any])
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path} cannot be read: {why}", hint="check path and rights") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"{path} holds no JSON object: {error}", hint="correct it") from None


def parse_spec(
    data: Mapping[str, Any], *, origin: str, default_plugin: str = DEFAULT_PLUGIN
) -> GCSpec:
    """Return the spec in `data`, whichever of the two shapes it has.

    Raises:
        ConfigError: a key is unknown, is at the wrong level, or has a wrong value; it names the origin.
    """
    try:
        return _parsed(data, origin, default_plugin)
    except ConfigError as error:
        raise located(error, origin) from None


def _parsed(data: Mapping[str, Any], origin: str, default_plugin: str) -> GCSpec:
    data = {key: value for key, value in data.items() if key != "$schema"}
    nested = "plugin" in data or "config" in data
    if nested and "type" in data:
        other = "plugin" if "plugin" in data else "config"
        raise ConfigError(
            f'"type" and "{other}" belong to different shapes',
            hint='use {"plugin", "config"} or a flat object with "type"',
            keys=["type", other],
        )
    values = _nested_values(data) if nested else _flat_values(data)
    plugin = data.get("plugin" if nested else "type", default_plugin)
    if not isinstance(plugin, str) or not plugin.strip():
        raise ConfigError(
            f"the plugin's name is {plugin!r}",
            hint="name one as a string",
            key="plugin" if nested else "type",
        )
    _check(values)
    shape: Literal["flat", "nested"] = "nested" if nested else "flat"
    return GCSpec(plugin=plugin, values=FrozenDict(values), shape=shape, origin=origin)


def _flat_values(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "type"}


def _nested_values(data: Mapping[str, Any]) -> dict[str, Any]:
    for key in data:
        if key in GCConfig.__struct_fields__:
            raise ConfigError(f'"{key}" is at the wrong level', hint='put it in "config"', key=key)
    reject_unknown(data, ("plugin", "config"))
    values = data.get("config", {})
    if not isinstance(values, dict):
        raise ConfigError('"config" is not an object', hint="write an object of keys", key="config")
    return values


def _check(values: Mapping[str, Any]) -> None:
    for key in values:
        if key in _PLUGIN_OPTIONS:
            raise ConfigError(
                f'"{key}" is a plugin option', hint='put it in "plugin_config"', key=key
            )
    GCConfig.from_dict(values)
