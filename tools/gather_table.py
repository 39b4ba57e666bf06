"""Write the tables of gather and use into docs/lab.md.

python -m tools.gather_table --every 5 --jobs 2    play the suite, keep its report in out/lab, write the page
python -m tools.gather_table --kept                write the page from the report that is kept
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence

import msgspec

from ctxgc.cli.lab_gather import GATHER_DEFAULTS
from ctxgc.lab import GatherReport, GatherSuite, gather_markdown, run_gather
from tools.lab_tables import KEPT, PROGRESS_EVERY, spliced
from tools.requirement_scan import ROOT

PAGE = ROOT / "docs" / "lab.md"
REPORT = KEPT / "gather.json"


def played(every: int, jobs: int) -> GatherReport:
    """Play the suite with the policies that the command plays by default, and keep the report."""
    counted = itertools.count(1)

    def tell() -> None:
        if (number := next(counted)) % PROGRESS_EVERY == 0:
            print(f"{number} tasks ...", file=sys.stderr, flush=True)

    report = run_gather(GatherSuite(policies=GATHER_DEFAULTS, every=every), jobs, tell)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_bytes(msgspec.json.encode(report))
    return report


def write_page(report: GatherReport) -> None:
    """Write the tables between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(spliced(text, "gather", gather_markdown(report)), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, unless the kept report is asked for, and write the page."""
    parser = argparse.ArgumentParser(prog="gather_table", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="play every n-th task")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="processes to use")
    parser.add_argument("--kept", action="store_true", help="play nothing")
    asked = parser.parse_args(arguments)
    if asked.kept:
        write_page(msgspec.json.decode(REPORT.read_bytes(), type=GatherReport))
    else:
        write_page(played(asked.every, asked.jobs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
