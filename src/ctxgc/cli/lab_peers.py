"""`ctxgc lab peers`: the libraries that the lab measures, and their environments."""

from __future__ import annotations

import click


@click.group()
def peers() -> None:
    """Install and list the other libraries that `ctxgc lab run` can play.

    Each gets an environment of its own under out/peers, or under $CTXGC_LAB_PEERS. None of them is a
    dependency of ctxgc.
    """


@peers.command()
@click.argument("packages", nargs=-1)
def install(packages: tuple[str, ...]) -> None:
    """Make the environments of PACKAGES, or of all; one that fails does not stop the others."""
    from ctxgc.lab.peers.catalog import PACKAGES  # noqa: PLC0415 - help must be there at once
    from ctxgc.lab.peers.environments import install_all  # noqa: PLC0415

    unknown = [name for name in packages if name not in PACKAGES]
    if unknown:
        raise click.UsageError(f"unknown: {', '.join(unknown)}; known: {', '.join(PACKAGES)}")
    if install_all(packages, lambda line: click.echo(line, nl=False)):
        raise click.exceptions.Exit(1)


@peers.command("list")
def list_peers() -> None:
    """Show each peer: its name as a policy, its package, whether it is installed, and how it is used."""
    from ctxgc.lab.peers.catalog import PEERS  # noqa: PLC0415
    from ctxgc.lab.peers.environments import is_ready  # noqa: PLC0415

    width = max(len(name) for name in PEERS)
    for peer in PEERS.values():
        state = "ready" if is_ready(peer.package) else "not installed"
        click.echo(f"{peer.name:{width}}  {peer.package.requirement} ({state}): {peer.note}")
