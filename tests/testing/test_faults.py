"""Faults on order reach the SDKs as the failures of a real provider."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
import pytest

from ctxgc.testing import ScriptedModel, StrictServer
from tests.testing.builders import user
from tests.testing.conftest import PATIENCE

HELLO: Any = [user("hello")]


def test_a_rate_limit_names_when_to_come_back(
    server: StrictServer, chat: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    server.fail_next(429, n=2, retry_after=7)
    with pytest.raises(openai.RateLimitError) as refused:
        chat.chat.completions.create(model="m", messages=HELLO)
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.code == "rate_limit_exceeded"
    with pytest.raises(anthropic.RateLimitError, match="rate_limit_error"):
        claude.messages.create(model="m", max_tokens=9, messages=HELLO)


def test_an_overloaded_provider_is_its_own_error(
    server: StrictServer, claude: anthropic.Anthropic
) -> None:
    server.fail_next(529)
    with pytest.raises(anthropic.InternalServerError, match="overloaded_error") as refused:
        claude.messages.create(model="m", max_tokens=9, messages=HELLO)
    assert refused.value.status_code == 529


def test_a_failure_passes_and_a_retry_is_answered(
    model: ScriptedModel, server: StrictServer
) -> None:
    model.extend(["at last"])
    server.fail_next(500, n=2, message="not now", retry_after=0.01)
    with openai.OpenAI(
        base_url=server.openai_base_url, api_key="any", max_retries=2, timeout=PATIENCE
    ) as patient:
        answer = patient.chat.completions.create(model="m", messages=HELLO)
    assert answer.choices[0].message.content == "at last"
    assert [refusal.breaches[0].message for refusal in server.refusals] == ["not now", "not now"]
    assert len(server.requests) == 1


def test_a_slow_answer_runs_into_the_clients_timeout(
    model: ScriptedModel, server: StrictServer, chat: openai.OpenAI
) -> None:
    model.extend(["too late"])
    server.delay_next(60)
    with pytest.raises(openai.APITimeoutError):
        chat.with_options(timeout=0.05).chat.completions.create(model="m", messages=HELLO)


def test_a_delayed_answer_arrives_when_the_client_waits(
    model: ScriptedModel, server: StrictServer, chat: openai.OpenAI
) -> None:
    model.extend(["in time"])
    server.delay_next(0.01)
    answer = chat.chat.completions.create(model="m", messages=HELLO)
    assert answer.choices[0].message.content == "in time"


def test_a_stream_cut_midway_is_a_broken_connection(
    model: ScriptedModel, server: StrictServer, chat: openai.OpenAI
) -> None:
    model.extend(["a long answer " * 20])
    server.cut_next(after_events=3)
    stream = chat.chat.completions.create(model="m", messages=HELLO, stream=True)
    got: list[str] = []
    with pytest.raises(openai.APIConnectionError):
        got.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert len(server.requests) == 1


def test_a_cut_message_stream_has_no_end(
    model: ScriptedModel, server: StrictServer, claude: anthropic.Anthropic
) -> None:
    model.extend(["a long answer " * 20])
    server.cut_next(after_events=4)
    types: list[str] = []
    stream = claude.messages.create(model="m", max_tokens=99, messages=HELLO, stream=True)
    with pytest.raises(httpx2.RemoteProtocolError):
        types.extend(event.type for event in stream)
    assert "message_stop" not in types


def test_a_whole_answer_can_be_cut_too(
    model: ScriptedModel, server: StrictServer, chat: openai.OpenAI
) -> None:
    model.extend(["never read"])
    server.cut_next()
    with pytest.raises(openai.APIConnectionError):
        chat.chat.completions.create(model="m", messages=HELLO)


def test_faults_meet_requests_in_the_order_they_were_planned(
    model: ScriptedModel, server: StrictServer, chat: openai.OpenAI
) -> None:
    model.extend(["fine"])
    server.fail_next(503)
    server.fail_next(500)
    seen = []
    for _ in range(2):
        with pytest.raises(openai.InternalServerError) as refused:
            chat.chat.completions.create(model="m", messages=HELLO)
        seen.append(refused.value.status_code)
    assert seen == [503, 500]
    assert chat.chat.completions.create(model="m", messages=HELLO).choices[0].message.content
