"""What a session cost in dollars."""

from __future__ import annotations

import json
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxgc.insight import Spend, prices_in_use, session_cost

OPUS, SONNET = "claude-opus-4-1", "claude-sonnet-4-5"
Json = dict[str, Any]


def usage(uncached: int = 0, read: int = 0, write: int = 0, output: int = 0, **more: Any) -> Json:
    """Return a usage as Anthropic writes it."""
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
        **more,
    }


def answer(
    reply: str,
    used: Json,
    *,
    model: str = OPUS,
    at: str = "2026-03-02T09:00:00Z",
    side: bool = False,
) -> Json:
    """Return a line of Claude Code with an answer."""
    block = {"type": "text", "text": "done"}
    message = {"id": reply, "role": "assistant", "model": model, "content": [block], "usage": used}
    return {
        "type": "assistant", "uuid": f"{reply}-{used['output_tokens']}", "parentUuid": None,
        "sessionId": "s", "isSidechain": side, "timestamp": at, "message": message,
    }  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session with two models on two days, a subagent, a streamed answer and a compaction."""
    summary = {"type": "compaction", **usage(uncached=1_000, output=100)}
    lines = [
        answer("a", usage(write=1_000, output=1)),
        answer("b", usage(read=1_000, output=10), model=SONNET, side=True),
        answer("a", usage(write=1_000, output=100)),
        answer(
            "c",
            usage(
                write=3_000,
                cache_creation={"ephemeral_1h_input_tokens": 2_000},
                iterations=[summary],
            ),
            at="2026-03-02T23:30:00Z",
        ),
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_every_request_is_paid_once_at_the_price_of_its_model(session: Path) -> None:
    cost = session_cost(session)
    first = 0.00125 * 15 + 0.0001 * 75
    third = 0.00125 * 15 + 0.004 * 15 + 0.001 * 15 + 0.0001 * 75
    second = 0.0001 * 3 + 0.00001 * 15
    assert cost.main == Spend(
        requests=3, uncached=1_000, cache_write_5m=2_000, cache_write_1h=2_000, output=200,
        dollars=pytest.approx(first + third),
    )  # fmt: skip
    assert cost.subagents == Spend(
        requests=1, cache_read=1_000, output=10, dollars=pytest.approx(second)
    )
    assert cost.total.dollars == pytest.approx(first + second + third)
    assert {name: each.requests for name, each in cost.models.items()} == {OPUS: 3, SONNET: 1}


def test_days_are_those_of_the_zone_that_is_asked_for(session: Path) -> None:
    utc = session_cost(session).days
    east = session_cost(session, zone=timezone(timedelta(hours=2))).days
    assert {day: each.requests for day, each in utc.items()} == {"2026-03-02": 4}
    assert {day: each.requests for day, each in east.items()} == {"2026-03-02": 2, "2026-03-03": 2}


def test_a_model_without_a_price_is_counted_and_said(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(
        json.dumps(answer("a", usage(write=5), model="house-model")) + "\n", encoding="utf-8"
    )
    assert session_cost(path).total == Spend(requests=1, cache_write_5m=5, unpriced=1)


def test_a_price_table_can_be_named_in_the_environment(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "prices.json"
    own.write_text('{"claude": {"input": 0, "output": 0}}', encoding="utf-8")
    monkeypatch.setenv("CTXGC_PRICE_TABLE", str(own))
    before, free = session_cost(session).total, session_cost(session, prices_in_use()).total
    assert free == msgspec.structs.replace(before, dollars=0.0)
