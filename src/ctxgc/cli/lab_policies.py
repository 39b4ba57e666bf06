"""`ctxgc lab policies`: what the lab can play, with version and settings."""

from __future__ import annotations

import click

from ctxgc.cli.report import output_options, write_json, write_table


@click.command()
@output_options
def policies(as_json: bool, quiet: bool) -> None:
    """List the policies that --policy takes: ours, peers, rules stated again, oracles, base lines."""
    from ctxgc.lab.policies import POLICIES, policy  # noqa: PLC0415 - help must be there at once

    found = [policy(name) for name in POLICIES]
    if as_json:
        names = ("name", "kind", "version", "settings")
        write_json([{name: getattr(each, name) for name in names} for each in found])
    elif not quiet:
        rows = [[p.name, p.kind, p.version, _said(p.settings)] for p in found]
        write_table([["policy", "kind", "version", "settings"], *rows])


def _said(settings: dict[str, object]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in settings.items())
