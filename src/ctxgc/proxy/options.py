"""What a proxy is started with: where it listens, who may call it, and which providers it talks to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args
from urllib.parse import urlsplit

import msgspec

from ctxgc.config import unknown_key
from ctxgc.errors import ConfigError

Provider = Literal["anthropic", "openai"]
Report = Literal["forwarded", "original"]
"""Which usage clients see: that of the request that was sent, or of the one that they sent."""
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

UPSTREAMS: Mapping[Provider, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
}
"""Where requests go unless another address is named."""

DEFAULT_PORT = 8787
CLIENT_SECONDS = 60.0
"""How long a client may pause in the middle of a request with a history."""
MOST_BYTES = 64 << 20
"""How long a request with a history may be; providers refuse half of that."""


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `ctxgc serve`; None leaves the choice to environment, file and defaults."""

    upstreams: Mapping[Provider, str] = msgspec.field(default_factory=lambda: UPSTREAMS)
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token_file: str | None = None
    use_token: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    most_bytes: int = MOST_BYTES
    client_seconds: float = CLIENT_SECONDS
    collect: bool = True
    store: str | None = None
    context_limit: int | None = None
    own_compaction: bool = False
    recall: bool = True
    report: Report = "forwarded"
    observe: bool = False
    holdout: float = 0.0
    cap_session: float | None = None
    cap_day: float | None = None


def upstreams(
    named: Iterable[str], base: Mapping[Provider, str] = UPSTREAMS
) -> dict[Provider, str]:
    """Return the address of each provider; `named` has those that were given, as `openai=URL`.

    An address may end in `/v1`, as the base URLs of OpenAI's SDK do.

    Raises:
        ConfigError: a provider is unknown, or an address is not one of HTTP.
    """
    found = {name: checked_url(url) for name, url in base.items()}
    for each in named:
        name, separator, url = each.partition("=")
        if not separator:
            raise ConfigError(
                f"{name!r} is not PROVIDER=URL",
                hint="for example --upstream openai=http://127.0.0.1:11434",
                key="upstream",
            )
        if name not in PROVIDERS:
            raise unknown_key(name, PROVIDERS, "provider")
        found[name] = checked_url(url)
    return found


def upstreams_of(environment: Mapping[str, str]) -> dict[Provider, str]:
    """Return where the programs of an environment send their requests now."""
    named = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
    return {name: environment.get(named[name]) or url for name, url in UPSTREAMS.items()}


def checked_url(url: str) -> str:
    """Return the address of a provider without the `/v1` that every path begins with.

    Raises:
        ConfigError: it is not an address of HTTP, or it carries a key.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{_shown(url)} is not an address of HTTP",
            hint="for example https://gateway.example/openai/v1",
            key="upstream",
        )
    if parts.query or parts.fragment or parts.username is not None:
        raise ConfigError(
            f"{_shown(url)} must be an address and nothing else",
            hint="keys belong to the client, which sends them along",
            key="upstream",
        )
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def _shown(url: str) -> str:
    """Return an address without what may be a key."""
    parts = urlsplit(url)
    return (
        f"{parts.scheme}://{parts.hostname or ''}{parts.path}" if parts.scheme else "the upstream"
    )
