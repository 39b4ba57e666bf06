"""Which session a request belongs to: the agent's own id first, else how the conversation begins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.proxy.dialect import Route, route_of
from ctxgc.proxy.identity import identity_of
from ctxgc.proxy.request_body import RequestBody

HISTORY = [{"role": "user", "content": "hi"}]
DEVICE = json.dumps({"device_id": "d", "account_uuid": "a", "session_id": "new-form"})


def identity(headers: dict[str, str] | None = None, **fields: Any) -> str:
    asked = {"messages": HISTORY, **fields}
    return identity_of(RequestBody(json.dumps(asked).encode(), "anthropic"), headers or {}, "ann")


@pytest.mark.parametrize(
    ("fields", "headers", "expected"),
    [
        ({"metadata": {"user_id": "user_ab_account__session_old-form"}}, {}, "old-form"),
        ({"metadata": {"user_id": DEVICE}}, {}, "new-form"),
        ({"client_metadata": {"session_id": "root", "thread_id": "own"}}, {}, "own"),
        ({"thread_id": "t-1"}, {}, "t-1"),
        ({}, {"x-claude-code-session-id": "header"}, "header"),
        ({}, {"session_id": "codex"}, "codex"),
        ({"metadata": {"user_id": DEVICE}}, {"x-ctxgc-session": "mine"}, "mine"),
    ],
)
def test_the_id_of_the_agent_is_the_id_of_the_session(
    fields: dict[str, Any], headers: dict[str, str], expected: str
) -> None:
    assert identity(headers, **fields) == f"ann:{expected}"


@pytest.mark.parametrize("bad", ["../../etc", "...", "a b", "x" * 129, "", DEVICE * 20])
def test_an_id_that_cannot_be_a_key_falls_back_to_how_the_conversation_begins(bad: str) -> None:
    assert identity({"x-ctxgc-session": bad}, metadata={"user_id": bad}) == identity()


def test_without_an_id_the_beginning_decides_and_what_comes_later_does_not() -> None:
    more = [*HISTORY, {"role": "assistant", "content": "yes?"}]
    assert identity(messages=more, prompt_cache_key="k", model="other") == identity()
    others = [
        identity(messages=[{"role": "user", "content": "ho"}]),
        identity(system="be kind"),
        identity({"x-api-key": "of another user"}),
    ]
    assert len({identity(), *others}) == 4


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/v1/messages", {}, Route(provider="anthropic", kind="history", format="anthropic")),
        ("/chat/completions", {}, Route(provider="openai", kind="history", format="openai")),
        ("/v1/responses", {}, Route(provider="openai", kind="history", format="responses")),
        (
            "/v1/responses/compact",
            {},
            Route(provider="openai", kind="compaction", format="responses"),
        ),
        ("/v1/messages/count_tokens", {}, Route(provider="anthropic")),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, Route(provider="anthropic")),
        ("/v1/models", {}, Route(provider="openai")),
    ],
)
def test_a_path_and_headers_say_whose_request_it_is(
    path: str, headers: dict[str, str], expected: Route
) -> None:
    assert route_of("POST", path, headers) == expected
