"""Adapters: ctxgc inside the agent frameworks that people already use.

    from ctxgc.adapters.langchain import CtxgcMiddleware

One file per framework, which imports that framework; each is a thin layer over `Session`. What they share is
in `session_pool` (the sessions of the conversations, views in the framework's own messages, recall) and
`request_body` (whole requests of OpenAI and Anthropic); `catalog` lists the frameworks and tested versions.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.adapters.catalog import FRAMEWORKS, Framework
    from ctxgc.adapters.session_pool import SessionPool
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "catalog": "FRAMEWORKS Framework",
            "session_pool": "SessionPool",
        },
    )
