"""`ctxgc scan` and `ctxgc check`: secrets in transcripts, and budgets that fail a CI job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import click
import msgspec

from ctxgc._version import __version__
from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    OutputFile,
    output_options,
    printable,
    warn,
    write_json,
    write_ok,
    write_table,
    write_verdict,
)
from ctxgc.cli.session_argument import find_session
from ctxgc.drawing import Column, count
from ctxgc.errors import TranscriptError
from ctxgc.files import write_atomic
from ctxgc.insight import (
    BudgetResult,
    FoundSecret,
    SessionBudgets,
    check_session,
    scan_secrets,
    transcript_files,
)

# -- ctxgc scan


_EPILOG = """\b
Examples:
  ctxgc scan                    all transcripts of Claude Code and Codex here
  ctxgc scan latest             one session
  ctxgc scan --json

Exit codes: 0 none found, 1 some were found, or an error, 2 usage error.
"""


@click.command(short_help="Find secrets in the transcripts of agents.", epilog=_EPILOG)
@click.argument("sessions", metavar="[SESSION]...", nargs=-1)
@output_options
@click.pass_context
def scan(ctx: click.Context, /, *, sessions: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Find likely keys and tokens in SESSION, by default in all transcripts, subagents' included.

    What is printed is masked; the same digest means the same key. Files are only read: revoke a key that
    was found, since it was sent to the provider of the model too.
    """
    files = [find_session(each) for each in sessions] or transcript_files()
    found: list[FoundSecret] = []
    for path in files:
        try:
            found += scan_secrets(path)
        except TranscriptError as error:
            warn(error.message)
    if as_json:
        write_json({"files": len(files), "secrets": [msgspec.to_builtins(each) for each in found]})
    elif not quiet:
        _write_secrets(found, len(files))
    ctx.exit(FOUND_PROBLEMS if found else 0)


def _write_secrets(found: list[FoundSecret], files: int) -> None:
    if not found:
        write_ok(f"no secret in {count(files, 'transcript')}")
        return
    columns = (
        Column("file", right=False, least=12, keep="end"), Column("line"), Column("kind"),
        Column("digest", right=False), Column("text", right=False, least=20),
    )  # fmt: skip
    rows = [
        (each.path, str(each.line), each.rule, each.digest, printable(each.shown)) for each in found
    ]
    write_table(columns, rows)
    keys, places = len({each.digest for each in found}), len({each.path for each in found})
    click.echo(
        f"{count(keys, 'different secret')} in {places} of {count(files, 'transcript')}: revoke them"
    )


# -- ctxgc check


_CHECK_EPILOG = """\b
Examples:
  ctxgc check latest            no secrets, no invalid pairs
  ctxgc check run.jsonl --max-garbage 60 --junit out.xml
  ctxgc check *.jsonl --max-cache-breaks 3 --sarif out.sarif

Exit codes: 0 all budgets are kept, 1 one is not, or an error, 2 usage error.
"""


@click.command(short_help="Fail a CI job on budgets of a session.", epilog=_CHECK_EPILOG)
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True)
@click.option("--max-garbage", type=click.FloatRange(0, 100), help="Percent of the window.")
@click.option("--max-cache-breaks", type=click.IntRange(min=0), help="How often the cache broke.")
@click.option("--max-secrets", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--max-invalid", type=click.IntRange(min=0), default=0, show_default=True,
    help="Messages that the provider would refuse.",
)  # fmt: skip
@click.option("--junit", type=OutputFile(), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--sarif", type=OutputFile(), metavar="FILE", help="Write what is wrong as SARIF.")
@output_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    *,
    sessions: tuple[str, ...],
    junit: Path | None,
    sarif: Path | None,
    as_json: bool,
    quiet: bool,
    **most: Any,
) -> None:
    """Check that each SESSION keeps its budgets: garbage, cache breaks, secrets, invalid pairs.

    SESSION is a file, the beginning of a session id, or `latest`. Garbage and cache breaks are those of
    `ctxgc analyze`, and are checked if a limit is given.
    """
    budgets = SessionBudgets(
        garbage=most["max_garbage"], cache_breaks=most["max_cache_breaks"],
        secrets=most["max_secrets"], invalid=most["max_invalid"],
    )  # fmt: skip
    results = {
        str(path): check_session(path, budgets) for path in (find_session(x) for x in sessions)
    }
    if junit is not None:
        write_atomic(junit, _junit(results).encode())
    if sarif is not None:
        write_atomic(sarif, json.dumps(_sarif(results), indent=2).encode())
    if as_json:
        write_json({path: [_as_data(each) for each in found] for path, found in results.items()})
    elif not quiet:
        _write_results(results)
    kept = all(each.is_kept for found in results.values() for each in found)
    ctx.exit(0 if kept else FOUND_PROBLEMS)


def _as_data(result: BudgetResult) -> dict[str, Any]:
    places = [{"line": line, "what": what} for line, what in result.places]
    known = {"rule": result.rule, "found": result.found, "allowed": result.allowed}
    return {**known, "kept": result.is_kept, "places": places}


def _write_results(results: dict[str, list[BudgetResult]]) -> None:
    for path, found in results.items():
        for each in found:
            level = ("ok", "green") if each.is_kept else ("failed", "red")
            write_verdict(*level, f"{Path(path).name}: {_said(each)}")
            for line, what in () if each.is_kept else each.places[:5]:
                click.echo(f"  line {line}: {printable(what)}")


def _said(result: BudgetResult) -> str:
    return f"{result.rule} {result.found:g}, allowed {result.allowed:g}"


def _junit(results: dict[str, list[BudgetResult]]) -> str:
    """Return the results as JUnit XML: a suite for each session, a case for each budget."""
    suites = []
    for path, found in results.items():
        cases = []
        for each in found:
            named = f"<testcase classname={quoteattr(path)} name={quoteattr(each.rule)}"
            told = escape("\n".join(f"line {line}: {what}" for line, what in each.places))
            wrong = f"<failure message={quoteattr(_said(each))}>{told}</failure>"
            cases.append(f"{named}/>" if each.is_kept else f"{named}>{wrong}</testcase>")
        failed = sum(not each.is_kept for each in found)
        head = f"<testsuite name={quoteattr(path)} tests='{len(found)}' failures='{failed}'>"
        suites.append(f"{head}{''.join(cases)}</testsuite>")
    return f"<?xml version='1.0' encoding='UTF-8'?><testsuites>{''.join(suites)}</testsuites>\n"


def _sarif(results: dict[str, list[BudgetResult]]) -> dict[str, Any]:
    """Return what breaks a budget as SARIF 2.1.0, each with its file and line."""
    broken = [(path, x) for path, found in results.items() for x in found if not x.is_kept]
    told = [
        {
            "ruleId": each.rule, "level": "error", "message": {"text": f"{_said(each)}: {what}"},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": path}, "region": {"startLine": max(1, line)},
            }}],
        }
        for path, each in broken for line, what in each.places
    ]  # fmt: skip
    rules = [{"id": name} for name in sorted({each.rule for _, each in broken})]
    driver = {"name": "ctxgc", "version": __version__, "rules": rules}
    return {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": told}]}
