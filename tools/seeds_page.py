"""Write docs/development/seeds.md: each part of each seed, the code that does it, the tests that prove it.

python -m tools.seeds_page            write the page
python -m tools.seeds_page --check    exit 1 when the page on disk is not current
python -m tools.seeds_page --missing  list the live entries that no test proves yet
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import groupby

from tests.requirements import REQUIREMENTS
from tests.seeds import DOORS, SEEDS, Requirement
from tests.seeds.faults import FAULTS
from tools.requirement_scan import ROOT, Claim, scan

PAGE = ROOT / "docs" / "development" / "seeds.md"

INTRODUCTION = """\
<!-- made by `python -m tools.seeds_page`; edit tests/seeds/ or the tests instead -->
# What the seeds ask for, and where it is

The project started from five documents, the seeds S0 to S4. Each named part and default of theirs
is one row here: whether it works as the seed writes it, or differs and why, by door where the doors differ;
the code that does it, and the tests that prove it. The [last section](#faults-of-the-seeds) lists what a seed
writes that cannot be right, and what ours does instead. Every code block of the seeds runs with our names in
[`examples/seeds/`](../../examples/seeds). A part of a later issue is *deferred* to that issue by
name. The entries are in [`tests/seeds/`](../../tests/seeds), and a test claims one with
`@requirement(id)`. `make test` fails when an entry of a delivered issue has no test or no code, when a
test names no entry, when an entry of a later issue is already tested, and when this page is not
current. Decisions are in [decisions](../decisions/README.md).
"""


def claims_by_id() -> dict[str, list[Claim]]:
    """Return the claims of the test files under the id that they name."""
    found = scan()
    return {name: list(group) for name, group in groupby(found, key=lambda c: c.requirement)}


def missing(claims: dict[str, list[Claim]]) -> list[Requirement]:
    """Return the live entries that no test proves."""
    return [r for r in REQUIREMENTS.values() if r.deferred is None and r.id not in claims]


def render(claims: dict[str, list[Claim]]) -> str:
    """Return the whole page."""
    parts = [INTRODUCTION, *_totals(claims)]
    for seed, entries in groupby(REQUIREMENTS.values(), key=lambda r: r.seed):
        parts.append(f"\n## {seed}: {SEEDS[seed]}")
        for title, rows in groupby(entries, key=lambda r: r.section):
            parts.extend(_table(title, list(rows), claims))
    parts.extend(_faults(claims))
    return "\n".join(parts) + "\n"


def _totals(claims: dict[str, list[Claim]]) -> Iterator[str]:
    yield "| seed | entries | proven | deferred |"
    yield "|---|---:|---:|---:|"
    for seed, title in SEEDS.items():
        mine = [r for r in REQUIREMENTS.values() if r.seed == seed]
        proven = sum(r.id in claims for r in mine)
        deferred = sum(r.deferred is not None and r.id not in claims for r in mine)
        yield f"| {seed} {title} | {len(mine)} | {proven} | {deferred} |"


def _table(title: str, rows: list[Requirement], claims: dict[str, list[Claim]]) -> Iterator[str]:
    yield f"\n### {title}\n"
    yield "| part | says | works, or differs and why | code | tests |"
    yield "|---|---|---|---|---|"
    for row in rows:
        mine = claims.get(row.id, [])
        proof = _tests(mine) or (f"*deferred: {row.deferred}*" if row.deferred else "")
        yield f"| `{row.id}` | {row.says} | {_how(row)} | {_code(row)} | {proof} |"


def _how(row: Requirement) -> str:
    """Say that it works, or how it differs; then, by door, how it is reached there."""
    if row.deferred:
        return row.differs
    doors = [f"*{door}*: {row.doors[door]}" for door in DOORS if door in row.doors]
    return "<br>".join([row.differs or "works", *doors])


def _faults(claims: dict[str, list[Claim]]) -> Iterator[str]:
    yield "\n## Faults of the seeds\n"
    yield "What a seed writes that contradicts itself, cannot run or does harm, and what ours does.\n"
    yield "| part | the seed writes | ours | tests |"
    yield "|---|---|---|---|"
    for fault in FAULTS:
        proof = _tests(claims.get(fault.entry, []))
        yield f"| `{fault.entry}` | {fault.written} | {fault.mended} | {proof} |"


def _tests(claims: list[Claim]) -> str:
    links = {(c.file, c.test): f"[{c.test or c.file}](../../{c.file})" for c in claims}
    return "<br>".join(links[key] for key in sorted(links))


def _code(row: Requirement) -> str:
    return f"[{row.code}](../../src/ctxgc/{row.code})" if row.code else ""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.seeds_page")
    parser.add_argument("--check", action="store_true", help="fail when the page is not current")
    parser.add_argument("--missing", action="store_true", help="list live entries without a test")
    options = parser.parse_args(arguments)
    claims = claims_by_id()
    if options.missing:
        return _print_missing(claims)
    page = render(claims)
    if options.check:
        return _check(page)
    PAGE.write_text(page, encoding="utf-8")
    return 0


def _print_missing(claims: dict[str, list[Claim]]) -> int:
    unproven = missing(claims)
    for entry in unproven:
        print(f"{entry.id:45} {entry.says}")
    live = sum(r.deferred is None for r in REQUIREMENTS.values())
    print(f"{live - len(unproven)} of {live} live entries have a test")
    return 1 if unproven else 0


def _check(page: str) -> int:
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print("docs/development/seeds.md is not current: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
