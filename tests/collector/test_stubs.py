"""Stubs: what stays of a tool result, and what can be read from it again."""

from __future__ import annotations

from ctxgc.collector.host import Host, call_that_recalls
from ctxgc.config import GCConfig
from ctxgc.core import is_tombstone, kept_of, short_tombstone
from tests.strategies.build import collect, output_of, size_of, with_results

NARROW = GCConfig(recent_messages=2, recent_user_messages=1, recent_files=0)
NAMES = "\n".join(f"src/pool_{n}.py:{n} lease_counter_{n} = {n}{n}{n}{n}" for n in range(60))


class HostWithHandles(Host):
    """Lends handles, as a session does."""

    def handle(self, segment_id: str) -> str:
        return f"h-{segment_id}"


def test_a_stub_says_how_large_it_was_why_it_left_and_how_it_comes_back() -> None:
    call = call_that_recalls(
        HostWithHandles(recall_call='context_recall(handle="{handle}")'), "s-7"
    )
    text = short_tombstone(420, "cold", recall=call, names=["a_b", "c_d"], kept="one\n[...]\ntwo")
    assert text == (
        '[ctxgc: 420 tokens, cold; context_recall(handle="h-s-7")]\nNames: a_b c_d\none\n[...]\ntwo'
    )
    assert kept_of(text) == "one\ntwo"


def test_without_a_way_back_a_stub_names_none() -> None:
    call = call_that_recalls(Host(), "s-7")
    assert short_tombstone(9, "cold", recall=call, names=[], kept="") == "[ctxgc: 9 tokens, cold]"


def test_names_go_before_messages_do() -> None:
    history = with_results(
        *[(f"make part{n}", NAMES.replace("pool", f"pool{n}")) for n in range(4)]
    )
    little, _ = collect("gc_mark_sweep", history, target=size_of(history) - 1_000, config=NARROW)
    much, result = collect("gc_mark_sweep", history, target=size_of(history) // 5, config=NARROW)
    assert len(much) == len(history)
    assert size_of(much) < size_of(little)
    assert result.shortfall == 0


def test_a_small_result_is_not_worth_a_stub() -> None:
    history = with_results(("ls", "a b c"), ("make", "row " * 300))
    new, _ = collect("gc_mark_sweep", history, target=size_of(history) - 200, config=NARROW)
    assert output_of(new, "m2") == "a b c"
    assert is_tombstone(output_of(new, "m4"))
