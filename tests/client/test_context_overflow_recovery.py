"""The whole ladder after a refusal: emergency checkpoint, collection, minimal context, checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ctxgc.client import ChatClient
from ctxgc.errors import ContextOverflowError
from ctxgc.testing import ScriptedModel, StrictServer
from ctxgc.wire import render
from tests.client.talk import PROVIDERS, connected

# The session believes in a window that is larger than the real one.
BELIEVED = 40_000
REAL = 4_000


def words(count: int, about: str) -> str:
    """Return so many words, each at least a token."""
    return f"{about} " * count


READ = {"name": "read_file", "arguments": '{"path": "big.py"}'}
READING = [
    {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": READ}]},
    {"role": "tool", "tool_call_id": "c1", "content": words(4_800, "source")},
    {"role": "assistant", "content": "read"},
]


@contextmanager
def talking(provider: str = "openai", **options: Any) -> Iterator[tuple[ChatClient, StrictServer]]:
    """Give a client that believes in more room than its server has."""
    model = ScriptedModel(then="answered")
    given = {"context_limit": BELIEVED, "recall": False, **options}
    with (
        StrictServer(model, context_limit=REAL, count_output=False) as server,
        connected(server, provider, **given) as client,
    ):
        yield client, server


def told(client: ChatClient, *turns: tuple[str, str]) -> None:
    """Let these requests and answers have been said."""
    conversation = client.session
    for request, answer in turns:
        conversation.append({"role": "user", "content": request})
        conversation.append({"role": "assistant", "content": answer})


def triggers(client: ChatClient) -> list[tuple[str, ...]]:
    return [info.triggers for info in client.session.checkpoints()]


def sent(server: StrictServer) -> list[str]:
    """Return the texts of the messages of the request that was answered last."""
    return [str(message["content"]) for message in server.requests[-1].body["messages"]]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_context_overflow_recovery(provider: str) -> None:
    """Refusal, parse, emergency checkpoint, collect, validate, retry."""
    with talking(provider) as (client, server):
        for number in range(12):
            assert client.send_message(words(600, f"note{number}")) == "answered"
        assert {b.rule for refusal in server.refusals for b in refusal.breaches} == {"too_long"}
        assert ("emergency",) in triggers(client)
        kept = "\n".join(segment.text for segment in client.session.segments())
        assert all(words(600, f"note{number}") in kept for number in range(12))


def test_context_overflow_recovery_by_the_minimal_context() -> None:
    """The active file is a root of every strategy; it leaves only when nothing else helps."""
    with talking() as (client, server):
        client.session.append({"role": "user", "content": "ask 0"})
        client.session.extend(READING)
        told(client, ("ask 1", "fine"))
        client.session.set_active_file("big.py")
        before = client.session.view()
        assert client.send_message("and now?") == "answered"
        assert len(server.refusals) == 1
        assert sent(server) == ["ask 0", "fine", "and now?"]
        client.session.restore(client.session.checkpoints()[0].checkpoint_id)
        assert client.session.view() == [*before, {"role": "user", "content": "and now?"}]


def test_context_overflow_recovery_by_the_last_checkpoint() -> None:
    """The last work alone is too large: back to the checkpoint, essentials only, and the request."""
    with talking() as (client, server):
        told(client, ("ask 0", "short"), ("ask 1", "brief"))
        checkpoint = client.session.checkpoint("good")
        told(client, ("ask 2", words(9_000, "endless")))
        assert client.send_message("and now?") == "answered"
        assert len(server.refusals) == 1
        assert sent(server) == ["ask 0", "and now?"]
        assert checkpoint.checkpoint_id in {c.checkpoint_id for c in client.session.checkpoints()}
        assert words(9_000, "endless") in {s.text for s in client.session.segments()}


def test_context_overflow_recovery_gives_up_and_names_what_does_not_fit() -> None:
    with talking() as (client, server):
        told(client, ("ask 0", "short"))
        before = client.session.view()
        with pytest.raises(ContextOverflowError, match="what must stay has") as caught:
            client.send_message(words(9_000, "enormous"))
        assert len(server.refusals) == 1
        assert server.requests == []
        assert caught.value.details["parts"][0]["name"].startswith("user message ")
        # In the session's own tokens: the provider counts a few more for the same view.
        assert REAL - 50 < caught.value.details["limit"] <= REAL
        client.session.restore(client.session.checkpoints()[0].checkpoint_id)
        assert client.session.view()[:-1] == before


def test_each_retry_is_strictly_smaller_and_there_are_at_most_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with talking() as (client, server):
        told(client, *((f"ask {n}", words(1_200, f"reply{n}")) for n in range(9)))
        sizes: list[int] = []
        session = client.session
        honest = session.messages

        def watched(*args: Any) -> list[dict[str, Any]]:
            view = honest(*args)
            sizes.append(session.usage().total_tokens)
            return view

        monkeypatch.setattr(session, "messages", watched)
        assert client.send_message("and now?") == "answered"
        assert sizes == sorted(set(sizes), reverse=True)
        assert len(server.refusals) == len(sizes) - 1
        assert 2 <= len(sizes) <= 4
        assert render(session.history) == session.view()
