"""An explanation agrees with the replay that judges: same bill, same needs missed."""

from __future__ import annotations

import pytest

from ctxgc.economics import price_sheet
from ctxgc.errors import InputError
from ctxgc.lab import RequestExplanation, Run, demo_runs, explain, parse_regime, policy, replay_run
from ctxgc.lab.explanation import described
from ctxgc.lab.needs import Needs
from tests.lab.builders import answer, result, run_of, user

OURS = policy("ctxgc")
WINDOW = parse_regime("window:50%")
NARROW = parse_regime("window:25%")
SHEET = price_sheet("anthropic-5m")


def _explained(run: Run, request: int) -> RequestExplanation:
    return explain(OURS, run, request, WINDOW, SHEET)


def _log(number: int) -> str:
    lines = (
        f"step {n} of build_{number} took {n * 7 % 90 + 1000} ms in stage_{n}" for n in range(60)
    )
    return "\n".join(lines)


def _long_run(requests: int = 12) -> Run:
    messages = [user("Why is the nightly build of parcel_desk red?")]
    for number in range(requests):
        asked = answer(f"looking at build_{number}", command=f"cat build_{number}.log")
        messages += [asked, result(asked, _log(number))]
        asked["tool_calls"][0]["id"] = messages[-1]["tool_call_id"] = f"call-{number}"
    return run_of(*messages, answer("It is stage_7 of build_0: step 7 of build_0 took 1049 ms"))


@pytest.fixture(scope="module")
def run() -> Run:
    return demo_runs()[0]


@pytest.fixture(scope="module")
def all_requests() -> list[RequestExplanation]:
    return [_explained(_long_run(), number) for number in range(1, 14)]


def test_the_requests_add_up_to_the_replayed_bill(all_requests: list[RequestExplanation]) -> None:
    judged = replay_run(OURS, _long_run(), WINDOW, SHEET)
    sent = sum(each.money.sent for each in all_requests)
    cached = sum(each.money.cached for each in all_requests)
    assert (sent, cached) == (judged.sent, judged.cached)
    assert SHEET.read * cached + SHEET.write * (sent - cached) == pytest.approx(judged.bill)


def test_something_left_exactly_where_every_request_says_so(
    all_requests: list[RequestExplanation],
) -> None:
    active = [each.request for each in all_requests if each.departures]
    assert active
    assert all(each.others == active for each in all_requests)


def test_the_money_of_a_decision_adds_up(all_requests: list[RequestExplanation]) -> None:
    for each in all_requests:
        money = each.money
        assert money.net == pytest.approx(money.requests_left * money.saving - money.price)
        assert money.saving == pytest.approx(SHEET.read * money.removed)
        if money.payback is not None and money.price > 0:
            assert (money.payback - 1) * money.saving < money.price <= money.payback * money.saving


def test_nothing_left_means_nothing_removed_and_no_price(
    all_requests: list[RequestExplanation],
) -> None:
    for each in all_requests:
        if not each.departures and not each.money.returned:
            assert (each.money.removed, each.money.rewritten, each.money.price) == (0, 0, 0.0)


def test_what_left_is_named_with_tool_target_reason_and_size(
    all_requests: list[RequestExplanation],
) -> None:
    first = next(each for each in all_requests if each.departures)
    results = [each for each in first.departures if each.role == "tool"]
    assert {each.tool for each in results} == {"work"}
    assert {each.target for each in results} <= {f"cat build_{n}.log" for n in range(12)}
    assert all(each.reason and 0 <= each.left < each.tokens for each in results)


def test_the_uses_are_the_needs_that_the_replay_finds_missing(run: Run) -> None:
    judged = replay_run(OURS, run, NARROW, SHEET)
    active = explain(OURS, run, 1, NARROW, SHEET).others
    found = [explain(OURS, run, number, NARROW, SHEET) for number in active]
    missed = {
        (use.request, use.fact, use.state)
        for each in found
        for departure in each.departures
        for use in departure.uses
        if use.state != "resident"
    }
    states = [state for _, _, state in missed]
    assert judged.needs - judged.resident == len(missed) > 0
    assert [states.count(s) for s in ("named", "recallable", "lost")] == [
        judged.named, judged.recallable, judged.lost,
    ]  # fmt: skip


def test_after_a_long_pause_all_is_written_anyway() -> None:
    warm = _long_run(4)
    pauses = [600.0 * number for number in range(len(warm.messages))]
    cold = run_of(*warm.messages, times=pauses)
    assert not _explained(warm, 3).money.is_cold
    money = _explained(cold, 3).money
    assert money.is_cold
    assert (money.cached, money.rewritten) == (0, 0)


@pytest.mark.parametrize("request_number", [0, 14, -1])
def test_a_request_that_the_run_does_not_have_is_told_with_those_it_has(
    request_number: int,
) -> None:
    with pytest.raises(InputError, match="name one from 1 to 13"):
        _explained(_long_run(), request_number)


def test_only_our_own_policies_give_reasons() -> None:
    with pytest.raises(InputError, match="never gives no reasons"):
        explain(policy("never"), _long_run(), 1, WINDOW, SHEET)


def test_the_messages_so_far_are_those_before_the_answer(
    all_requests: list[RequestExplanation],
) -> None:
    steps = Needs(_long_run()).steps
    assert [each.messages for each in all_requests] == [step.index for step in steps]


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ({"file_path": "src/a.py", "limit": 3}, "src/a.py"),
        ({"command": "make\n  test"}, "make test"),
        ({"value": "x"}, '{"value": "x"}'),
        ({"pattern": "p" * 200}, "p" * 87 + "..."),
    ],
)
def test_a_call_and_its_result_have_the_same_target(
    arguments: dict[str, object], target: str
) -> None:
    asked = answer("look", **arguments)
    run = run_of(user("go"), asked, result(asked, "text"))
    assert described(run, 1) == ("assistant", "work", target)
    assert described(run, 2) == ("tool", "work", target)


@pytest.mark.parametrize("arguments", ["{not json", "[1, 2]"])
def test_arguments_that_are_no_object_stand_as_they_are(arguments: str) -> None:
    asked = answer("look", x=1)
    asked["tool_calls"][0]["function"]["arguments"] = arguments
    assert described(run_of(user("go"), asked), 1) == ("assistant", "work", arguments)


def test_plain_text_is_its_own_target() -> None:
    assert described(run_of(user("please\nhelp")), 0) == ("user", "", "please help")


def test_a_result_of_a_call_that_was_never_made_has_no_tool() -> None:
    lost = {"role": "tool", "tool_call_id": "gone", "content": "text"}
    assert described(run_of(user("go"), lost), 1) == ("tool", "", "text")


def test_of_calls_with_the_same_id_the_nearest_counts() -> None:
    first, second = answer("look", path="old"), answer("look", path="new")
    run = run_of(user("go"), first, result(first, "1"), second, result(second, "2"))
    assert described(run, 4) == ("tool", "work", "new")


def test_a_collection_on_probation_is_explained_with_its_certificate() -> None:
    run = demo_runs()[9]
    proven, room = policy("ctxgc-proven"), parse_regime("cost")
    found = [
        collection.certificate
        for request in explain(proven, run, 1, room, SHEET).others
        for collection in explain(proven, run, request, room, SHEET).collections[:1]
    ]
    assert found
    for certificate in found:
        assert certificate is not None
        assert certificate.waited >= certificate.steps > 0
        assert certificate.applied_at - certificate.planned_at >= certificate.steps
        assert all(int(name) < len(run.messages) for name in certificate.left)
