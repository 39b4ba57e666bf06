"""A proxy in front of strict servers, and the official SDKs that talk to both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import anthropic
import openai

from ctxgc.proxy import ProxyOptions, ProxyServer
from ctxgc.session import utc_now
from ctxgc.testing import StrictServer

KEY = "sk-client-own-key"


@contextmanager
def proxied(
    server: StrictServer, *, clock: Callable[[], datetime] = utc_now, **options: Any
) -> Iterator[ProxyServer]:
    """Run a proxy whose providers are both played by one strict server."""
    upstreams = {"anthropic": server.base_url, "openai": server.openai_base_url.removesuffix("/v1")}
    chosen = {"port": 0, "store": "memory:", **options}
    with ProxyServer(ProxyOptions(upstreams=upstreams, **chosen), clock=clock) as proxy:
        yield proxy


def openai_at(url: str, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, **{"max_retries": 0, **more})


def anthropic_at(url: str, **more: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key=KEY, **{"max_retries": 0, **more})
