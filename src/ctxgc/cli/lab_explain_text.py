"""An explanation as a terminal shows it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxgc.lab.explanation import Departure, Explanation, Money
from ctxgc.lab.residency import State

PIPED_WIDTH = 150
MISSED_SHOWN = 12
_STYLES: dict[State, str] = {
    "resident": "green",
    "named": "yellow",
    "recallable": "dark_orange",
    "lost": "red",
}


def draw(found: Explanation, most: int | None) -> None:
    """Write an explanation to stdout; of what left, only the `most` largest."""
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
    console.print(Text(_headline(found)), soft_wrap=True)
    if not found.departures:
        console.print(Text(_nothing(found)), soft_wrap=True)
        return
    for line in _why(found):
        console.print(Text(line), soft_wrap=True)
    largest = sorted(found.departures, key=lambda each: (each.left - each.tokens, each.index))
    console.print(_table(largest[:most]))
    if most is not None and len(largest) > most:
        freed = sum(each.tokens - each.left for each in largest[most:])
        console.print(f"  and {len(largest) - most} more, {freed:,} tokens: --all lists them")
    for line in (*_books(found.money), *_missed(found.departures)):
        console.print(Text(line), soft_wrap=True)


def _headline(found: Explanation) -> str:
    return (
        f"{found.run}, request {found.request} of {found.requests} ({found.messages} messages so far): "
        f"{found.policy}, {found.regime} (limit {found.limit:,}), {found.sheet}"
    )


def _nothing(found: Explanation) -> str:
    if not found.others:
        return "Nothing left the view, at this request or at any other."
    numbers = ", ".join(map(str, found.others[:20]))
    return f"Nothing left the view at this request. Something did at: {numbers}"


def _why(found: Explanation) -> Iterator[str]:
    for each in found.collections:
        short = f", {each.shortfall:,} above its target" if each.shortfall else ""
        outcome = f"refused: {each.error}" if each.error else f"{each.tokens_after:,} tokens{short}"
        yield f"collection ({each.trigger}): {each.tokens_before:,} -> {outcome}"


def _table(departures: list[Departure]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("message", "what", "tokens", "left", "why", "needed later", "lines quoted"):
        right = name in ("message", "tokens", "left", "lines quoted")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "why",
                         overflow="ellipsis")  # fmt: skip
    for each in departures:
        table.add_row(
            str(each.index), Text(_what(each)), f"{each.tokens:,}", f"{each.left:,}",
            Text(each.reason), _needed(each), _quoted(each),
        )  # fmt: skip
    return table


def _what(each: Departure) -> str:
    who = {"tool": "result of", "assistant": "call of"}.get(each.role, each.role)
    if not each.tool:
        return f"{each.role}: {each.target[:46]}"
    return f"{who} {each.tool} {_end(each.target)}"


def _end(target: str) -> str:
    """Return the end of a path or command, which tells more than its beginning."""
    return target if len(target) <= 42 else f"...{target[-39:]}"


def _needed(each: Departure) -> Text:
    states = Counter(use.state for use in each.uses)
    if not states:
        return Text("-", style="dim")
    parts = [(f"{states[s]} {s} ", style) for s, style in _STYLES.items() if states[s]]
    return Text.assemble(*parts)


def _quoted(each: Departure) -> str:
    return f"{each.lines_kept} of {each.lines} kept" if each.lines else "-"


def _books(money: Money) -> Iterator[str]:
    yield f"won:  {money.removed:,} tokens fewer in this and in the {money.requests_left} requests after it"
    if money.is_cold:
        yield "cost: nothing was cached any more, so that all was written anyway"
    else:
        yield f"cost: {money.rewritten:,} tokens written again that were cached before"
    payback = "never" if money.payback is None else f"after {money.payback} requests"
    if money.price <= 0:
        payback = "at once"
    yield (
        f"money, in plain input tokens: {money.price:+,.0f} now, {-money.saving:+,.0f} with each later "
        f"request; paid back {payback}; won in the end {money.net:+,.0f}"
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
    for request, fact, state in missed[:MISSED_SHOWN]:
        yield f"  request {request}: {fact} ({state})"
    if len(missed) > MISSED_SHOWN:
        yield f"  and {len(missed) - MISSED_SHOWN} more: --json lists them"
