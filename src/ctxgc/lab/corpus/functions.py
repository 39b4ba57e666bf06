"""Functions of the made-up project: real Python, each with one fault that it may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ctxgc.lab.corpus.words import NOUNS, QUALITIES, Chance


class Function(NamedTuple):
    """A function: its text when right, and the lines that a fault puts in place of right ones."""

    name: str
    text: str
    right: str
    wrong: str
    trial: str
    expected: str
    got: str

    @property
    def faulty_text(self) -> str:
        """The text with the fault."""
        return self.text.replace(self.right, self.wrong)


def make_function(chance: Chance, name: str, constant: str) -> Function:
    """Return a function of some kind, under this name."""
    return chance.choice(KINDS)(chance, name, constant)


def _total(chance: Chance, name: str, constant: str) -> Function:
    noun, flag = chance.choice(NOUNS), chance.choice(QUALITIES)
    right = f'        if entry["{flag}"] and entry["{noun}_weight"] < {constant}:\n'
    wrong = f'        if entry["{flag}"] and entry["{noun}_weight"] <= {constant}:\n'
    text = (
        f"def {name}(entries: list[dict[str, int]], floor: int = 0) -> int:\n"
        f'    """Return the {noun} weight of all {flag} entries above the floor."""\n'
        f"    {noun}_total = floor\n"
        f"    for entry in entries:\n"
        f'        if "{flag}" not in entry:\n'
        f'            raise KeyError("entry has no {flag} flag")\n'
        f"{right}"
        f'            {noun}_total += entry["{noun}_weight"]\n'
        f"    return max({noun}_total, floor)\n"
    )
    amount = chance.randrange(1000, 9000)
    return Function(
        name, text, right, wrong, f"{name}({noun}_entries())", str(amount), str(amount + 250)
    )


def _lookup(chance: Chance, name: str, constant: str) -> Function:
    noun, other = chance.choice(NOUNS), chance.choice(QUALITIES)
    right = f'    {noun}_key = f"{{region}}:{{code.strip().upper()}}"\n'
    wrong = f'    {noun}_key = f"{{region}}:{{code.upper()}}"\n'
    text = (
        f"def {name}(table: dict[str, int], region: str, code: str) -> int:\n"
        f'    """Return the {other} {noun} of a region, else the {other} default."""\n'
        f"{right}"
        f"    if {noun}_key in table:\n"
        f"        return table[{noun}_key]\n"
        f'    {other}_default = table.get(f"{{region}}:*")\n'
        f"    if {other}_default is None:\n"
        f'        raise LookupError(f"no {noun} for {{{noun}_key}}")\n'
        f"    return min({other}_default, {constant})\n"
    )
    region, value = (
        chance.choice(("NL-ZH", "PL-PM", "ES-VC", "FI-ES")),
        chance.randrange(1000, 9000),
    )
    return Function(
        name, text, right, wrong, f'{name}(TABLE, "{region}", " k{value % 97} ")', str(value),
        f"LookupError: no {noun} for {region}: K{value % 97} ",
    )  # fmt: skip


def _windows(chance: Chance, name: str, constant: str) -> Function:
    noun, flag = chance.choice(NOUNS), chance.choice(QUALITIES)
    right = f"        {flag}_end = min(start + step, finish)\n"
    wrong = f"        {flag}_end = start + step\n"
    text = (
        f"def {name}(start: int, finish: int, step: int = {constant}) -> list[tuple[int, int]]:\n"
        f'    """Cut the time from start to finish into {flag} {noun} windows."""\n'
        f"    {noun}_windows: list[tuple[int, int]] = []\n"
        f"    if step <= 0:\n"
        f'        raise ValueError("the step of a {noun} window is positive")\n'
        f"    while start < finish:\n"
        f"{right}"
        f"        {noun}_windows.append((start, {flag}_end))\n"
        f"        start = {flag}_end\n"
        f"    return {noun}_windows\n"
    )
    first = chance.randrange(1000, 4000)
    ends = first + 700, first + 900
    return Function(
        name, text, right, wrong, f"{name}({first}, {ends[1]}, 700)[-1]", f"({ends[0]}, {ends[1]})",
        f"({ends[0]}, {ends[0] + 700})",
    )  # fmt: skip


def _parse(chance: Chance, name: str, constant: str) -> Function:
    noun, flag = chance.choice(NOUNS), chance.choice(QUALITIES)
    right = f'    head, _, {flag}_part = line.partition("|")\n'
    wrong = f'    head, {flag}_part = line.split("|")\n'
    text = (
        f"def {name}(line: str, strict: bool = True) -> dict[str, str]:\n"
        f'    """Read one {noun} record: a number, a bar, and the {flag} part."""\n'
        f"{right}"
        f"    {noun}_number = head.strip()\n"
        f"    if strict and len({noun}_number) > {constant}:\n"
        f'        raise ValueError(f"{noun} number too long: {{{noun}_number[:20]}}")\n'
        f"    return {{\n"
        f'        "{noun}_number": {noun}_number,\n'
        f'        "{flag}_part": {flag}_part.strip(),\n'
        f"    }}\n"
    )
    number = f"{noun[:2].upper()}-{chance.randrange(10_000, 99_999)}"
    return Function(
        name, text, right, wrong, f'{name}("{number}")["{noun}_number"]', repr(number),
        "ValueError: not enough values to unpack (expected 2, got 1)",
    )  # fmt: skip


def _retry(chance: Chance, name: str, constant: str) -> Function:
    noun, flag = chance.choice(NOUNS), chance.choice(QUALITIES)
    right = f"            {flag}_delay = min({flag}_delay * 2, {constant})\n"
    wrong = f"            {flag}_delay = {flag}_delay * 2\n"
    text = (
        f"def {name}(send: Callable[[str], bool], {noun}_id: str, tries: int = 5) -> int:\n"
        f'    """Send a {flag} {noun} until it is taken; return the delay of the last try."""\n'
        f"    {flag}_delay = 125\n"
        f"    for attempt in range(tries):\n"
        f"        if send({noun}_id):\n"
        f"            return {flag}_delay\n"
        f"        if attempt + 1 < tries:\n"
        f"{right}"
        f'            log.warning("{noun} %s refused, waiting %d ms", {noun}_id, {flag}_delay)\n'
        f'    raise TimeoutError(f"{noun} {{{noun}_id}} was refused {{tries}} times")\n'
    )
    return Function(
        name, text, right, wrong, f'{name}(refuse(4), "{noun}-17")', constant, "2000",
    )  # fmt: skip


def _group(chance: Chance, name: str, constant: str) -> Function:
    noun, flag = chance.choice(NOUNS), chance.choice(QUALITIES)
    right = f"        {flag}_groups.setdefault({noun}.depot, []).append({noun})\n"
    wrong = f"        {flag}_groups[{noun}.depot] = [{noun}]\n"
    text = (
        f"def {name}({noun}s: Iterable[Record], most: int = {constant}) -> dict[str, list[Record]]:\n"
        f'    """Sort the {flag} {noun}s by depot, at most so many in each."""\n'
        f"    {flag}_groups: dict[str, list[Record]] = {{}}\n"
        f"    for {noun} in sorted({noun}s, key=lambda record: record.number):\n"
        f"        if {noun}.state == State.{flag.upper()} and not {noun}.depot:\n"
        f'            raise ValueError(f"{{{noun}.number}} has no depot")\n'
        f"{right}"
        f"    return {{depot: found[:most] for depot, found in {flag}_groups.items()}}\n"
    )
    return Function(
        name, text, right, wrong, f'len({name}({noun}_records())["RTM-{chance.randrange(1000, 9999)}"])',
        "7", "1",
    )  # fmt: skip


Kind = Callable[[Chance, str, str], Function]
KINDS: tuple[Kind, ...] = (_total, _lookup, _windows, _parse, _retry, _group)
