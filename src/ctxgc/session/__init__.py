"""Session: append -> watch -> collect -> render. The first page to read is `session.py`."""

from ctxgc.session.events import Event
from ctxgc.session.oneshot import collect
from ctxgc.session.session import Session
from ctxgc.session.stash import Hit
from ctxgc.session.usage import ContextUsage

__all__ = ["ContextUsage", "Event", "Hit", "Session", "collect"]
