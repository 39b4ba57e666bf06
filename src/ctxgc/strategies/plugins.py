"""Plugins: the built-in strategies by name, and those of other packages through their entry points.

Other packages register theirs under `ctxgc.plugins`; S3's group `jaato.gc_plugins` is read as well.
An entry point is other people's code: nothing is imported before it is asked for, and an allow list
(`CTXGC_PLUGINS_ALLOW`, plugin or package names separated by commas) keeps out all but those named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config import (
    GCConfig,
    GCSpec,
    find_gc_file,
    located,
    parse_inline,
    read_gc_file,
    unknown_key,
)
from ctxgc.errors import ConfigError, CtxgcError, PluginError
from ctxgc.strategies.base import GCPlugin
from ctxgc.strategies.budget import BudgetStrategy
from ctxgc.strategies.builtin import BuiltinStrategy
from ctxgc.strategies.hybrid import HybridStrategy
from ctxgc.strategies.mark_sweep import MarkSweepStrategy
from ctxgc.strategies.none import NoneStrategy
from ctxgc.strategies.summarize import SummarizeStrategy
from ctxgc.strategies.truncate import TruncateStrategy

_GROUPS: tuple[str, ...] = ("ctxgc.plugins", "jaato.gc_plugins")
BUILT_IN: Mapping[str, type[BuiltinStrategy]] = {
    strategy.name: strategy
    for strategy in (
        MarkSweepStrategy,
        BudgetStrategy,
        HybridStrategy,
        SummarizeStrategy,
        TruncateStrategy,
        NoneStrategy,
    )
}
_ALLOW_VARIABLE = "CTXGC_PLUGINS_ALLOW"
_NEEDED = ("name", "initialize", "shutdown", "should_collect", "collect")


class PluginFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A registered plugin that cannot be used, the package it comes from, and why."""

    name: str
    package: str
    error: str


class PluginTable(dict[str, Callable[[], GCPlugin]]):
    """Plugin names and their factories; `failures` lists what is registered but unusable."""

    failures: tuple[PluginFailure, ...] = ()


def discover_gc_plugins(allow: Iterable[str] | None = None) -> PluginTable:
    """Return every plugin that is installed and allowed; a broken one is listed, not raised."""
    table = PluginTable(BUILT_IN)
    failures: list[PluginFailure] = []
    owners = dict.fromkeys(BUILT_IN, "ctxgc")
    for entry in _ranked(_allowed(allow)):
        try:
            _claim(entry, owners)
            table[entry.name] = _load(entry)
        except PluginError as error:
            failure = PluginFailure(name=entry.name, package=_package(entry), error=error.message)
            failures.append(failure)
    table.failures = tuple(failures)
    return table


def load_gc_plugin(
    name: str, config: Mapping[str, Any] | None = None, *, allow: Iterable[str] | None = None
) -> GCPlugin:
    """Return the named plugin, initialized with `config`. The prefix `gc_` may be left out.

    Raises:
        ConfigError: no such plugin is installed, or it is not on the allow list.
        PluginError: it cannot be imported, made or initialized.
    """
    built_in = _built_in(name)
    if built_in is not None:
        strategy = built_in()
        strategy.initialize(dict(config or {}))
        return strategy
    entry = _find(name, _allowed(allow))
    plugin = _make(entry)
    try:
        plugin.initialize(dict(config or {}))
    except CtxgcError:
        raise
    except Exception as error:
        raise _broken(entry, "cannot be initialized", error) from error
    return plugin


def load_gc_from_file(
    path: str | Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[GCPlugin, GCConfig] | None:
    """Return the plugin and the configuration of a file, or None if there is no file.

    Without a path that is `.ctxgc/gc.json`, else `.jaato/gc.json`, of the working directory.

    Raises:
        ConfigError: the file or a variable over it is wrong.
        PluginError: the plugin cannot be made.
    """
    found = find_gc_file() if path is None else Path(path)
    if found is None or not found.exists():
        return None
    return gc_from_spec(read_gc_file(found), env)


def gc_from_spec(spec: GCSpec, env: Mapping[str, str] | None = None) -> tuple[GCPlugin, GCConfig]:
    """Return the plugin and the configuration of a file's or a profile's spec."""
    config = spec.config(env)
    try:
        return load_gc_plugin(spec.plugin, config.plugin_config), config
    except ConfigError as error:
        raise located(error, spec.origin) from None


def gc_from_inline(inline: Mapping[str, Any]) -> tuple[GCPlugin, GCConfig] | None:
    """Return what `inline["gc"]` asks for, or None; being code, it wins over the environment."""
    spec = parse_inline(inline)
    if spec is None:
        return None
    config = GCConfig(**spec.values)
    return load_gc_plugin(spec.plugin, config.plugin_config), config


def _allowed(allow: Iterable[str] | None) -> set[str] | None:
    if allow is not None:
        return set(allow)
    listed = os.environ.get(_ALLOW_VARIABLE, "")
    return {name.strip() for name in listed.split(",") if name.strip()} or None


def _ranked(allowed: set[str] | None) -> list[EntryPoint]:
    entries = {
        (entry.name, entry.value): entry for group in _GROUPS for entry in entry_points(group=group)
    }
    usable = [entry for entry in entries.values() if _is_allowed(entry, allowed)]
    return sorted(usable, key=lambda entry: (entry.name, entry.value))


def _is_allowed(entry: EntryPoint, allowed: set[str] | None) -> bool:
    return allowed is None or bool({entry.name, _package(entry)} & allowed)


def _package(entry: EntryPoint) -> str:
    return entry.value.partition(":")[0] if entry.dist is None else entry.dist.name


def _claim(entry: EntryPoint, owners: dict[str, str]) -> None:
    # A name stays with its first owner even if that one is broken: no other plugin takes its place.
    if entry.name in owners:
        raise PluginError(f'"{entry.name}" is taken by {owners[entry.name]}')
    owners[entry.name] = _package(entry)


def _built_in(name: str) -> type[BuiltinStrategy] | None:
    if not isinstance(name, str):
        raise ConfigError(f"the plugin's name is {name!r}", hint="name one as a string")
    return BUILT_IN.get(name) or BUILT_IN.get(f"gc_{name}")


def _find(name: str, allowed: set[str] | None) -> EntryPoint:
    found = {entry.name: entry for entry in reversed(_ranked(allowed))}
    entry = found.get(name) or found.get(f"gc_{name}")
    if entry is not None:
        return entry
    installed = {entry.name for entry in _ranked(None)}
    if {name, f"gc_{name}"} & installed:
        raise ConfigError(
            f'GC plugin "{name}" is not on the allow list', hint=f"add it to {_ALLOW_VARIABLE}"
        )
    raise unknown_key(name, {*BUILT_IN, *found}, "GC plugin")


def _load(entry: EntryPoint) -> Callable[[], GCPlugin]:
    try:
        factory = entry.load()
    except Exception as error:
        raise _broken(entry, "cannot be imported", error) from error
    if not callable(factory):
        raise PluginError(f'GC plugin "{entry.name}" ({entry.value}) is not callable')
    return factory  # type: ignore[no-any-return]  # what it returns is checked when it is made


def _make(entry: EntryPoint) -> GCPlugin:
    factory = _load(entry)
    try:
        plugin = factory()
    except Exception as error:
        raise _broken(entry, "cannot be made", error) from error
    missing = [name for name in _NEEDED if not hasattr(plugin, name)]
    if missing:
        raise PluginError(
            f'GC plugin "{entry.name}" lacks {", ".join(missing)}',
            hint=f"{entry.value} has to return a GCPlugin",
        )
    return plugin


def _broken(entry: EntryPoint, what: str, error: Exception) -> PluginError:
    said = f"{type(error).__name__}: {error}"
    return PluginError(
        f'GC plugin "{entry.name}" {what}: {said}', hint=f"it comes from {_package(entry)}"
    )
