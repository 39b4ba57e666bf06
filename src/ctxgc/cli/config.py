"""`ctxgc config`: show, check and describe the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import click

from ctxgc.cli.output import (
    BAD_USAGE,
    FOUND_PROBLEMS,
    output_options,
    paint,
    write_json,
    write_ok,
    write_table,
)
from ctxgc.config import (
    DEFAULT_PLUGIN,
    ConfigReport,
    GCConfig,
    GCSpec,
    SessionSettings,
    config_schema,
    environment_warnings,
    explain_file,
    find_gc_file,
    origins,
    parse_spec,
    read_gc_file,
    shown,
    sift_file,
    variables_in_use,
)
from ctxgc.drawing import Column
from ctxgc.errors import CtxgcError
from ctxgc.session import DEFAULT_PRICES, default_url, load_gc_plugin

# -- The effective configuration


_MEANINGS = {
    "plugin": "The strategy.",
    "store": "The store of sessions and their stash.",
    "context_limit": "The size of the model's window in tokens.",
    "prices": "The price sheet for decisions.",
}


class Setting(NamedTuple):
    """One value: its key, where it comes from, and what it means."""

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
    """Return the settings of a session that uses this file and the environment.

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
        load_gc_plugin(found.spec.plugin, found.config.plugin_config)
    except CtxgcError as error:
        return [str(error)]
    return []


def _around(spec: GCSpec, path: Path | None) -> list[Setting]:
    said = SessionSettings.from_env()
    variables = variables_in_use(SessionSettings)
    fallback = {
        "plugin": spec.plugin if path is not None else DEFAULT_PLUGIN,
        "store": default_url(),
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


@click.group()
def config() -> None:
    """Show, check and describe the configuration.

    Precedence: code, environment variables, the file `.ctxgc/gc.json` (or `.jaato/gc.json`), defaults.
    """


@config.command()
def schema() -> None:
    """Print the JSON Schema of a configuration file.

    Editors use it to complete and check a file: ctxgc config schema > .ctxgc/schema.json
    """
    write_json(config_schema())


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@output_options
@click.pass_context
def check(ctx: click.Context, file: Path | None, as_json: bool, quiet: bool) -> None:
    """Check FILE, by default the one in effect here, and list each key with its value and source.

    Exit codes: 0 valid, 1 it has mistakes, 2 there is no file.
    """
    path = file or find_gc_file()
    if path is None or not path.is_file():
        _write_warnings(environment_warnings())
        named = str(path) if path is not None else ".ctxgc/gc.json or .jaato/gc.json"
        click.echo(
            f"{paint('error:', 'red')} there is no {named} (next: ctxgc config show)", err=True
        )
        ctx.exit(BAD_USAGE)
    found = explain_file(path)
    problems = [*found.problems, *plugin_problem(path)]
    if as_json:
        write_json(_as_data(found, problems))
    elif not quiet:
        _write_explanation(found, problems)
    ctx.exit(FOUND_PROBLEMS if problems else 0)


@config.command()
@output_options
def show(as_json: bool, quiet: bool) -> None:
    """Show the configuration of a session started here, with the source of each value.

    Exit codes: 0 valid, 1 it has mistakes.
    """
    path = find_gc_file()
    settings, warnings = effective(path), environment_warnings()
    if as_json:
        write_json(
            {
                "file": str(path) if path else None,
                "warnings": list(warnings),
                "settings": [s.to_dict() for s in settings],
            }
        )
    elif not quiet:
        _write_warnings(warnings)
        click.echo(f"file: {path or 'none'}")
        _write_settings(settings)


def _as_data(found: ConfigReport, problems: list[str]) -> dict[str, Any]:
    return {
        "path": found.path,
        "ok": not problems,
        "plugin": found.plugin,
        "shape": found.shape,
        "problems": problems,
        "warnings": list(found.warnings),
        "settings": [
            {"key": k.key, "value": k.value, "source": k.origin, "meaning": k.meaning}
            for k in found.keys
        ],
    }


def _write_explanation(found: ConfigReport, problems: list[str]) -> None:
    for problem in problems:
        click.echo(f"{paint('mistake:', 'red')} {found.path}: {problem}")
    _write_warnings(found.warnings)
    if problems:
        return
    write_ok(f"{found.path} ({found.shape}) uses {found.plugin}")
    _write_settings([Setting(k.key, k.value, k.origin, k.meaning) for k in found.keys])


def _write_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        click.echo(f"{paint('warning:', 'yellow')} {warning}")


def _write_settings(settings: list[Setting]) -> None:
    columns = (
        Column("key"),
        Column("value", right=False, least=10),
        Column("from", least=8),
        Column("meaning", least=24, keep="all"),
    )
    write_table(columns, [(s.key, s.shown, s.source, s.meaning) for s in settings])
