"""`python -m tools.adapters`: what it makes of a test run."""

from __future__ import annotations

import pytest

from ctxgc.adapters import FRAMEWORKS
from tools import adapters

REPORT = """<testsuites><testsuite>
<testcase name="test_a_loop_fits_recalls_and_continues"/>
<testcase name="test_the_async_client"><failure/></testcase>
<testcase name="test_pages"><skipped/></testcase>
</testsuite></testsuites>"""


def test_only_tests_that_passed_count() -> None:
    assert adapters.passed_tests(REPORT) == ["test_a_loop_fits_recalls_and_continues"]


def test_a_cell_says_yes_if_a_test_that_shows_it_passed() -> None:
    first, *others = FRAMEWORKS
    table = adapters.matrix({first.name: adapters.passed_tests(REPORT)}).splitlines()
    assert table[2] == (
        f"| [{first.name}]({first.name}.md) | {first.tested} | {first.hook} | yes | yes | no | no | no |"
    )
    assert all(line.endswith("| no | no | no | no | no |") for line in table[3:])
    assert len(table) == 2 + 1 + len(others)


def test_what_was_not_run_here_keeps_its_row_unless_another_version_was_tested() -> None:
    first, second, *_ = FRAMEWORKS
    row = f"| [{first.name}]({first.name}.md) | {first.tested} | {first.hook} | yes | no | yes | no | no |"
    old = f"| [{second.name}]({second.name}.md) | 0.0.1 | {second.hook} | yes | yes | yes | yes | yes |"
    table = adapters.matrix({}, [row, old]).splitlines()
    assert table[2] == row
    assert table[3].endswith("| no | no | no | no | no |")


def test_an_unknown_framework_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        adapters.main(["run", "langchian"])
    assert ended.value.code == 2
    assert "there is no adapter for langchian" in capsys.readouterr().err
