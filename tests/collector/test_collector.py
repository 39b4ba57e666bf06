"""The price collector by itself: what it asks for before a request, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ctxgc.collector import (
    Billing,
    Edit,
    PriceCollector,
    PriceRequest,
)
from ctxgc.core import Message, is_tombstone
from ctxgc.economics import price_sheet
from ctxgc.tokens import message_tokens
from ctxgc.wire import parse, replace_text
from tests.collector.agent import HOW, Agent, Step
from tests.fakes import QuarterCounter

COLD = Billing(bill=0.0, unpruned_bill=1e9, is_cold=True)
"""Whatever is worth a stub may become one: nothing is cached, and no guard forbids it."""

WORK: list[Step] = [("read", 0, 0, 60), ("edit", 0, 3), ("read", 1, 0, 60), ("grep", "harvest", 40)]


def history(work: list[Step]) -> list[Message]:
    agent = Agent()
    raw: list[dict[str, Any]] = agent.begin()
    for step in work:
        said, back = agent.step(step)
        raw += [*said, *back]
    return [parse(message, "openai", f"m{n}") for n, message in enumerate(raw)]


def thrift() -> PriceCollector:
    counter = QuarterCounter()
    return PriceCollector(HOW, price_sheet("anthropic-5m"), lambda m: message_tokens(m, counter))


def request(
    view: list[Message], number: int, untouchable: Collection[str] = (), books: Billing = COLD
) -> PriceRequest:
    return PriceRequest(
        view=view, sent=len(view), number=number, books=books, untouchable=untouchable,
        recall=lambda message_id, part: f"recall({message_id}/{part})", context_limit=200_000,
    )  # fmt: skip


def cut_at(number: int, **options: Any) -> list[Edit]:
    ours, view = thrift(), history(WORK)
    ours.spare_copies(request(view[:3], 1))
    ours.spare_copies(request(view, 2))
    return ours.cut(request(view, number, **options))


def test_dead_results_become_stubs_with_the_call_that_recalls_them() -> None:
    edits = cut_at(30)
    assert [edit.message_id for edit in edits] == ["m2", "m6", "m8"]
    assert [edit.evidence.kind for edit in edits] == ["superseded", "idle", "idle"]
    for edit in edits:
        assert is_tombstone(edit.text)
        assert f"recall({edit.message_id}/0)]" in edit.text.split("\n")[0]


def test_what_must_not_be_touched_is_not() -> None:
    assert [edit.message_id for edit in cut_at(30, untouchable={"m2", "m8"})] == ["m6"]


def test_the_guard_forbids_what_costs_too_much() -> None:
    assert cut_at(30, books=Billing(bill=10_000.0, unpruned_bill=10_000.0, is_cold=True)) == []


def test_what_was_decided_is_not_decided_again() -> None:
    ours, view = thrift(), history(WORK)
    ours.spare_copies(request(view, 1))
    edits = {edit.message_id: edit for edit in ours.cut(request(view, 30))}
    assert len(edits) == 3
    view = [
        replace_text(m, 0, edits[m.message_id].text) if m.message_id in edits else m for m in view
    ]
    ours.settle(view)
    assert ours.cut(request(view, 31)) == []
    ours.reset()
    ours.spare_copies(request(view, 32))
    assert ours.cut(request(view, 60)) == []


def test_when_sizes_change_small_results_are_weighed_again() -> None:
    sizes = {"tokens": 1}
    ours = PriceCollector(HOW, price_sheet("anthropic-5m"), lambda _: sizes["tokens"])
    view = history(WORK)
    ours.spare_copies(request(view, 1))
    assert ours.cut(request(view, 30)) == []
    sizes["tokens"] = 900
    ours.recount()
    assert len(ours.cut(request(view, 30))) > 0
