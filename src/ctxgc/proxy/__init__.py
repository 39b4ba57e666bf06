"""The proxy: context collection for any agent that lets its base URL be changed.

- `options`: where it listens and which providers it talks to; `start` runs it, `mounts` what else is there.
- `app`: who may call, and one request from its first byte to the last of its answer.
- `dialect`: what a path asks of which provider; `upstream`: the way there and back; `usage`: what it counted.
- `collecting`: a request read into its session and sent with the view of that. `identity` says whose it is,
  `conversations` keeps the sessions, `request_body` takes bodies apart and puts them together;
  `recall_loop` answers calls of our tools, `own_compaction` an agent's compaction.
- `metrics` counts what passed and what that saved.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.proxy.mounts import Mount, MountHost
    from ctxgc.proxy.options import ProxyOptions, upstreams, upstreams_of
    from ctxgc.proxy.start import ProxyServer, run_proxy, store_url, token_path
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "mounts": "Mount MountHost",
            "options": "ProxyOptions upstreams upstreams_of",
            "start": "ProxyServer run_proxy store_url token_path",
        },
    )
