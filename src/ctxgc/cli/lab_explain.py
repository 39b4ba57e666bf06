"""`ctxgc lab explain`: one decision of one run: what left, why, what it saved and cost, what was missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from ctxgc.cli.lab_options import check_set, write_titled
from ctxgc.cli.output import output_options, usage_errors, write_json, write_text
from ctxgc.drawing import Column, Entry, Line
from ctxgc.lab import Departure, Money, RequestExplanation, State

_EPILOG = """\b
Examples:
  ctxgc lab explain demo-06 34 --regime window:50%
  ctxgc lab explain RUN 12 --data DIR --set claude_code --policy ctxgc-lean
  ctxgc lab explain demo-06 34 --json

Exit codes: 0 done, 1 no such run or request, 2 usage error.
"""


@click.command(
    short_help="Show one decision: what left, why, what it saved and cost, what was missed.",
    context_settings={"show_default": True},
    epilog=_EPILOG,
)
@click.argument("run")
@click.argument("step", type=click.IntRange(min=1))
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    help="A file of runs, a transcript, or a folder of them; by default the corpus of ctxgc.",
)
@click.option("--set", "set_name", default="", help="Read only this file from the folder.")
@click.option("--policy", "policy_name", default="ctxgc", help="One of our own policies.")
@click.option("--regime", "regime_name", default="cost", help="cost, window:50% or window:40000.")
@click.option("--sheet", "sheet_name", default="anthropic-5m", help="The price sheet.")
@click.option(
    "--all", "show_all", is_flag=True, help="List everything that left, not only the largest."
)
@output_options
def explain(
    *,
    run: str,
    step: int,
    data: Path | None,
    set_name: str,
    policy_name: str,
    regime_name: str,
    sheet_name: str,
    show_all: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Replay RUN with a policy of ours and show what it decided at its request number STEP.

    RUN is the id of a run, or an unambiguous part of it. The whole run is replayed, so for each thing
    that left it shows which later request needed it, and whether it was still in the view, named,
    behind a handle, or lost.
    """
    import msgspec  # noqa: PLC0415 - keeps help quick

    from ctxgc.lab import (  # noqa: PLC0415
        Experiment,
        find_run,
        parse_regime,
        policy,
    )
    from ctxgc.lab import explain as explained  # noqa: PLC0415
    from ctxgc.session import price_sheet  # noqa: PLC0415

    check_set(data, set_name)
    with usage_errors():
        chosen, regime = policy(policy_name), parse_regime(regime_name)
        sheet = price_sheet(sheet_name)
    runs = Experiment(policies=(), data=data, set_name=set_name, least_tokens=0).runs()
    found = explained(chosen, find_run(run, runs), step, regime, sheet)
    if as_json:
        write_json(msgspec.to_builtins(found))
    elif not quiet:
        draw(found, most=None if show_all else 20)


# -- Output


_MISSED_SHOWN = 12
_STYLES: dict[State, str] = {
    "resident": "safe",
    "named": "warning",
    "recallable": "danger",
    "lost": "critical",
}


def draw(found: RequestExplanation, most: int | None) -> None:
    """Write an explanation to stdout; of what left, only the `most` largest."""
    write_text(_headline(found), indent="")
    if not found.departures:
        write_text(_nothing(found), indent="")
        return
    for line in _why(found):
        write_text(line, indent="")
    largest = sorted(found.departures, key=lambda each: (each.left - each.tokens, each.index))
    _write_departures(largest[:most])
    if most is not None and len(largest) > most:
        freed = sum(each.tokens - each.left for each in largest[most:])
        click.echo(f"  … and {len(largest) - most:,} more, {freed:,} tokens (--all lists them)")
    for line in (*_balance(found.money), *_missed(found.departures)):
        write_text(line, indent="  " if line.startswith("  ") else "")


def _headline(found: RequestExplanation) -> str:
    return (
        f"{found.run}, request {found.request} of {found.requests} ({found.messages} messages so far): "
        f"{found.policy}, {found.regime} (limit {found.limit:,}), {found.sheet}"
    )


def _nothing(found: RequestExplanation) -> str:
    if not found.others:
        return "Nothing left the view at this request, or at any other."
    numbers = ", ".join(map(str, found.others[:20]))
    return f"Nothing left the view at this request. Something did at: {numbers}"


def _why(found: RequestExplanation) -> Iterator[str]:
    for each in found.collections:
        short = f", {each.shortfall:,} above its target" if each.shortfall else ""
        outcome = f"refused: {each.error}" if each.error else f"{each.tokens_after:,} tokens{short}"
        yield f"collection ({each.trigger}): {each.tokens_before:,} -> {outcome}"
        if each.certificate is not None:
            yield from (f"  {line}" for line in each.certificate.described())


_COLUMNS = (
    Column("message", right=True),
    Column("what", least=20, keep="end"),
    Column("tokens", right=True),
    Column("left", right=True),
    Column("why", least=20, keep="all"),
    Column("needed later", least=12),
    Column("lines quoted", right=True),
)


def _write_departures(departures: list[Departure]) -> None:
    rows: list[list[Entry]] = [
        [str(each.index), _what(each), f"{each.tokens:,}", f"{each.left:,}", each.reason,
         _needed(each), _quoted(each)]
        for each in departures
    ]  # fmt: skip
    write_titled("", _COLUMNS, rows)


def _what(each: Departure) -> str:
    who = {"tool": "result of", "assistant": "call of"}.get(each.role, each.role)
    if not each.tool:
        return f"{each.role}: {each.target[:46]}"
    return f"{who} {each.tool} {_end(each.target)}"


def _end(target: str) -> str:
    """Return the end of a path or command, which says more than its beginning."""
    return target if len(target) <= 42 else f"...{target[-39:]}"


def _needed(each: Departure) -> Line:
    states = Counter(use.state for use in each.uses)
    if not states:
        return [("-", "faint")]
    return [(f"{states[s]} {s} ", style) for s, style in _STYLES.items() if states[s]]


def _quoted(each: Departure) -> str:
    return f"{each.lines_kept} of {each.lines} kept" if each.lines else "-"


def _balance(money: Money) -> Iterator[str]:
    yield f"saved: {money.removed:,} tokens in this and each of the {money.requests_left} requests after it"
    if money.is_cold:
        yield "cost:  none, the cache had expired and everything was written anyway"
    else:
        yield f"cost:  {money.rewritten:,} cached tokens written again"
    payback = "never" if money.payback is None else f"after {money.payback} requests"
    if money.price <= 0:
        payback = "at once"
    yield (
        f"money, in uncached input tokens: {money.price:+,.0f} now, {-money.saving:+,.0f} with each later "
        f"request; paid back {payback}; saved in the end {money.net:+,.0f}"
    )


def _missed(departures: list[Departure]) -> Iterator[str]:
    missed = sorted(
        {(use.request, use.fact, use.state) for each in departures for use in each.uses
         if use.state != "resident"}
    )  # fmt: skip
    if not missed:
        yield "missed later: nothing"
        return
    yield f"missed later ({len(missed)}):"
    for request, fact, state in missed[:_MISSED_SHOWN]:
        yield f"  request {request}: {fact} ({state})"
    if len(missed) > _MISSED_SHOWN:
        yield f"  and {len(missed) - _MISSED_SHOWN} more: --json lists them"
