"""Who may call the proxy, what it refuses, and that a stream is not held back."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Self

import httpx2
import pytest

from ctxgc.errors import ConfigError
from ctxgc.gate import listening
from ctxgc.proxy import ProxyOptions, ProxyServer, upstreams
from ctxgc.testing import StrictServer
from tests.proxy.places import proxied

ASK = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
KEYS = {"authorization": "Bearer sk-own"}


def test_a_foreign_host_or_origin_is_refused_before_anything_is_sent() -> None:
    with StrictServer(["fine"]) as server, proxied(server) as proxy:
        path = f"{proxy.url}/v1/chat/completions"
        for header, status in (
            ({"host": "evil.example"}, 421),
            ({"origin": "http://evil.example"}, 403),
        ):
            refused = httpx2.post(path, json=ASK, headers={**KEYS, **header})
            assert (refused.status_code, list(refused.json())) == (status, ["error"])
        assert server.requests == []
        own = httpx2.post(path, json=ASK, headers={**KEYS, "origin": proxy.url})
        assert own.status_code == 200


def test_a_token_is_asked_for_and_never_sent_on(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann a-token-of-her-own-1\n")
    tokens.chmod(0o600)
    with (
        StrictServer(["fine"]) as server,
        proxied(server, use_token=True, token_file=str(tokens)) as proxy,
    ):
        path = f"{proxy.url}/v1/chat/completions"
        assert httpx2.post(path, json=ASK, headers=KEYS).status_code == 401
        given = {**KEYS, "x-ctxgc-token": "a-token-of-her-own-1"}
        assert httpx2.post(path, json=ASK, headers=given).status_code == 200
        assert "x-ctxgc-token" not in server.requests[0].headers


def test_other_machines_are_served_only_by_name_and_with_a_token() -> None:
    with pytest.raises(ConfigError, match="needs allowed host names"):
        ProxyServer(ProxyOptions(host="0.0.0.0", port=0, collect=False))


def test_a_request_that_is_too_long_is_refused_in_the_words_of_its_provider() -> None:
    with StrictServer() as server, proxied(server, most_bytes=100) as proxy:
        refused = httpx2.post(f"{proxy.url}/v1/messages", content=b"x" * 101, headers=KEYS)
        assert refused.status_code == 413
        assert refused.json()["error"]["type"] == "request_too_large"
        passed_on = httpx2.post(f"{proxy.url}/v1/files", content=b"x" * 101, headers=KEYS)
        assert passed_on.status_code == 404


def test_a_server_listens_on_a_socket_that_sends_at_once() -> None:
    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_redirects_are_not_followed() -> None:
    answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    with _Raw(answer) as raw, _proxy_of(raw.url) as proxy:
        said = httpx2.post(f"{proxy.url}/v1/messages", json={})
        assert (said.status_code, said.headers["location"]) == (307, "http://127.0.0.1:1/")


def test_the_first_bytes_of_a_stream_arrive_before_its_last_ones_are_sent() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    with (
        _Raw(head + b"5\r\nfirst\r\n", b"4\r\nlast\r\n0\r\n\r\n") as raw,
        _proxy_of(raw.url) as proxy,
        httpx2.stream("POST", f"{proxy.url}/v1/messages", json={}) as said,
    ):
        chunks = said.iter_raw()
        assert next(chunks) == b"first"
        raw.go_on.set()
        assert b"".join(chunks) == b"last"


def test_a_client_that_goes_away_ends_the_request_upstream() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    with _Raw(head + b"5\r\nfirst\r\n", b"") as raw, _proxy_of(raw.url) as proxy:
        with httpx2.stream("POST", f"{proxy.url}/v1/messages", json={}) as said:
            assert next(said.iter_raw()) == b"first"
        assert raw.is_left.wait(30)


@pytest.mark.parametrize(
    "named", ["gemini=http://x", "openai", "openai=ftp://x", "openai=http://u:p@x/"]
)
def test_an_upstream_must_be_a_known_provider_and_an_address_without_a_key(named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        upstreams([named])
    assert "u:p" not in str(refused.value)


def test_an_upstream_may_end_in_v1_and_have_a_path() -> None:
    found = upstreams(["openai=http://gate.example/team/v1/"])
    assert found == {"anthropic": "https://api.anthropic.com", "openai": "http://gate.example/team"}


def _proxy_of(url: str) -> ProxyServer:
    return ProxyServer(
        ProxyOptions(port=0, collect=False, upstreams={"anthropic": url, "openai": url})
    )


class _Raw:
    """A provider that says exactly these bytes, the second part only when it may."""

    def __init__(self, first: bytes, second: bytes | None = None) -> None:
        self._first, self._second = first, second
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.go_on, self.is_left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._thread.join(30)
        self._socket.close()

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            connection.settimeout(30)
            connection.recv(65_536)
            connection.sendall(self._first)
            if self._second is None:
                return
            if self._second:
                self.go_on.wait(30)
                connection.sendall(self._second)
            else:
                while connection.recv(65_536):
                    pass
                self.is_left.set()
