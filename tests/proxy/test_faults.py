"""What goes wrong on either side: the client sees what it would have seen without us, and nothing leaks."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxgc.proxy import ProxyServer
from ctxgc.proxy.usage import UsageReader
from ctxgc.testing import ScriptedModel, StrictServer
from tests.proxy.agents import ClaudeAgent
from tests.proxy.places import KEY, proxied

ASK = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"


class Scripted:
    """A provider that answers every request with the same bytes and then closes the connection."""

    def __init__(self, answer: bytes) -> None:
        self.base_url = ""
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.openai_base_url = self.base_url
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(30)
                connection.recv(1 << 20)
                connection.sendall(self._answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def scripted(answer: bytes) -> Iterator[tuple[Scripted, ProxyServer]]:
    server = Scripted(answer)
    try:
        with proxied(server, context_limit=9_000) as proxy:  # type: ignore[arg-type]
            yield server, proxy
    finally:
        server.close()


def outcome(url: str) -> Any:
    """Return status, encoding and body of a request, or the failure that a client sees."""
    headers = {"authorization": f"Bearer {KEY}", "accept-encoding": "gzip, br"}
    got = b""
    try:
        with httpx2.stream(
            "POST", f"{url}/v1/chat/completions", json=ASK, headers=headers, timeout=60
        ) as said:
            for chunk in said.iter_raw():
                got += chunk
            return said.status_code, said.headers.get("content-encoding"), got
    except httpx2.HTTPError as error:
        return type(error), got


def chunked(*parts: bytes, whole: bool = True) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return body + (b"0\r\n\r\n" if whole else b"")


USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 7}}\n\n'


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"\r\n" + chunked(USAGE, b"data: [DONE]\n\n"),
        HEAD + b"\r\n" + chunked(b"data: {\"usage\": [[[\n\ndata: nonsense\n\n\x00\xff", b": \n"),
        HEAD + b"\r\n" + chunked(USAGE, whole=False),
        HEAD + b"content-encoding: gzip\r\n\r\n" + chunked(gzip.compress(USAGE)),
        HEAD + b"content-encoding: gzip\r\n\r\n" + chunked(b"this was never compressed"),
        HEAD + b"content-encoding: br\r\n\r\n" + chunked(b"\x0b\x02\x80hello\x03"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"usage\": 3",
        b"HTTP/1.1 529 Overloaded\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}",
    ],
    ids=["whole", "malformed", "cut", "gzip", "not gzip", "br", "short", "overloaded"],
)  # fmt: skip
def test_a_client_sees_of_an_answer_what_it_would_see_without_us(answer: bytes) -> None:
    with scripted(answer) as (server, proxy):
        direct = outcome(server.base_url)
        assert outcome(proxy.url) == direct


def test_a_provider_that_closes_at_once_is_an_error_of_the_provider() -> None:
    with scripted(b"") as (_, proxy):
        status, _, body = outcome(proxy.url)
        assert (status, json.loads(body)["error"]["type"]) == (502, "server_error")


def test_a_client_that_stops_in_the_middle_is_told_so() -> None:
    with StrictServer(["fine"]) as server, proxied(server, client_seconds=0.2) as proxy:
        parts = urlsplit(proxy.url)
        with socket.create_connection((str(parts.hostname), int(parts.port or 0)), 60) as client:
            client.sendall(
                b"POST /v1/messages HTTP/1.1\r\nhost: %s\r\ncontent-length: 100\r\n\r\n{"
                % parts.netloc.encode()
            )
            said = b""
            while not said.endswith(b"}}") and (piece := client.recv(65_536)):
                said += piece
        assert said.startswith(b"HTTP/1.1 408 ")
        assert json.loads(said.partition(b"\r\n\r\n")[2])["type"] == "error"
        assert server.requests == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image", "x"])},
    optional={
        "text": JSON, "id": JSON, "tool_use_id": JSON, "name": JSON, "input": JSON, "content": JSON,
        "cache_control": JSON, "signature": JSON,
    },
)  # fmt: skip
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "x"])},
    optional={"content": st.lists(BLOCK, max_size=3) | JSON, "tool_calls": JSON},
)
BODY = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, max_size=4) | JSON},
    optional={
        "model": JSON, "system": JSON, "tools": JSON, "metadata": JSON, "stream": JSON,
        "cache_control": JSON, "prompt_cache_options": JSON, "thread": JSON, "compaction": JSON,
    },
)  # fmt: skip


class Fuzzed:
    """One proxy for all examples, and a provider that refuses nothing."""

    def __enter__(self) -> Any:
        self._server = StrictServer(ScriptedModel(then="fine"), validate=False).start()
        self._proxy = proxied(self._server, context_limit=9_000)
        return self._proxy.__enter__().url, self._server

    def __exit__(self, *failure: object) -> None:
        self._proxy.__exit__(*failure)
        self._server.close()


def test_requests_of_any_shape_get_the_answer_of_the_provider() -> None:
    with Fuzzed() as (url, server), httpx2.Client(timeout=60) as client:

        @settings(
            max_examples=60, deadline=None, database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )  # fmt: skip
        @given(BODY, st.sampled_from(["messages", "chat/completions", "responses"]))
        def sent_as_it_came(body: dict[str, Any], path: str) -> None:
            raw = json.dumps(body, allow_nan=True).encode()
            headers = {"x-api-key": KEY, "content-type": "application/json"}
            through = client.post(f"{url}/v1/{path}", content=raw, headers=headers)
            direct = client.post(f"{server.base_url}/v1/{path}", content=raw, headers=headers)
            assert through.status_code == direct.status_code
            assert KEY not in through.text
            if through.status_code >= 400:
                assert through.content == direct.content

        sent_as_it_came()
        # After all that an honest session is served as ever.
        agent = ClaudeAgent(url, "honest")
        agent.say("read all files")
        agent.work(2)


@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([USAGE, b"data: {", b"usage", b"\n\n"])),
    st.sampled_from(["text/event-stream", "application/json"]),
    st.sampled_from(["", "gzip", "deflate", "br"]),
)
def test_a_stream_of_any_bytes_is_read_without_harm(
    chunks: list[bytes], kind: str, encoding: str
) -> None:
    reader = UsageReader("openai", kind, encoding)
    for chunk in chunks:
        reader.feed(chunk)
    counted = reader.finish().input_tokens
    assert counted is None or (kind == "text/event-stream" and counted == 7)
