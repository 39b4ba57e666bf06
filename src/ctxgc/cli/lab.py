"""`ctxgc lab`: replay recorded runs through pruning policies, without a model."""

from __future__ import annotations

import click

from ctxgc.cli.lab_explain import explain
from ctxgc.cli.lab_fit import ablate, fit
from ctxgc.cli.lab_judge import judge
from ctxgc.cli.lab_run import run
from ctxgc.cli.output import output_options, write_json, write_table
from ctxgc.drawing import Column

# -- peers


@click.group()
def peers() -> None:
    """Install and list the other libraries that `ctxgc lab run` can compare with.

    Each gets an environment of its own under out/peers, or under $CTXGC_LAB_PEERS. None of them is a
    dependency of ctxgc.
    """


@peers.command()
@click.argument("packages", nargs=-1)
def install(packages: tuple[str, ...]) -> None:
    """Create the environments of PACKAGES, or of all; if one fails, the others are still created."""
    from ctxgc.lab import PACKAGES, install_all  # noqa: PLC0415

    unknown = [name for name in packages if name not in PACKAGES]
    if unknown:
        raise click.UsageError(f"unknown: {', '.join(unknown)}; known: {', '.join(PACKAGES)}")
    if install_all(packages, lambda line: click.echo(line, nl=False)):
        raise click.exceptions.Exit(1)


@peers.command("list")
def list_peers() -> None:
    """List each peer: policy name, package, whether it is installed, and how it is used."""
    from ctxgc.lab import PEERS, is_ready  # noqa: PLC0415

    rows = [
        (
            peer.name,
            peer.package.requirement,
            "ready" if is_ready(peer.package) else "not installed",
            peer.note,
        )
        for peer in PEERS.values()
    ]
    write_table(("peer", "package", "state", Column("note", least=24, keep="all")), rows, indent="")


# -- policies


@click.command()
@output_options
def policies(as_json: bool, quiet: bool) -> None:
    """List the policies that --policy takes: ours, peers, re-implemented rules, oracles, baselines."""
    from ctxgc.lab import POLICIES, policy  # noqa: PLC0415

    found = [policy(name) for name in POLICIES]
    if as_json:
        names = ("name", "kind", "version", "settings")
        write_json([{name: getattr(each, name) for name in names} for each in found])
    elif not quiet:
        rows = [[p.name, p.kind, p.version, _said(p.settings)] for p in found]
        settings = Column("settings", right=False, least=24, keep="all")
        write_table(("policy", "kind", Column("version", right=False), settings), rows)


def _said(settings: dict[str, object]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in settings.items())


@click.group()
def lab() -> None:
    """Replay recorded agent runs through pruning policies, priced and judged without a model.

    What it measures is a proxy: whether what the agent used next was still in the view. It does not
    measure whether a task succeeds.
    """


for command in (run, judge, explain, fit, ablate, policies, peers):
    lab.add_command(command)
