"""The socket of gateways: rows come back in their number and order, and what left is recalled by its hash."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ctxgc.testing import StrictServer
from tests.proxy.agents import output
from tests.proxy.places import proxied

STEPS = 20
LIMIT = 12_000
HASH = re.compile(r'hash="([a-f0-9]{20})"')


def rows(steps: int) -> list[dict[str, Any]]:
    """Return what LiteLLM sends: no answers of the model, and not the newest request of the user."""
    found: list[dict[str, Any]] = []
    newest = (steps - 1) // STEPS
    for n in range(steps):
        if not n % STEPS and n // STEPS < newest:
            found.append({"role": "user", "content": f"read the files of part {n // STEPS}"})
        found.append({"role": "tool", "tool_call_id": f"c{n}", "content": output(n)})
    return found


def compress(
    url: str, messages: list[dict[str, Any]], model: str = "gpt-4o", **headers: str
) -> dict[str, Any]:
    asked = {"messages": messages, "model": model, "config": {"mode": "ccr"}}
    said = httpx2.post(f"{url}/v1/compress", json=asked, headers=headers, timeout=60)
    assert said.status_code == 200, said.text
    return dict(said.json())


def short(rows_: list[dict[str, Any]]) -> list[int]:
    """Return the numbers of the results that did not come back whole, each checked to name its hash."""
    results = [row for row in rows_ if row["role"] == "tool"]
    gone = [n for n, row in enumerate(results) if row["content"] != output(n)]
    assert all("headroom_retrieve(hash=" in results[n]["content"] for n in gone)
    return gone


def recalled(url: str, hash_: str, **headers: str) -> tuple[int, Any]:
    said = httpx2.get(f"{url}/v1/retrieve/{hash_}", params={"query": "value"}, headers=headers)
    return said.status_code, said.json().get("original_content")


def test_results_make_room_each_in_its_own_row_and_are_recalled_by_their_hash() -> None:
    with StrictServer() as server, proxied(server, context_limit=LIMIT) as proxy:
        for steps in range(1, 46):
            sent = rows(steps)
            answer = compress(proxy.url, sent)
            now = answer["messages"]
            assert [(row["role"], row.get("tool_call_id")) for row in now] == [
                (row["role"], row.get("tool_call_id")) for row in sent
            ]
            assert answer["tokens_after"] < LIMIT
        gone = short(now)
        # The oldest left the view altogether, and keep their rows all the same.
        assert gone[:38] == list(range(38))
        assert answer["tokens_before"] > 3 * LIMIT
        assert answer["compression_ratio"] == answer["tokens_after"] / answer["tokens_before"]
        hashes = [HASH.findall(row["content"])[0] for row in now if "hash=" in row["content"]]
        assert set(hashes) <= set(answer["ccr_hashes"])
        for number in (gone[0], gone[-1]):
            assert recalled(proxy.url, hashes[number]) == (200, output(number))
        assert server.requests == []


def test_all_results_come_back_as_they_came_while_there_is_room() -> None:
    with StrictServer() as server, proxied(server) as proxy:
        for steps in (1, 2, 3, 12):
            answer = compress(proxy.url, rows(steps))
            assert answer["messages"] == rows(steps)
            assert (answer["compression_ratio"], answer["ccr_hashes"]) == (1.0, [])


def test_what_left_stays_left_after_a_restart(tmp_path: Path) -> None:
    store, before = f"sqlite:{tmp_path / 'sessions.db'}", {}
    with StrictServer() as server:
        with proxied(server, context_limit=LIMIT, store=store) as proxy:
            for steps in range(1, 43):
                before = compress(proxy.url, rows(steps))
        with proxied(server, context_limit=LIMIT, store=store) as proxy:
            assert compress(proxy.url, rows(42)) == before
            assert recalled(proxy.url, before["ccr_hashes"][0])[0] == 200


@pytest.mark.parametrize(
    ("options", "model"),
    [({"context_limit": LIMIT, "observe": True}, "gpt-4o"), ({}, "a-model-of-nobody")],
    ids=["observed", "unknown window"],
)
def test_rows_come_back_as_they_came_where_nothing_may_leave(
    options: dict[str, Any], model: str
) -> None:
    with StrictServer() as server, proxied(server, **options) as proxy:
        for steps in (1, *range(10, 16)):
            assert compress(proxy.url, rows(steps), model)["messages"] == rows(steps)


def test_sessions_of_a_gateway_are_kept_apart_by_its_affinity() -> None:
    with StrictServer() as server, proxied(server, context_limit=LIMIT) as proxy:
        for steps in range(1, 13):
            answer = compress(proxy.url, rows(steps), **{"x-headroom-affinity": "a"})
        hash_ = answer["ccr_hashes"][0]
        compress(proxy.url, rows(1), **{"x-headroom-affinity": "b"})
        found = [recalled(proxy.url, hash_, **{"x-headroom-affinity": name})[0] for name in "ab"]
        assert found == [200, 404]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages": 1}', b'{"messages": [1]}'])
def test_what_no_gateway_says_is_refused(body: bytes) -> None:
    with StrictServer() as server, proxied(server) as proxy:
        refused = httpx2.post(f"{proxy.url}/v1/compress", content=body)
        assert (refused.status_code, list(refused.json())) == (400, ["error"])


@pytest.mark.parametrize("hash_", ["zz", "0" * 20, "../state", "A" * 20])
def test_an_unknown_hash_is_not_found(hash_: str) -> None:
    with StrictServer() as server, proxied(server) as proxy:
        assert httpx2.get(f"{proxy.url}/v1/retrieve/{hash_}").status_code in (404, 401)
        odd: list[dict[str, Any]] = [
            {"role": "tool", "content": None},
            {"role": "tool", "tool_call_id": 1, "content": "x"},
        ]
        assert compress(proxy.url, odd)["messages"] == odd


def test_a_gateway_shows_its_token_as_a_key(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("gate a-token-of-a-gateway\n")
    tokens.chmod(0o600)
    with StrictServer() as server, proxied(server, use_token=True, token_file=str(tokens)) as proxy:
        asked = json.dumps({"messages": rows(1)})
        known = {"authorization": "Bearer a-token-of-a-gateway"}
        codes = [
            httpx2.post(f"{proxy.url}/v1/compress", content=asked, headers=headers).status_code
            for headers in ({}, known)
        ]
        assert codes == [401, 200]
        # On the way to a provider that header is the key of the client.
        path = f"{proxy.url}/v1/chat/completions"
        assert httpx2.post(path, json={}, headers=known).status_code == 401
