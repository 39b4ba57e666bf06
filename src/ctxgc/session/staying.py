"""The messages that no plugin may take out or edit, and why."""

from __future__ import annotations

from ctxgc.session.workings import Workings
from ctxgc.strategies.turns import opens_turn


def must_stay(w: Workings) -> dict[str, str]:
    """Return the ids of the messages that have to stay as they are, each with the reason."""
    messages = w.view.messages
    requests = [m.message_id for m in messages if m.role == "user" and opens_turn(m)]
    system = [m.message_id for m in messages if m.role == "system"]
    return {
        **{name: _why_kept(w, name) for name in w.kept_messages()},
        **dict.fromkeys(requests[-1:], "it is the last request"),
        **dict.fromkeys(requests[:1], "it is the first request"),
        **dict.fromkeys(system, "it is system text"),
    }


def _why_kept(w: Workings, message_id: str) -> str:
    recalled = w.held_until.get(message_id, 0) > w.collections
    return "it was recalled not long ago" if recalled else "it is pinned"
