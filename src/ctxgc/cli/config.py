"""`ctxgc config`: the configuration shown, checked and described."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from ctxgc.cli.effective import Setting, effective, plugin_problem
from ctxgc.cli.report import (
    BAD_USAGE,
    FOUND_PROBLEMS,
    output_options,
    paint,
    write_json,
    write_table,
)
from ctxgc.config import (
    Explanation,
    config_schema,
    environment_warnings,
    explain_file,
    find_gc_file,
)


@click.group()
def config() -> None:
    """Show, check and describe the configuration.

    Code wins over environment variables, these over the file `.ctxgc/gc.json` (or `.jaato/gc.json`),
    that over defaults.
    """


@config.command()
def schema() -> None:
    """Print the JSON Schema of a configuration file.

    Editors complete and check a file that names it: ctxgc config schema > .ctxgc/schema.json
    """
    write_json(config_schema())


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@output_options
@click.pass_context
def check(ctx: click.Context, file: Path | None, as_json: bool, quiet: bool) -> None:
    """Explain FILE, else the file that is in force here: each key, its value, where it comes from.

    Exit codes: 0 the file can be used, 1 it has mistakes, 2 there is no file.
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
    """Show the configuration that a session started here would have, with the source of each value.

    Exit codes: 0 it can be used, 1 something in it is wrong.
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


def _as_data(found: Explanation, problems: list[str]) -> dict[str, Any]:
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


def _write_explanation(found: Explanation, problems: list[str]) -> None:
    for problem in problems:
        click.echo(f"{paint('mistake:', 'red')} {found.path}: {problem}")
    _write_warnings(found.warnings)
    if problems:
        return
    click.echo(f"{paint('ok:', 'green')} {found.path} ({found.shape}) uses {found.plugin}")
    _write_settings([Setting(k.key, k.value, k.origin, k.meaning) for k in found.keys])


def _write_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        click.echo(f"{paint('warning:', 'yellow')} {warning}")


def _write_settings(settings: list[Setting]) -> None:
    write_table([(s.key, s.shown, s.source, s.meaning) for s in settings])
