"""`ctxgc prune`: the garbage of an agent's session file, shown, and taken out on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ctxgc.agents.settings import RECALL_TOOL
from ctxgc.cli.prune_output import Output, in_place, save, write_proposal
from ctxgc.cli.prune_store import stash_for, warn_of_another_stash
from ctxgc.cli.report import FOUND_PROBLEMS, output_options, words_of_call, write_json
from ctxgc.cli.session_argument import session_argument
from ctxgc.cli.stash_store import store_option
from ctxgc.config import GCConfig, SessionSettings
from ctxgc.insight.limits import limit_for
from ctxgc.plugins import load_gc_plugin
from ctxgc.pruning import PRESETS, Proposal, Target, configured, propose, store_name, written
from ctxgc.pruning.stillness import check_still
from ctxgc.session.stash import RECALL_CALL
from ctxgc.wire.transcripts.writing import Writable, open_writable

TIGHT_MESSAGES = 4
AGENTS_CALL = f'{RECALL_TOOL}(handle="{{handle}}")'
"""How the tool is called in an agent that `ctxgc install` gave the server."""
_EPILOG = """\b
Examples:
  ctxgc prune latest                           what would leave, and why
  ctxgc prune latest --preset tight            down to a quarter of what is there
  ctxgc prune latest --target 80k -o pruned/   write a copy that the agent can resume
  ctxgc prune 5f8cbb78 --in-place              change the file itself; ctxgc undo takes it back

Exit codes: 0 done, 1 an error, or the --target was missed, 2 a wrong call.
"""


@click.command(short_help="Collect the garbage of an agent's session file.", epilog=_EPILOG)
@session_argument
@click.option(
    "--target", metavar="TOKENS", help="Where to land: 80k, 120000, or 50% of the window."
)
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), default="balanced", show_default=True,
    help="Keep about 75%, 50% or 25% of what is there; tight also spares fewer recent messages.",
)  # fmt: skip
@click.option("--strategy", metavar="NAME", help="Another strategy than the configured one.")
@click.option(
    "--context-limit",
    type=click.IntRange(min=1),
    help="The window in tokens; else that of its model.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the pruned session here; a folder ends in /."
)
@click.option("--in-place", "replaces", is_flag=True, help="Change the file; the original is kept.")
@click.option("--force", is_flag=True, help="Write over FILE if it is there.")
@click.option("--all", "show_all", is_flag=True, help="List every segment that leaves.")
@store_option
@output_options
@click.pass_context
def prune(
    ctx: click.Context,
    /,
    *,
    session: Path,
    as_json: bool,
    quiet: bool,
    show_all: bool,
    **chosen: Any,
) -> None:
    """Show what a collection would take out of SESSION, and take it out with -o or --in-place.

    SESSION is a file, the beginning of a session id, or `latest`. Whatever leaves is stashed first,
    under the handle that its tombstone names: `ctxgc search`, `ctxgc show` and the tools of
    `ctxgc mcp` give it back. The result is a session file of the same kind, checked before it is
    written, which its agent can resume.
    """
    output = Output(chosen["output"], replaces=chosen["replaces"], force=chosen["force"])
    with words_of_call():
        output.check(session)
        target = _target(chosen)
        if chosen["strategy"] is not None:
            load_gc_plugin(chosen["strategy"])
    # A file that its agent is writing is refused before any work is done.
    seen = check_still(session) if output.replaces else None
    raw = session.read_bytes() if seen is not None else b""
    file = open_writable(session)
    proposal = _propose(file, session, target, chosen, dry=not output.writes)
    place = None
    if output.writes and proposal.revision:
        new_id = None if output.replaces else output.new_id(file)
        data = written(file, proposal, new_id)
        place = (
            in_place(session, raw, data, seen)
            if seen is not None
            else save(output, session, data, new_id)
        )
    if not quiet and proposal.rows:
        warn_of_another_stash(chosen["store_url"], proposal.kind)
    if as_json:
        write_json(_as_data(proposal, place))
    elif not quiet:
        write_proposal(proposal, place, show_all=show_all, wanted=output.writes)
    # A preset is a direction; only who names a target can be told that it was missed.
    ctx.exit(FOUND_PROBLEMS if proposal.shortfall and chosen["target"] is not None else 0)


def _target(chosen: dict[str, Any]) -> Target:
    named = chosen["target"]
    return Target.preset(chosen["preset"]) if named is None else Target.parse(named)


def _propose(
    file: Writable, path: Path, target: Target, chosen: dict[str, Any], *, dry: bool
) -> Proposal:
    limit = chosen["context_limit"] or SessionSettings.from_env().context_limit or _limit(file)
    name = store_name(file, path)
    with stash_for(chosen["store_url"], name, dry=dry) as store:
        return propose(
            file,
            store,
            name,
            target=target,
            context_limit=limit,
            plugin=chosen["strategy"],
            config=_config(chosen["preset"]),
            recall_call=RECALL_CALL if file.session_id is None else AGENTS_CALL,
        )


def _limit(file: Writable) -> int:
    """Return the window of the session's model, as `ctxgc analyze` takes it to be."""
    largest = max((usage.prompt for usage in file.usages), default=0)
    return limit_for(file.facts.model, file.facts.context_limit, largest)


def _config(preset: str) -> GCConfig:
    """The configuration in force here; who wants it tight needs fewer of the newest messages whole."""
    config = configured()
    if preset != "tight":
        return config
    return config.replace(recent_messages=min(TIGHT_MESSAGES, config.recent_messages))


def _as_data(proposal: Proposal, place: dict[str, Any] | None) -> dict[str, Any]:
    names = (
        "kind", "session_id", "messages", "left_alone", "tokens_before", "tokens_after", "beside",
        "target", "shortfall", "strategy", "requests_to_pay_back",
    )  # fmt: skip
    rows = [{name: getattr(row, name) for name in row.__struct_fields__} for row in proposal.rows]
    found = {name: getattr(proposal, name) for name in names}
    if place is None:  # handles are made when something is stashed
        rows = [{**row, "handle": None} for row in rows]
    return {**found, "written": place, "segments": rows}
