"""The report as Markdown: whole tables, ours first, and nothing hidden that speaks for others."""

from __future__ import annotations

import msgspec

from ctxgc.lab import Report, markdown_report
from ctxgc.lab.results import RunSurvival, SurvivalCount
from tests.lab.reports import made_report

WHOLE = """\
`cost`: 6 runs in 3 groups, 180 requests, 600 needs in 120 steps \
(made by hand, runs of at least 8,000 tokens; sheet `anthropic-5m`).

| cost | kind | bill [95% CI] | +15k | bits excess [95% CI] | of bare | worst run | strict | clean \
| line-step | word | not resident | newest shown | invalid histories | over the limit | failed |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| ctxgc | ours | 0.685 [0.68, 0.69] | 0.843 | 1.00 [1.0, 1.0] | 2.0 | 0.71 \
| 95.0 | 95.0 | 90.0 | 88.9 | 5.0 | 100.0 | 0 | 0 | 0 |
| somebody | peer, 1.2.3 | 0.995 [0.98, 1.00] | 0.998 | 2.00 [2.0, 2.0] | 4.0 | 1.02 \
| 90.0 | 90.0 | 90.0 | 88.9 | 10.0 | 100.0 | 0 | 0 | 0 |
| mask-keep-10 | restated | 1.645 [1.64, 1.66] | 1.323 | 3.00 [3.0, 3.0] | 6.0 | 1.67 \
| 85.0 | 85.0 | 80.0 | 88.9 | 15.0 | 100.0 | 0 | 0 | 0 |
| oracle-line | oracle | 0.465 [0.46, 0.47] | 0.733 | 0.00 [0.0, 0.0] | 0.0 | 0.49 \
| 100.0 | 100.0 | 100.0 | 88.9 | 0.0 | 100.0 | 0 | 0 | 0 |
| never | base | 1.025 [1.01, 1.03] | 1.012 | 0.00 [0.0, 0.0] | 0.0 | 1.05 \
| 100.0 | 100.0 | 100.0 | 88.9 | 0.0 | 100.0 | 0 | 0 | 0 |

Half of the runs is there to fit constants, the other to judge \
(fit: 2 runs in 1 groups, 60 requests; judge: 4 runs in 2 groups, 120 requests).

| policy | half | bill [95% CI] | +15k | bits excess [95% CI] | of bare \
| worst run | strict | clean | line-step | word | not resident |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| ctxgc | fit | 0.675 [0.68, 0.68] | 0.838 | 1.00 [1.0, 1.0] | 2.0 | 0.69 | 95.0 | 95.0 | 90.0 | 88.9 | 5.0 |
| ctxgc | judge | 0.690 [0.69, 0.69] | 0.845 | 1.00 [1.0, 1.0] | 2.0 \
| 0.71 | 95.0 | 95.0 | 90.0 | 88.9 | 5.0 |
| somebody | fit | 0.985 [0.98, 0.98] | 0.993 | 2.00 [2.0, 2.0] | 4.0 \
| 1.00 | 90.0 | 90.0 | 90.0 | 88.9 | 10.0 |
| somebody | judge | 1.000 [0.99, 1.00] | 1.000 | 2.00 [2.0, 2.0] | 4.0 \
| 1.02 | 90.0 | 90.0 | 90.0 | 88.9 | 10.0 |
| mask-keep-10 | fit | 1.635 [1.64, 1.64] | 1.317 | 3.00 [3.0, 3.0] | 6.0 \
| 1.65 | 85.0 | 85.0 | 80.0 | 88.9 | 15.0 |
| mask-keep-10 | judge | 1.650 [1.65, 1.66] | 1.325 | 3.00 [3.0, 3.0] | 6.0 \
| 1.67 | 85.0 | 85.0 | 80.0 | 88.9 | 15.0 |
| oracle-line | fit | 0.455 [0.46, 0.46] | 0.728 | 0.00 [0.0, 0.0] | 0.0 \
| 0.47 | 100.0 | 100.0 | 100.0 | 88.9 | 0.0 |
| oracle-line | judge | 0.470 [0.47, 0.47] | 0.735 | 0.00 [0.0, 0.0] | 0.0 \
| 0.49 | 100.0 | 100.0 | 100.0 | 88.9 | 0.0 |
| never | fit | 1.015 [1.01, 1.01] | 1.008 | 0.00 [0.0, 0.0] | 0.0 \
| 1.03 | 100.0 | 100.0 | 100.0 | 88.9 | 0.0 |
| never | judge | 1.030 [1.02, 1.03] | 1.015 | 0.00 [0.0, 0.0] | 0.0 \
| 1.05 | 100.0 | 100.0 | 100.0 | 88.9 | 0.0 |

| ratio | compared with | bill [95% CI] | not resident [95% CI] |
|---|---|--:|--:|
| ctxgc | oracle-line (oracle) | 1.473 [1.46, 1.48] | - |

- Cheaper than ctxgc (0.685): none
- Cheaper than never pruning, with fewer needs not resident than ctxgc (5.0): none
"""

EVIDENCE = """\
| policy | after | view size | path | command | number | decision | error | constraint \
| in view [95% CI] | lost [95% CI] |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| never | end (6) | 39.1 | >99/0/<1 | - | - | - | 0/100/0 | - | 99.6 [99.6, 99.6] | 0.1 [0.1, 0.1] |"""


def changed(policy: str, **more: object) -> Report:
    """Return the report with another row of one policy."""
    made = made_report()
    rows = [
        msgspec.structs.replace(row, **more) if row.policy == policy else row for row in made.rows
    ]
    return msgspec.structs.replace(made, rows=rows, gaps=[])


def notes(report: Report) -> list[str]:
    """Return the list below the tables."""
    return [line[2:] for line in markdown_report(report).splitlines() if line.startswith("- ")]


def test_a_report_is_what_was_played_the_tables_and_who_is_ahead() -> None:
    assert markdown_report(made_report()) == WHOLE


def test_policies_that_did_the_same_share_a_row_of_the_gaps() -> None:
    made = made_report()
    gap = made.gaps[0]
    other = msgspec.structs.replace(
        gap, policy="b", bill=msgspec.structs.replace(gap.bill, value=2.0)
    )
    same = msgspec.structs.replace(gap, policy="c")
    lines = markdown_report(msgspec.structs.replace(made, gaps=[gap, other, same])).splitlines()
    assert [line for line in lines if "(oracle)" in line] == [
        "| ctxgc, c | oracle-line (oracle) | 1.473 [1.46, 1.48] | - |",
        "| b | oracle-line (oracle) | 2.000 [1.46, 1.48] | - |",
    ]


def test_whoever_is_cheaper_or_keeps_more_is_named_with_what_it_breaks() -> None:
    rows = {row.policy: row for row in made_report().rows}
    cheap = msgspec.structs.replace(rows["ctxgc"].bill, value=0.5)
    none = msgspec.structs.replace(rows["ctxgc"].non_resident, value=0.01)
    found = changed(
        "somebody", bill=cheap, non_resident=none, over=1_234, refused=7, rules={"role": 7}
    )
    assert notes(found) == [
        "Cheaper than ctxgc (0.685): somebody 0.500 (strict 90.0)",
        (
            "Cheaper than never pruning, with fewer needs not resident than ctxgc (5.0): "
            "somebody 1.0 (bill 0.500, 1,234 requests over the limit, 7 invalid)"
        ),
        "somebody: 7 invalid histories (role x 7)",
    ]


def test_who_keeps_all_because_it_saves_nothing_is_not_called_ahead() -> None:
    rows = {row.policy: row for row in made_report().rows}
    whole = {"bill": rows["never"].bill, "non_resident": rows["never"].non_resident}
    assert notes(changed("somebody", **whole))[1].endswith("(5.0): none")


def test_a_policy_that_could_not_play_has_no_figures_and_says_why() -> None:
    found = changed("somebody", runs=0, failed=6, errors=["PeerError: a | b"])
    line = next(
        line for line in markdown_report(found).splitlines() if line.startswith("| somebody")
    )
    assert line == "| somebody | peer, 1.2.3 |" + " - |" * 13 + " 6 |"
    assert notes(found)[-1] == "somebody: 6 runs failed (PeerError: a | b)"


def test_a_name_cannot_break_the_table() -> None:
    lines = markdown_report(made_report(prefix="a|b\n")).splitlines()
    rows = [line for line in lines if line.startswith("| a&#124;b ")]
    assert {line.count(" | ") for line in rows} == {15, 11, 3}


def test_evidence_has_a_row_for_each_policy_in_whole_percent_that_never_round_to_all_or_nothing() -> (
    None
):
    count = SurvivalCount(view=999, handle=0, lost=1)
    survival = RunSurvival(at_end={"path": count, "error": SurvivalCount(handle=3)}, tokens=4_500)
    (table,) = [
        part
        for part in markdown_report(made_report(survival=survival)).split("\n\n")
        if part.startswith("| policy | after ")
    ]
    assert "\n".join(table.splitlines()[:3]) == EVIDENCE
