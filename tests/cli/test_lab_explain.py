"""`ctxgc lab explain`: the decision for people, and the same for programs."""

from __future__ import annotations

import json

import msgspec
import pytest
from click.testing import CliRunner, Result

from ctxgc.cli import main
from ctxgc.cli.lab_explain import draw
from ctxgc.collector import Certificate, NotedUse
from ctxgc.lab import Departure, Money, RequestExplanation
from ctxgc.lab.explanation import CollectionSummary, Use

DEPARTURE = Departure(
    index=5, role="tool", tool="Read", target="/home/dev/stockroom/src/stockroom/quotas.py",
    tokens=1_848, left=66, reason="superseded", instead="[ctxgc: ...]",
    uses=[
        Use(fact="stale_delay", request=54, state="lost"),
        Use(fact="KeyError", request=44, state="resident"),
    ],
    lines=3, lines_kept=2,
)  # fmt: skip
MONEY = Money(
    sent=10_000, cached=4_000, removed=1_782, rewritten=425, returned=0, price=488.75, saving=178.2,
    requests_left=27, net=4_322.65, payback=3, is_cold=False,
)  # fmt: skip
FOUND = RequestExplanation(
    run="demo-06", policy="ctxgc", regime="window:50%", sheet="anthropic-5m", limit=16_439, request=34,
    requests=61, messages=69, departures=[DEPARTURE], money=MONEY, others=[34, 42],
    collections=[
        CollectionSummary(
            trigger="threshold", tokens_before=13_481, tokens_after=11_791, shortfall=12, error=""
        )
    ],
)  # fmt: skip


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", "explain", *arguments])


def _drawn(
    found: RequestExplanation, capsys: pytest.CaptureFixture[str], most: int | None = 20
) -> list[str]:
    draw(found, most)
    lines = capsys.readouterr().out.splitlines()
    return [" ".join(line.split()) for line in lines if line.strip(" ─")]


@pytest.mark.usefixtures("wide")
def test_a_decision_is_told_with_what_it_won_and_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert _drawn(FOUND, capsys) == [
        "demo-06, request 34 of 61 (69 messages so far): ctxgc, window:50% (limit 16,439), anthropic-5m",
        "collection (threshold): 13,481 -> 11,791 tokens, 12 above its target",
        "message what tokens left why needed later lines quoted",
        (
            "5 result of Read ...e/dev/stockroom/src/stockroom/quotas.py 1,848 66 superseded "
            "1 resident 1 lost 2 of 3 kept"
        ),
        "saved: 1,782 tokens in this and each of the 27 requests after it",
        "cost: 425 cached tokens written again",
        (
            "money, in uncached input tokens: +489 now, -178 with each later request; "
            "paid back after 3 requests; saved in the end +4,323"
        ),
        "missed later (1):",
        "request 54: stale_delay (lost)",
    ]


@pytest.mark.usefixtures("wide")
def test_the_certificate_of_a_collection_on_probation_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    use = NotedUse(
        message_id="5", part=0, request=31, how="quoted", quoted=("stale_delay", "KeyError"),
        missed=("stale_delay",),
    )  # fmt: skip
    certificate = Certificate(
        planned_at=30, applied_at=34, steps=4, waited=4, planned=3, used=(use,), left=("7", "9")
    )
    (collection,) = FOUND.collections
    proven = msgspec.structs.replace(collection, certificate=certificate)
    assert _drawn(msgspec.structs.replace(FOUND, collections=[proven]), capsys)[2:6] == [
        "planned at request 30, waited 4 of 4 steps, applied at request 34",
        "of 3 planned, 1 were used meanwhile and stayed",
        "message 5: quoted (2) by the answer to request 31",
        "would have been missed: stale_delay",
    ]


@pytest.mark.usefixtures("wide")
def test_the_largest_come_first_and_the_rest_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    many = [
        msgspec.structs.replace(DEPARTURE, index=n, tokens=100 * n, left=0) for n in range(1, 6)
    ]
    lines = _drawn(msgspec.structs.replace(FOUND, departures=many), capsys, most=2)
    assert [line.split()[0] for line in lines[3:5]] == ["5", "4"]
    assert lines[5] == "… and 3 more, 600 tokens (--all lists them)"


@pytest.mark.usefixtures("wide")
def test_a_cold_cache_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    cold = msgspec.structs.replace(MONEY, is_cold=True, price=-10.0, payback=0)
    lines = _drawn(msgspec.structs.replace(FOUND, money=cold), capsys)
    assert "cost: none, the cache had expired and everything was written anyway" in lines
    assert any("paid back at once" in line for line in lines)


@pytest.mark.usefixtures("wide")
def test_a_request_at_which_nothing_left_names_those_where_something_did(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quiet = msgspec.structs.replace(FOUND, departures=[])
    assert _drawn(quiet, capsys)[1:] == [
        "Nothing left the view at this request. Something did at: 34, 42"
    ]
    still = msgspec.structs.replace(quiet, others=[])
    assert _drawn(still, capsys)[1:] == ["Nothing left the view at this request, or at any other."]


def test_the_corpus_can_be_explained_for_programs() -> None:
    done = _run("demo-01", "2", "--json")
    assert done.exit_code == 0
    found = msgspec.convert(json.loads(done.output), RequestExplanation)
    assert (found.run, found.request, found.policy, found.regime) == ("demo-01", 2, "ctxgc", "cost")


def test_quiet_says_nothing() -> None:
    done = _run("demo-01", "2", "--quiet")
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nobody", "1"], 1, "no run matches 'nobody'"),
        (["demo-01", "9999"], 1, "demo-01 has no request 9999"),
        (["demo-01", "1", "--policy", "never"], 1, "only ctxgc's own policies can be explained"),
        (
            ["demo-01", "1", "--policy", "ctxcg"],
            2,
            'did you mean "ctxgc"? known: agent-framework, ',
        ),
        (["demo-01", "1", "--policy", "ctxcg", "--json"], 2, '"code": "invalid_config"'),
        (["demo-01", "1", "--sheet", "free"], 2, "known: anthropic-1h, anthropic-5m, "),
        (["demo-01", "1", "--regime", "half"], 2, "cost, window:50% or window:40000"),
        (["demo-01", "0"], 2, "STEP"),
    ],
)
def test_bad_input_gets_one_line_with_a_next_step(
    arguments: list[str], code: int, said: str
) -> None:
    done = _run(*arguments)
    assert done.exit_code == code
    assert said in done.output
