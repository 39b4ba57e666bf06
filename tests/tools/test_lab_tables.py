"""The tables of the lab in the docs: made by a command, whole, and of the versions that are played."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ctxgc.errors import InputError
from ctxgc.lab import PEERS, POLICIES, Experiment, Report, markdown_report
from tests.lab.reports import made_report
from tools import lab_tables
from tools.lab_tables import REGIMES, kept, main, proof, short, spliced, write_pages
from tools.requirement_scan import ROOT

PAGE = "before\n<!-- table: cost (begin) -->\nold\n<!-- table: cost (end) -->\nafter\n"


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> dict[str, Report]:
    monkeypatch.setattr(lab_tables, "SHORT_NAMES", ("mask-keep-10",))
    monkeypatch.setattr(lab_tables, "PROOF_NAMES", ("ctxgc", "mask-keep-10"))
    return {
        regime: msgspec.structs.replace(made_report(refused=count), regime=regime)
        for count, regime in enumerate(REGIMES)
    }


def test_the_text_between_the_marks_is_replaced_and_nothing_else() -> None:
    found = spliced(PAGE, "cost", "new\n")
    assert found == PAGE.replace("old", "new")
    assert spliced(found, "cost", "old\n") == PAGE


@pytest.mark.parametrize("page", ["", PAGE * 2, PAGE.replace("(end)", "(ende)")])
def test_a_page_without_one_place_for_a_table_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="no marks for the table 'cost'"):
        spliced(page, "cost", "new\n")


def test_the_short_table_has_each_peer_once_with_what_it_breaks_anywhere(
    reports: dict[str, Report],
) -> None:
    assert short(reports).splitlines()[2:] == [
        (
            "| ctxgc | ours | 0.685 [0.68, 0.69] | 0.843 | 1.00 [1.0, 1.0] | 0.690 | 1.00 [1.0, 1.0] "
            "| 0.71 | 95.0 | 95.0 | 90.0 | 5.0 | 5.0 | 18 | 0 |"
        ),
        (
            "| somebody | peer, 1.2.3 | 0.995 [0.98, 1.00] | 0.998 | 2.00 [2.0, 2.0] | 1.000 "
            "| 2.00 [2.0, 2.0] | 1.02 | 90.0 | 90.0 | 90.0 | 10.0 | 10.0 | 18 | 0 |"
        ),
        (
            "| mask-keep-10 | restated | 1.645 [1.64, 1.66] | 1.323 | 3.00 [3.0, 3.0] | 1.650 "
            "| 3.00 [3.0, 3.0] | 1.67 | 85.0 | 85.0 | 80.0 | 15.0 | 15.0 | 18 | 0 |"
        ),
    ]


def test_the_proof_is_a_part_of_the_summary_with_a_sentence_about_the_default(
    reports: dict[str, Report],
) -> None:
    assert proof(reports).splitlines() == [
        "On 6 recorded Claude Code runs with 180 requests (made by hand) the default paid 0.685 of the bill",
        (
            "of never pruning. 95.0% of the steps had all that they used in the view word for word, "
            "95.0% at least by name."
        ),
        "",
        (
            "| policy | kind | bill [95% CI] | bits excess [95% CI] | strict | not resident, window 50% "
            "| 25% | invalid histories | over the limit |"
        ),
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
        "| ctxgc | ours | 0.685 [0.68, 0.69] | 1.00 [1.0, 1.0] | 95.0 | 5.0 | 5.0 | 18 | 0 |",
        "| mask-keep-10 | restated | 1.645 [1.64, 1.66] | 3.00 [3.0, 3.0] | 85.0 | 15.0 | 15.0 | 18 | 0 |",
    ]


def test_the_pages_are_written_again_from_the_reports_that_are_kept(
    reports: dict[str, Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_tables, "KEPT", tmp_path)
    for regime, report in reports.items():
        lab_tables.report_file(regime).write_bytes(msgspec.json.encode(report))
    (tmp_path / "docs").mkdir()
    pages = {"README.md": ["proof"], "docs/lab.md": ["summary", *REGIMES]}
    for file, names in pages.items():
        text = "".join(PAGE.replace("cost", name) for name in names)
        (tmp_path / file).write_text(text, encoding="utf-8")
    write_pages(kept(), tmp_path)
    written = {file: (tmp_path / file).read_text(encoding="utf-8") for file in pages}
    tables = {"summary": short(reports)} | {
        name: markdown_report(reports[name]) for name in REGIMES
    }
    assert written["README.md"] == PAGE.replace("cost", "proof").replace("old\n", proof(reports))
    assert written["docs/lab.md"] == "".join(
        PAGE.replace("cost", name).replace("old\n", table) for name, table in tables.items()
    )


def test_without_reports_and_runs_the_command_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab_tables, "KEPT", tmp_path)
    monkeypatch.setenv("CTXGC_LAB_PEERS", str(tmp_path))
    for arguments, said in (([], "cost.json"), (["--data", "."], "is not installed")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert said in capsys.readouterr().err


def test_who_is_not_played_again_has_the_results_that_are_kept_on_the_same_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_tables, "KEPT", tmp_path)
    asked = Experiment(policies=("ctxgc", "mask-keep-10", "never"))
    known = msgspec.structs.replace(made_report(), source=asked.source)
    lab_tables.report_file("cost").write_bytes(msgspec.json.encode(known))
    found = lab_tables.others(asked, ("ctxgc", "never"))
    assert found == [each for each in known.results if each.policy not in ("ctxgc", "never")]
    assert lab_tables.others(asked, asked.policies) == []
    with pytest.raises(InputError, match="one run in 2"):
        lab_tables.others(msgspec.structs.replace(asked, every=2), ("ctxgc",))


@pytest.mark.parametrize("regime", REGIMES)
def test_the_docs_have_a_row_for_every_policy_in_every_regime(regime: str) -> None:
    page = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    table = page.partition(f"<!-- table: {regime} (begin) -->")[2].partition("<!-- table:")[0]
    missing = [name for name in POLICIES if f"\n| {name} |" not in table]
    assert missing == [], "run `python -m tools.lab_tables --data DIR`"


def test_the_summary_names_every_peer_with_the_version_that_is_played() -> None:
    page = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    rows = {name: f"| {name} | peer, {peer.package.requirement.replace('==', ' ')} |"
            for name, peer in PEERS.items()}  # fmt: skip
    assert [name for name, row in rows.items() if row not in page] == []


def test_the_figures_of_the_readme_are_those_of_the_summary() -> None:
    proven, summary = (_table(ROOT / page, name) for page, name in (
        ("README.md", "proof"), ("docs/lab.md", "summary")
    ))  # fmt: skip
    assert proven.keys() <= set(lab_tables.PROOF_NAMES)
    assert {name: row.items() <= summary[name].items() for name, row in proven.items()} == (
        dict.fromkeys(proven, True)
    )


def _table(path: Path, name: str) -> dict[str, dict[str, str]]:
    """Return the cells of each row of a table in a page by their columns, under the name of its policy."""
    page = path.read_text(encoding="utf-8")
    text = page.partition(f"<!-- table: {name} (begin) -->")[2].partition("<!-- table:")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[1:]}
