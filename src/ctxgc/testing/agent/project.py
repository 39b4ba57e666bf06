"""The invented project of the scripted agent: real Python files that it reads, edits and tests.

Each function has one possible fault. While its file has that fault, its test fails. The same `Chance`
makes the same project, in every process and with every version of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_VERBS = (
    "merge", "resolve", "expand", "settle", "collect", "reserve", "dispatch", "normalise", "rank",
    "allocate", "validate", "reconcile", "schedule", "fold", "route", "trim", "publish", "archive",
)  # fmt: skip
_NOUNS = (
    "shipment", "invoice", "parcel", "voucher", "carrier", "ledger", "quota", "tariff", "batch",
    "window", "depot", "rebate", "manifest", "pallet", "surcharge", "courier", "waybill", "refund",
)  # fmt: skip
_QUALITIES = (
    "pending", "overdue", "partial", "nightly", "regional", "priority", "stale", "inbound", "bonded",
    "returned", "split", "expired", "insured", "manual", "weekly", "shared",
)  # fmt: skip
PEOPLE = ("Mira", "Tomasz", "Ines", "Kofi", "Hanne", "Rafael", "Yuki", "Oksana")
PLACES = ("Rotterdam", "Gdynia", "Valencia", "Tampere", "Bristol", "Trieste", "Malmo", "Porto")
_PACKAGES = ("freightline", "stockroom", "tollgate", "parceldesk", "harbourmaster", "crossdock")


class Chance(Random):
    """Seeded random choices."""

    def hexes(self, count: int) -> str:
        """Return a string of `count` hexadecimal digits."""
        return "".join(self.choice("0123456789abcdef") for _ in range(count))

    def happens(self, share: float) -> bool:
        """Return True with this probability."""
        return self.random() < share

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """Return up to `count` of the values, in their own order."""
        chosen = sorted(self.sample(range(len(values)), min(count, len(values))))
        return [values[place] for place in chosen]

    def symbol(self) -> str:
        """Return a function name such as `merge_overdue_parcel`."""
        return f"{self.choice(_VERBS)}_{self.choice(_QUALITIES)}_{self.choice(_NOUNS)}"

    def constant(self) -> str:
        """Return a constant name such as `STALE_QUOTA_LIMIT`."""
        return f"{self.choice(_QUALITIES)}_{self.choice(_NOUNS)}_limit".upper()

    def ticket(self) -> str:
        """Return a ticket number such as `FRT-4711`."""
        return f"FRT-{self.randrange(1200, 9800)}"


class Function(NamedTuple):
    """A function: its correct text, the line that a fault replaces, and how its test shows that.

    The test asserts `trial == expected`; with the fault it gets `got`.
    """

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

    @property
    def test_text(self) -> str:
        """The test of the function."""
        return f"def test_{self.name}() -> None:\n    assert {self.trial} == {self.expected}\n"


def make_function(chance: Chance, name: str, constant: str) -> Function:
    """Return a function of a random kind under this name; `constant` is its module's."""
    return chance.choice(_KINDS)(chance, name, constant)


def _total(chance: Chance, name: str, constant: str) -> Function:
    noun, flag = chance.choice(_NOUNS), chance.choice(_QUALITIES)
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
    noun, other = chance.choice(_NOUNS), chance.choice(_QUALITIES)
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
    noun, flag = chance.choice(_NOUNS), chance.choice(_QUALITIES)
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
    noun, flag = chance.choice(_NOUNS), chance.choice(_QUALITIES)
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
    noun, flag = chance.choice(_NOUNS), chance.choice(_QUALITIES)
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
    noun, flag = chance.choice(_NOUNS), chance.choice(_QUALITIES)
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


_Kind = Callable[[Chance, str, str], Function]
_KINDS: tuple[_Kind, ...] = (_total, _lookup, _windows, _parse, _retry, _group)


class Module(NamedTuple):
    """A source file and its test file: their paths, the functions, and the name of its constant."""

    path: str
    tests: str
    constant: str
    functions: list[Function]


class Project:
    """The files of one project by path, as they are now, and its commits, newest first."""

    def __init__(self, chance: Chance, modules: int) -> None:
        self.chance = chance
        self.package = chance.choice(_PACKAGES)
        self.root = f"/home/dev/{self.package}"
        self.files: dict[str, str] = {}
        self.modules = [self._module(noun) for noun in chance.some(_NOUNS, modules)]
        self.commits = [(chance.hexes(8), f"Import {self.package} {n}.0") for n in (3, 2, 1)]
        self.files[f"{self.root}/README.md"] = self._readme()
        self.files[f"{self.root}/settings.toml"] = self._settings()

    @property
    def head(self) -> str:
        """The name of the newest commit."""
        return self.commits[0][0]

    def functions(self) -> list[tuple[Module, Function]]:
        """Return all functions, each with its module."""
        return [(module, function) for module in self.modules for function in module.functions]

    def break_function(self, module: Module, function: Function) -> None:
        """Write the fault of a function into its file."""
        text = self.files[module.path]
        self.files[module.path] = text.replace(function.text, function.faulty_text)

    def commit(self, title: str) -> str:
        """Add a commit and return its name."""
        sha = self.chance.hexes(8)
        self.commits.insert(0, (sha, title))
        return sha

    def is_broken(self, module: Module, function: Function) -> bool:
        """Return whether the file has the fault now."""
        return function.faulty_text in self.files[module.path]

    def failing(self, tests: str | None = None) -> list[tuple[Module, Function]]:
        """Return the functions whose tests fail now, of one test file or of all."""
        return [
            (module, function)
            for module, function in self.functions()
            if tests in (None, module.tests) and self.is_broken(module, function)
        ]

    def short(self, path: str) -> str:
        """Return a path relative to the project's root."""
        return path.removeprefix(f"{self.root}/")

    def line_of(self, path: str, part: str) -> int:
        """Return the line number at which a part of a file begins."""
        return self.files[path][: self.files[path].index(part)].count("\n") + 1

    def fault_line(self, module: Module, function: Function) -> int:
        """Return the line number of the fault in a broken function."""
        before = function.faulty_text[: function.faulty_text.index(function.wrong)]
        return self.line_of(module.path, function.faulty_text) + before.count("\n")

    def _module(self, noun: str) -> Module:
        chance = self.chance
        path = f"{self.root}/src/{self.package}/{noun}s.py"
        tests = f"{self.root}/tests/test_{noun}s.py"
        constant = chance.constant()
        names = sorted({chance.symbol() for _ in range(chance.randrange(6, 12))})
        module = Module(path, tests, constant, [make_function(chance, n, constant) for n in names])
        self.files[path] = self._module_text(noun, module)
        self.files[tests] = self._tests_text(noun, module)
        return module

    def _module_text(self, noun: str, module: Module) -> str:
        chance = self.chance
        head = (
            f'"""Everything about {noun}s: kept by {chance.choice(PEOPLE)}, '
            f'used in {chance.choice(PLACES)}."""\n'
            "\nfrom __future__ import annotations\n\nimport logging\n"
            "from collections.abc import Callable, Iterable\n\n"
            f"from {self.package}.records import Record, State\n\n"
            f'log = logging.getLogger("{self.package}.{noun}s")\n\n'
            f"{module.constant} = {chance.randrange(1000, 9999)}\n"
        )
        return head + "".join(f"\n\n{function.text}" for function in module.functions)

    def _tests_text(self, noun: str, module: Module) -> str:
        names = ", ".join(function.name for function in module.functions)
        head = (
            f'"""Tests of {noun}s."""\n\nfrom {self.package}.{noun}s import {names}\n'
            f"from tests.records import TABLE, refuse\n"
        )
        return head + "".join(f"\n\n{function.test_text}" for function in module.functions)

    def _readme(self) -> str:
        rows = "\n".join(
            f"- `{self.short(module.path)}` holds {len(module.functions)} functions;"
            f" the limit is `{module.constant}`"
            for module in self.modules
        )
        return f"# {self.package}\n\nFreight, from the gate to the depot.\n\n{rows}\n"

    def _settings(self) -> str:
        lines = [
            f'[{m.constant.lower()}]\nhost = "10.4.{n}.17"\n' for n, m in enumerate(self.modules)
        ]
        return "".join(f"{line}port = {self.chance.randrange(4000, 9000)}\n\n" for line in lines)
