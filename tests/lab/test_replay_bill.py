"""The bill: reads for the shared prefix, writes for the rest, all written once it is cold."""

from __future__ import annotations

from ctxgc.economics import PriceSheet
from ctxgc.lab.facts import message_weight
from ctxgc.lab.needs import SentMessages
from ctxgc.lab.replay import RequestPricer, RunBill, unpruned_bill
from tests.lab.builders import answer, user

SHEET = PriceSheet(name="test", read=0.1, write=2.0, ttl_seconds=60)
MESSAGES = [user("begin the work now"), answer("yes"), user("go on"), answer("done")]
SIZES = [message_weight(message) for message in MESSAGES]


def test_the_unpruned_bill_writes_each_message_once_and_reads_it_after() -> None:
    library = SentMessages()
    entries = [library.of(message) for message in MESSAGES]
    first, second = SIZES[0], SIZES[1] + SIZES[2]
    assert unpruned_bill(entries, [1, 3], SHEET, None) == RunBill(
        cost=2.0 * first + 0.1 * first + 2.0 * second,
        sent=2 * first + second,
        cached=first,
        peak=first + second,
        requests=2,
        prefix=15_000 * (2.0 + 0.1),
    )


def test_after_a_pause_longer_than_the_cache_lives_all_is_written() -> None:
    entries = [SentMessages().of(message) for message in MESSAGES[:3]]
    warm = unpruned_bill(entries, [1, 3], SHEET, [0, 10, 20, 70])
    cold = unpruned_bill(entries, [1, 3], SHEET, [0, 10, 20, 70.5])
    assert (warm.cached, cold.cached) == (SIZES[0], 0)
    assert cold.cost == 2.0 * cold.sent
    assert (warm.prefix, cold.prefix) == (15_000 * (2.0 + 0.1), 15_000 * (2.0 + 2.0))


def test_a_request_returns_its_size() -> None:
    assert RequestPricer(SHEET).charge([SentMessages().of(MESSAGES[0])], 0, 1) == SIZES[0]
