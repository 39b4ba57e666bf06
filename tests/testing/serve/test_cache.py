"""The prompt cache counts what a provider would count, byte for byte and breakpoint by breakpoint."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.testing.serve.cache import (
    ANTHROPIC_LOOKBACK,
    OPENAI_STEP,
    CacheUnit,
    CacheUse,
    PrefixCache,
)

A, B, C = (CacheUnit(name, 1_000) for name in (b"a", b"b", b"c"))
HOUR = CacheUnit(b"h", 1_000, "1h")


def marked(unit: CacheUnit) -> CacheUnit:
    return CacheUnit(unit.content, unit.tokens, "5m")


def test_openai_reads_the_longest_known_prefix_in_steps() -> None:
    cache = PrefixCache(1024)
    assert cache.openai("m", [A, B]) == CacheUse(2_000, 0, {"30m": 1_920})
    assert cache.openai("m", [A, B, C]) == CacheUse(3_000, 1_920, {"30m": 1_024})
    assert cache.openai("m", [A, C, B]) == CacheUse(3_000, 0, {"30m": 2_944})


def test_openai_reads_nothing_of_a_prefix_that_is_too_short() -> None:
    cache = PrefixCache(1024)
    cache.openai("m", [A])
    assert cache.openai("m", [A, B]).read == 0


def test_keys_do_not_share_a_cache() -> None:
    cache = PrefixCache(10)
    cache.openai("one", [A, B])
    assert cache.openai("two", [A, B]).read == 0
    assert cache.openai("one", [A, B]).read == 1_920


def test_a_cleared_cache_knows_nothing() -> None:
    cache = PrefixCache(10)
    cache.anthropic("m", [marked(A)])
    cache.clear()
    assert cache.anthropic("m", [marked(A)]) == CacheUse(1_000, 0, {"5m": 1_000})


def test_anthropic_caches_nothing_without_a_breakpoint() -> None:
    cache = PrefixCache(10)
    assert cache.anthropic("m", [A, B]) == CacheUse(2_000)
    assert cache.anthropic("m", [A, B]).fresh == 2_000


def test_anthropic_writes_to_the_last_breakpoint_and_reads_what_was_written() -> None:
    cache = PrefixCache(10)
    assert cache.anthropic("m", [A, marked(B), C]) == CacheUse(3_000, 0, {"5m": 2_000})
    grown = cache.anthropic("m", [A, B, marked(C)])
    assert grown == CacheUse(3_000, 2_000, {"5m": 1_000})
    assert grown.fresh == 0


def test_anthropic_reads_only_what_stood_before_a_breakpoint() -> None:
    cache = PrefixCache(10)
    cache.anthropic("m", [A, B, marked(C)])
    assert cache.anthropic("m", [A, marked(B)]).read == 0


def test_anthropic_loses_all_behind_the_first_changed_byte() -> None:
    cache = PrefixCache(10)
    system = marked(A)
    cache.anthropic("m", [system, B, marked(C)])
    edited = cache.anthropic("m", [system, CacheUnit(b"x", 10), marked(C)])
    assert edited == CacheUse(2_010, 1_000, {"5m": 1_010})


def test_anthropic_looks_back_no_further_than_twenty_blocks() -> None:
    def read(blocks: int) -> int:
        cache = PrefixCache(10)
        cache.anthropic("m", [marked(A)])
        more = [CacheUnit(str(n).encode(), 1) for n in range(blocks)]
        return cache.anthropic("m", [A, *more[:-1], marked(more[-1])]).read

    assert read(ANTHROPIC_LOOKBACK - 1) == 1_000
    assert read(ANTHROPIC_LOOKBACK) == 0


def test_anthropic_keeps_lifetimes_apart() -> None:
    cache = PrefixCache(10)
    assert cache.anthropic("m", [HOUR, marked(B)]).written == {"1h": 1_000, "5m": 1_000}


def test_a_breakpoint_before_enough_tokens_writes_nothing() -> None:
    cache = PrefixCache(1_500)
    assert cache.anthropic("m", [marked(A), B]) == CacheUse(2_000)
    assert cache.anthropic("m", [marked(A), B]).read == 0


REQUESTS = st.lists(
    st.lists(
        st.builds(
            CacheUnit,
            st.sampled_from([b"a", b"b", b"c"]),
            st.just(700),
            st.sampled_from([None, "5m"]),
        ),
        min_size=1,
        max_size=8,
    ),
    max_size=6,
)


@given(REQUESTS)
def test_openai_agrees_with_a_comparison_of_all_earlier_requests(
    requests: list[list[CacheUnit]],
) -> None:
    cache = PrefixCache(1024)
    for now, request in enumerate(requests):
        common = max((_common(request, old) for old in requests[:now]), default=0)
        tokens = common * 700
        wanted = tokens - tokens % OPENAI_STEP if tokens >= 1024 else 0
        assert cache.openai("m", request).read == wanted


@given(REQUESTS)
def test_anthropic_never_counts_a_token_twice(requests: list[list[CacheUnit]]) -> None:
    cache = PrefixCache(1024)
    for request in requests:
        use = cache.anthropic("m", request)
        sizes = list(accumulate(unit.tokens for unit in request))
        marks = [
            size for size, unit in zip(sizes, request, strict=True) if unit.mark and size >= 1024
        ]
        assert use.total == sizes[-1]
        assert use.read + use.written_total == max(marks, default=0)
        assert use.fresh >= 0


def _common(one: list[CacheUnit], two: list[CacheUnit]) -> int:
    pairs = zip(one, two, strict=False)
    return next(
        (n for n, (a, b) in enumerate(pairs) if a.content != b.content), min(len(one), len(two))
    )
