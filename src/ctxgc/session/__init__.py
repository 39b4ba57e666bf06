"""Session: append -> watch -> collect -> render. The first page to read is `session.py`."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.session.accounting import ContextUsage
    from ctxgc.session.events import Event
    from ctxgc.session.guard import EMERGENCY, messages_of
    from ctxgc.session.handles import Hit, RECALL_CALL, Stash, excerpt
    from ctxgc.session.oneshot import collect
    from ctxgc.session.session import Session
    from ctxgc.session.setup import DEFAULT_PRICES, DEFAULT_STORE
    from ctxgc.session.state import preset_of
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "accounting": "ContextUsage",
            "events": "Event",
            "guard": "EMERGENCY messages_of",
            "handles": "Hit RECALL_CALL Stash excerpt",
            "oneshot": "collect",
            "session": "Session",
            "setup": "DEFAULT_PRICES DEFAULT_STORE",
            "state": "preset_of",
        },
    )
