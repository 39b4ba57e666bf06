"""The server over streamable HTTP: only known callers, by known names, each in a context of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from starlette.testclient import TestClient

from ctxgc.errors import ConfigError, CtxgcError
from ctxgc.gate import FIRST, read_tokens
from ctxgc.mcp import NewSegment, ServerOptions
from ctxgc.mcp.server import build_server
from ctxgc.mcp.start import allowed_hosts_of
from ctxgc.mcp.transport import CALLER, Callers, depth_of, http_app
from ctxgc.stores import SearchFilters
from tests.mcp.clients import MODES, call, fail, http_client, http_server, over_http, run
from tests.mcp.contexts import make, opened

PORT = 8423
TOKENS = {FIRST: "first-token-0123456789", "guest": "guest-token-0123456789"}
PING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@pytest.fixture
def web() -> Iterator[TestClient]:
    """An application in this process, spoken to as 127.0.0.1:8423."""
    store = opened()
    callers = Callers(TOKENS, lambda name: make(store, session=f"mcp/{name}", alone=False))
    server = build_server(lambda ctx: callers.service(ctx.request.scope[CALLER]))
    app = http_app(server, callers, port=PORT, most_bytes=50_000)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


def _post(web: TestClient, token: str = TOKENS[FIRST], **headers: str) -> httpx2.Response:
    known = {
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {token}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return web.post("/mcp", json=PING, headers={k: v for k, v in known.items() if v})


def test_a_known_caller_is_let_in(web: TestClient) -> None:
    assert _post(web).status_code == 200
    assert _post(web, origin=f"http://localhost:{PORT}").status_code == 200
    assert _post(web, host=f"[::1]:{PORT}").status_code == 200


HOSTS = [
    "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1.:{PORT}",
    f"127.0.0.1.evil.example:{PORT}", f"evil.127.0.0.1:{PORT}", f"user@127.0.0.1:{PORT}",
    f"127.0.0.1:{PORT}@evil.example", f"127.0.0.1:{PORT}.evil.example", f"LOCALHOST.:{PORT}",
    f"localhost:{PORT}:80", f"0.0.0.0:{PORT}", f"127.1:{PORT}", f"2130706433:{PORT}", "localhost",
    f"[::ffff:127.0.0.1]:{PORT}", f"[::]:{PORT}", f"::1:{PORT}", f"localhost\t:{PORT}", f"127.0.0.1:{PORT}/",
    f"127.0.0.1:0{PORT}", f"127.0.0.1:+{PORT}", f"127.0.0.1:{PORT}#", f"127.0.0.1:{PORT}?x", "-", "*", "null",
]  # fmt: skip
ORIGINS = [
    "null", "http://evil.example", f"http://evil.example:{PORT}", "https://127.0.0.1", "http://127.0.0.1",
    f"https://127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}.evil.example", f"http://127.0.0.1:{PORT}/",
    f"http://127.0.0.1.evil.example:{PORT}", f"http://user@127.0.0.1:{PORT}", f"http://localhost.:{PORT}",
    f"http://[::ffff:7f00:1]:{PORT}", f"HTTP://127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT + 1}", "file://",
    f"http://0.0.0.0:{PORT}", f"http://localhost:{PORT}@evil.example", "chrome-extension://abc",
    "about:blank",
    f"http://LOCALHOST:{PORT}", f"ws://127.0.0.1:{PORT}", f"//127.0.0.1:{PORT}", f"127.0.0.1:{PORT}", "*",
]  # fmt: skip
TOKENS_WRONG = [
    "", "x", TOKENS[FIRST][:-1], TOKENS[FIRST] + "x", TOKENS[FIRST].upper(), " ", "null", "Bearer", "é",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_a_foreign_host_is_refused(web: TestClient, host: str) -> None:
    assert _post(web, host=host).status_code == 421


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_foreign_origin_is_refused(web: TestClient, origin: str) -> None:
    assert _post(web, origin=origin).status_code == 403


@pytest.mark.parametrize("token", TOKENS_WRONG)
def test_without_its_token_nobody_is_let_in(web: TestClient, token: str) -> None:
    refused = web.post("/mcp", json=PING, headers=[(b"authorization", f"Bearer {token}".encode())])
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert refused.json()["error"]["code"] == "refused"


@pytest.mark.parametrize(
    "header", [None, "Basic Zmlyc3Q6eA==", f"Token {TOKENS[FIRST]}", TOKENS[FIRST]]
)
def test_only_a_bearer_token_counts(web: TestClient, header: str | None) -> None:
    headers = {"authorization": header} if header else {}
    assert web.post("/mcp", json=PING, headers=headers).status_code == 401


def test_every_path_and_method_is_guarded(web: TestClient) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT"):
        for path in ("/", "/mcp", "/mcp/", "/other"):
            assert web.request(method, path, headers={"host": "evil.example"}).status_code == 421
            assert web.request(method, path).status_code == 401


def test_long_and_deep_requests_are_refused(web: TestClient) -> None:
    headers = {"authorization": f"Bearer {TOKENS[FIRST]}", "content-type": "application/json"}
    long = json.dumps({**PING, "more": "x" * 60_000})
    assert web.post("/mcp", content=long, headers=headers).status_code == 413
    deep = '{"a":' * 100 + "1" + "}" * 100
    assert web.post("/mcp", content=deep, headers=headers).status_code == 400
    assert _post(web).status_code == 200


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("", 0),
        ("1", 0),
        ("[]", 1),
        ('{"a":[[]]}', 3),
        ('["[[[["]', 1),
        ('["\\"[[", {}]', 2),
        ("]][", 0),
    ],
)
def test_depth_is_that_of_the_brackets_outside_strings(text: str, depth: int) -> None:
    assert depth_of(text.encode()) == depth


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_drives_every_tool_over_http(tmp_path: Path, mode: str) -> None:
    (tmp_path / "t.jsonl").write_text('{"role": "user", "content": "imported"}\n', encoding="utf-8")
    long = "\n".join(f"wrote src/file_{n}.py" for n in range(80))

    async def work(url: str, token: str) -> set[str]:
        with http_client(token) as http:
            async with http, Client(over_http(url, http), mode=mode) as client:
                segments = [{"text": long, "name": "a", "type": "log"}]
                segments += [{"text": f"note number{n}"} for n in range(15)]
                await call(client, "context_ingest", segments=segments)
                await call(client, "context_import", path=str(tmp_path / "t.jsonl"))
                await call(client, "context_usage")
                await call(client, "context_search", query="number3")
                await call(client, "context_task", task_id="t")
                await call(client, "context_gc_configure", batch=7)
                await call(client, "context_gc_pin", segment_ids=["number3"])
                await call(client, "context_gc_unpin", segment_ids=["number3"])
                await call(client, "context_checkpoint", label="one")
                short = await call(client, "context_compress", segment_ids=["a"])
                await call(client, "context_expand", segment_id=short["summary_id"])
                plan = (await call(client, "context_gc_analyze"))["plan"]
                pruned = await call(client, "context_gc_prune", plan_id=plan["plan_id"])
                await call(client, "context_recall", handle=pruned["stashed"][0])
                await call(client, "context_checkpoint", action="restore", label="one")
                assert (await fail(client, "context_recall", handle="nobody"))["hint"]
                assert (await client.read_resource("ctxgc://usage")).contents
                return {tool.name for tool in (await client.list_tools()).tools}

    with http_server(tmp_path) as (url, token):
        assert len(run(lambda: work(url, token))) == 14
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600


def test_no_caller_can_use_what_belongs_to_another() -> None:
    """The cross matrix of eight: no handle, id, plan, checkpoint or search of one works for another."""
    store = opened()
    callers = Callers(None, lambda name: make(store, session=f"mcp/{name}", alone=False))
    names = [f"caller{n}" for n in range(8)]
    loot = {}
    for name in names:
        service = callers.service(name)
        secrets = [NewSegment(text=f"secret of {name} number{n}", type="log") for n in range(15)]
        done = service.ingest(secrets, ())
        loot[name] = {
            "plan": service.analyze()["plan"]["plan_id"],
            "id": done["segment_ids"][0],
            "handle": service.segment(done["segment_ids"][0])["handle"],
            "checkpoint": service.checkpoint(f"of {name}")["checkpoint_id"],
        }
    for thief in map(callers.service, names):
        own = thief.search("secret", SearchFilters(), 1, 0)["hits"][0]["excerpt"].split()[2]
        for name in names:
            if name == own:
                continue
            theirs = loot[name]
            attempts = (
                partial(thief.prune, plan_id=theirs["plan"]),
                partial(thief.recall, theirs["id"]),
                partial(thief.recall, theirs["handle"]),
                partial(thief.restore, theirs["checkpoint"]),
                partial(thief.restore, f"of {name}"),
            )
            for attempt in attempts:
                with pytest.raises(CtxgcError):
                    attempt()
            found = thief.search(f"secret {name}", SearchFilters(), 50, 0)["hits"]
            assert all(f"of {own} " in hit["excerpt"] for hit in found)


def test_the_token_decides_whose_context_it_is(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("".join(f"{n} {t}\n" for n, t in TOKENS.items()), encoding="utf-8")
    file.chmod(0o600)

    async def put_in(url: str, name: str) -> str:
        with http_client(TOKENS[name]) as http:
            async with http, Client(over_http(url, http)) as client:
                await call(
                    client, "context_ingest", segments=[{"text": f"of {name}", "name": name}]
                )
                found = await call(client, "context_search", query="of")
                assert [hit["name"] for hit in found["hits"]] == [name]
                return str(found["hits"][0]["handle"])

    async def steal(url: str, thief: str, handle: str) -> None:
        with http_client(TOKENS[thief]) as http:
            async with http, Client(over_http(url, http)) as client:
                await fail(client, "context_recall", handle=handle)

    with http_server(tmp_path) as (url, _):
        first = run(lambda: put_in(url, FIRST))
        run(lambda: put_in(url, "guest"))
        run(lambda: steal(url, "guest", first))


def test_a_session_of_the_old_protocol_belongs_to_its_caller(web: TestClient) -> None:
    session = _post(web).headers["mcp-session-id"]
    theirs = _post(web, TOKENS["guest"], mcp_session_id=session)
    assert theirs.status_code in (403, 404)


def test_a_token_is_made_once_and_kept_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "state" / "mcp.token"
    first = read_tokens(path)
    assert read_tokens(path) == first
    assert [*first] == [FIRST]
    assert len(first[FIRST]) >= 40
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("short\n", "line 1 is wrong"),
        ("a b c\n", "line 1 is wrong"),
        ("a 0123456789abcdef\na fedcba9876543210\n", "line 2 repeats"),
        ("a 0123456789abcdef\nb 0123456789abcdef\n", "line 2 repeats"),
    ],
)
def test_a_wrong_token_file_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=why):
        read_tokens(path)


def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("a 0123456789abcdef\n", encoding="utf-8")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="others may read"):
        read_tokens(path)


@pytest.mark.parametrize(
    "options",
    [
        ServerOptions(host="0.0.0.0"),
        ServerOptions(host="0.0.0.0", use_token=False, allowed_hosts=("box",)),
        ServerOptions(host="192.168.1.5"),
    ],
)
def test_serving_others_needs_a_token_and_a_name(options: ServerOptions) -> None:
    with pytest.raises(CtxgcError):
        allowed_hosts_of(options)


def test_loopback_may_go_without_a_token() -> None:
    assert allowed_hosts_of(ServerOptions(use_token=False)) == ("127.0.0.1", "localhost", "[::1]")
    assert allowed_hosts_of(ServerOptions(host="0.0.0.0", allowed_hosts=("box",))) == ("box",)
