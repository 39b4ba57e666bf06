"""`ctxgc wrap`: a program with a proxy of its own, and what that saved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ctxgc.cli.serve import collecting_options, need_server
from ctxgc.errors import InputError


@click.command(
    context_settings={
        "show_default": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
)
@collecting_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def wrap(
    command: tuple[str, ...], named: tuple[str, ...], pass_through: bool, **chosen: Any
) -> None:
    """Run COMMAND with its base URLs set to a proxy, and say in the end what was saved.

    \b
    ctxgc wrap -- claude
    ctxgc wrap --observe -- codex exec "fix the build"

    Where the environment names base URLs already, the proxy sends requests there.
    """  # noqa: D301
    need_server()
    from ctxgc.proxy import ProxyOptions, ProxyServer, upstreams, upstreams_of  # noqa: PLC0415

    addresses = upstreams(named, upstreams_of(os.environ))
    options = ProxyOptions(port=0, upstreams=addresses, collect=not pass_through, **chosen)
    with ProxyServer(options) as proxy:
        code = _run(command, proxy.url)
        if not pass_through:
            click.echo(f"ctxgc: {proxy.metrics.summary()}", err=True)
    sys.exit(code)


def _run(command: Sequence[str], url: str) -> int:
    """Run a program to its end and return its exit code; Ctrl-C is its own affair."""
    set_here = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}
    words = list(command)
    if Path(words[0]).name == "codex":
        # Codex takes its own base URL from its configuration only.
        words[1:1] = ["-c", f'openai_base_url="{url}/v1"']
    try:
        program = subprocess.Popen(words, env={**os.environ, **set_here})  # noqa: S603 - what the user asked for
    except OSError as error:
        raise InputError(
            f"{words[0]} cannot be run: {error.strerror}",
            hint="name a program after --",
            field="command",
        ) from None
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = program.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code
