"""`ctxgc lab run`: a table for people, a file for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.lab_runs import write_runs

Run = Callable[..., Result]


@pytest.fixture
def data(project: Path) -> Path:
    return write_runs(project, count=2, messages=40)


def lab(run: Run, data: Path, *arguments: str) -> Result:
    usual = ("--policy", "never,ctxgc", "--regime", "window:50%", "--least-tokens", "0")
    return run("lab", "run", "--data", str(data), *usual, *arguments)


@pytest.mark.usefixtures("wide")
def test_the_table_has_a_line_for_each_policy_and_says_what_it_is_not(run: Run, data: Path) -> None:
    done = lab(run, data)
    assert done.exit_code == 0, done.output
    assert "2 runs in 2 groups" in done.output
    figures, halves, sound = done.output.split("\npolicy ")[1:4]
    for table, rows in ((figures, 1), (halves, 2), (sound, 1)):
        assert table.count("\nnever ") == table.count("\nctxgc ") == rows
    assert "not whether a task succeeds" in done.output


def test_the_file_is_the_same_bytes_at_every_run_and_holds_every_result(
    run: Run, data: Path, project: Path
) -> None:
    written = []
    for name in ("one", "two"):
        assert lab(run, data, "--json", name, "--quiet").output == ""
        written.append((project / name).read_bytes())
    assert written[0] == written[1]
    found = json.loads(written[0])
    assert [(each["run"], each["policy"]) for each in found["results"]] == [
        ("r0", "never"), ("r0", "ctxgc"), ("r1", "never"), ("r1", "ctxgc"),
    ]  # fmt: skip
    assert found["rows"][0]["bill"]["value"] == 1.0


@pytest.mark.parametrize(("every", "measured"), [("1", True), ("0", False)])
def test_each_row_has_the_bill_with_a_prefix_and_the_copied_bits(
    run: Run, data: Path, project: Path, every: str, *, measured: bool
) -> None:
    pytest.importorskip("backports.zstd", reason="the extra ctxgc[lab] is not installed")
    shown = lab(run, data, "--bits-every", every, "--json", "found.json").output
    never, ours = json.loads((project / "found.json").read_bytes())["rows"]
    assert (never["bill_15k"]["value"], never["bill_15k"]["of"] > 15_000) == (1.0, True)
    assert ("copied bits not measured" in shown) is not measured
    if not measured:
        assert (never["bits"], ours["bits"]) == (None, None)
        return
    assert never["bits"]["excess"]["value"] == never["bits"]["share"]["value"] == 0.0
    assert ours["bits"]["excess"]["low"] <= ours["bits"]["excess"]["high"]
    assert ours["bits"]["steps"] == never["bits"]["steps"] > 0


def test_decision_times_are_shown_on_request(run: Run, data: Path) -> None:
    assert "ms per decision" in lab(run, data, "--timing").output
    assert "ms per decision" not in lab(run, data).output


@pytest.mark.usefixtures("wide")
def test_what_became_of_the_evidence_is_shown_on_request(
    run: Run, data: Path, project: Path
) -> None:
    told = lab(run, data, "--survival").output
    assert "in the view / behind a handle / lost" in told
    assert told.count("end (2)") == 2
    assert "view / behind a handle" not in lab(run, data).output
    assert lab(run, data, "--survival", "--quiet", "--json", "one").exit_code == 0
    found = json.loads((project / "one").read_bytes())
    assert found["survival"][0]["kinds"]["all"]["view"]["value"] == 1.0
    assert [row["policy"] for row in found["survival"]] == ["never", "ctxgc", "ctxgc"]


def test_the_tables_of_the_docs_are_printed_or_written(run: Run, data: Path, project: Path) -> None:
    printed = lab(run, data, "--markdown", "-")
    assert printed.exit_code == 0, printed.output
    assert printed.output.startswith("`window:50%`: 2 runs in 2 groups, ")
    assert "\n| ctxgc | ours | " in printed.output
    assert "\n| never | base | " in printed.output
    assert lab(run, data, "--markdown", "made.md", "--quiet").output == ""
    assert (project / "made.md").read_text("utf-8") == printed.output


def test_a_report_for_programs_can_be_piped(run: Run, data: Path, project: Path) -> None:
    printed = lab(run, data, "--json", "-")
    assert lab(run, data, "--json", "made.json", "--quiet").output == ""
    assert printed.stdout_bytes == (project / "made.json").read_bytes()
    assert not (project / "-").exists()


@pytest.mark.parametrize("file", ["-", "report"])
def test_two_reports_do_not_go_to_one_file(run: Run, data: Path, project: Path, file: str) -> None:
    done = lab(run, data, "--json", file, "--html", file)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "two reports cannot go to one file" in done.stderr
    assert list(project.iterdir()) == [data]


@pytest.mark.parametrize(
    ("half", "played", "halves"),
    [("fit", ["r1"], 0), ("judge", ["r0", "r2"], 0), ("both", ["r0", "r1", "r2"], 2)],
)
def test_one_half_of_the_runs_or_both_are_played(
    run: Run, project: Path, half: str, played: list[str], halves: int
) -> None:
    data = write_runs(project, count=3, messages=12)
    lab(run, data, "--half", half, "--json", "found.json", "--quiet")
    found = json.loads((project / "found.json").read_bytes())
    assert [each["run"] for each in found["results"] if each["policy"] == "never"] == played
    assert len(found["halves"]) == halves


def test_one_run_in_so_many_is_played_and_the_report_says_so(run: Run, project: Path) -> None:
    data = write_runs(project, count=5, messages=12)
    lab(run, data, "--every", "2", "--json", "found.json", "--quiet")
    found = json.loads((project / "found.json").read_bytes())
    assert [each["run"] for each in found["results"] if each["policy"] == "never"] == [
        "r0",
        "r2",
        "r4",
    ]
    assert found["source"] == "made.jsonl, one run in 2"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--policy", "ctxcg"), 2, 'did you mean "ctxgc"? known: agent-framework, all, '),
        (("--regime", "half"), 2, "window:50%"),
        (("--sheet", "anthropic-5"), 2, 'did you mean "anthropic-5m"? known: anthropic-1h, '),
        (("--set", "other", "--data", "."), 1, "no runs named 'other'"),
        (("--least-tokens", "1000000"), 1, "lower --least-tokens"),
    ],
)
def test_a_wrong_word_is_one_line_with_the_next_step(
    run: Run, data: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = lab(run, data, *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "ablate default", "explain demo-01 2"])
def test_a_set_of_no_folder_is_a_wrong_call(run: Run, command: str) -> None:
    done = run("lab", *command.split(), "--set", "claude_code")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--set names a file in the folder given by --data" in done.stderr


@pytest.mark.parametrize("option", ["--json", "--html", "--markdown"])
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("missing/deep/out", "there is no folder 'missing/deep'"),
        ("made.jsonl/out", "there is no folder 'made.jsonl'"),
        (".", "is a directory"),
        ("", "the file has no name"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_run(
    run: Run, data: Path, project: Path, option: str, file: str, said: str
) -> None:
    done = run("lab", "run", "--data", str(data), "--policy", "nobody", option, file)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert list(project.iterdir()) == [data]


def test_a_folder_that_may_not_be_written_to_is_told_before_the_run(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda _, mode, **__: not mode & os.W_OK)
    done = lab(run, data, "--json", "out.json")
    assert done.exit_code == 2
    assert "the folder '.' may not be written to" in done.stderr


def test_the_corpus_and_other_data_exclude_each_other(run: Run, data: Path) -> None:
    assert lab(run, data, "--demo").exit_code == 2


def test_the_policies_are_listed_with_kind_and_settings(run: Run) -> None:
    listed = json.loads(run("lab", "policies", "--json").output)
    assert [each["kind"] for each in listed if each["name"] == "mask-10-3"] == ["restated"]
    assert "oracle-line" in run("lab", "policies").output
