"""Starting a server from options: which context, which store, who may call; and what its schemas cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
from starlette.types import ASGIApp

from ctxgc.config import SessionSettings, load_config
from ctxgc.gate import FIRST, address, allowed_hosts, listening, read_tokens
from ctxgc.insight import OwnSession
from ctxgc.mcp.context import AgentWindow
from ctxgc.mcp.server import build_server, listed
from ctxgc.mcp.service import DEFAULT_SESSION, ContextService
from ctxgc.mcp.tools import PROFILES, Profile, tools_of
from ctxgc.mcp.transport import (
    CALLER,
    PATH,
    Callers,
    ProtocolStdout,
    http_app,
    serve_stdio,
)
from ctxgc.places import state_folder, user_store
from ctxgc.session import ExactCounter, Store, open_store


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is started with; None leaves the choice to environment, file and defaults."""

    store: str | None = None
    session: str = DEFAULT_SESSION
    context_limit: int | None = None
    model: str | None = None
    roots: tuple[str, ...] = ()
    tools: Profile = "full"
    agent: str | None = None
    host: str = "127.0.0.1"
    port: int = 8423
    token_file: str | None = None
    use_token: bool = True
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


def open_service(
    options: ServerOptions, store: Store, caller: str = FIRST, *, own: OwnSession | None = None
) -> ContextService:
    """Return the context of a caller; that of the first has the session's own name."""
    session = options.session if caller == FIRST else f"{options.session}/{caller}"
    said = SessionSettings.from_env()
    return ContextService(
        store,
        session,
        config=load_config(),
        context_limit=options.context_limit or said.context_limit,
        roots=options.roots or default_roots(),
        model=options.model,
        alone=caller == FIRST,
        window=AgentWindow(own, has_agent=options.agent is not None),
    )


def run_stdio(options: ServerOptions, stdout: ProtocolStdout) -> None:
    """Serve the client that started this process."""
    service = open_service(options, _store(options), own=OwnSession(_store_url(options)))
    service.usage()  # a store that cannot be read is reported now, not at the first call
    try:
        serve_stdio(build_server(lambda _: service, options.tools), stdout)
    finally:
        service.close()


def run_http(options: ServerOptions) -> None:
    """Serve all callers with a token until the process ends."""
    import uvicorn  # noqa: PLC0415 (only HTTP needs it)

    said = callers_note(options)
    with listening(options.host, options.port) as listener:
        app = mcp_app(options, listener.getsockname()[1])
        sys.stderr.write(f"ctxgc mcp serves {address(listener, options.host)}{PATH}; {said}\n")
        sys.stderr.flush()
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")
        uvicorn.Server(config).run(sockets=[listener])


def mcp_app(options: ServerOptions, port: int) -> ASGIApp:
    """Return an application that serves MCP at `/mcp` of a port, to all callers with a token.

    What it opened is closed when its lifespan ends.
    """
    hosts = allowed_hosts_of(options)
    tokens = read_tokens(token_path(options)) if options.use_token else None
    store = _store(options)
    callers = Callers(tokens, lambda name: open_service(options, store, name))
    callers.service(FIRST).usage()
    server = build_server(
        lambda ctx: callers.service(ctx.request.scope[CALLER]),  # type: ignore[union-attr] # HTTP has one
        options.tools,
    )
    return http_app(server, callers, port=port, hosts=hosts, origins=options.allowed_origins)


def callers_note(options: ServerOptions) -> str:
    """Return what callers need to show, in words."""
    return f"bearer tokens in {token_path(options)}" if options.use_token else "without a token"


def default_roots() -> tuple[Path, ...]:
    """Return where transcripts may be: the working directory, and where coding agents keep theirs."""
    return (Path.cwd(), Path.home() / ".claude" / "projects", Path.home() / ".codex" / "sessions")


def token_path(options: ServerOptions) -> Path:
    """Return the file with the bearer tokens: the given one, else one in the user's state folder."""
    if options.token_file is not None:
        return Path(options.token_file)
    return Path(state_folder()) / "mcp.token"


def allowed_hosts_of(options: ServerOptions) -> tuple[str, ...]:
    """Return the allowed host names.

    Raises:
        ConfigError: it would serve other machines without a token or without an allowed host.
    """
    return allowed_hosts(options.host, options.allowed_hosts, use_token=options.use_token)


def _store(options: ServerOptions) -> Store:
    return open_store(_store_url(options))


def _store_url(options: ServerOptions) -> str:
    return options.store or SessionSettings.from_env().store or user_store()


# -- The cost of the schemas


def _schema_cost(profile: Profile) -> int:
    """Return the tokens (o200k) of a profile's list of tools as clients get it."""
    tools = [
        listed(tool).model_dump(by_alias=True, mode="json", exclude_none=True)
        for tool in tools_of(profile)
    ]
    text = json.dumps({"tools": tools}, ensure_ascii=False, separators=(",", ":"))
    return ExactCounter("o200k_base").count(text)


def schema_costs() -> dict[Profile, int]:
    """Return the cost of every profile."""
    return {profile: _schema_cost(profile) for profile in PROFILES}
