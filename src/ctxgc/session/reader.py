"""The reader of a view: how the model recalls a handle now, and what earlier readers were told (P27).

A session may go on in another program, whose model has another tool to recall with, or none. The texts that
the session keeps stay as they are, so that `undo` and `restore` find them; a reader is shown them with the
call that it can make.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ctxgc.collector import without_handles
from ctxgc.core import RECALL_CALL, Message, Part, recall_call, search_call
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.wire import replace_text

_HANDLE = r"(h-[a-z2-7]{16}|s-\d+)"
_LEAD = r"(?:\. To see it again: |; )?"
_NOTES = ("gc_notice", "gc_summary")


def remember(calls: Sequence[str], asked: str | None) -> list[str]:
    """Return what hosts said about recalls, oldest first, with what this one says; it says nothing with None.

    The last one is in force. A host says the call, with `{handle}`, or that there is none: an empty text.
    """
    return list(calls) if asked is None else [*(call for call in calls if call != asked), asked]


class RecallingReader(SessionPart):
    """Shows the view to the reader that it has now."""

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core)
        self._shown: dict[int, tuple[Message, Message]] = {}

    def take_tools(self) -> None:
        """Let the model recall with `context_recall` from now on, whatever was said before."""
        self._options.recall_call = RECALL_CALL
        self._state.recall_calls = remember(self._state.recall_calls, RECALL_CALL)
        self._shown = {}

    def is_another(self) -> bool:
        """Return whether earlier readers were told another call than this one can make."""
        return bool(self._strange())

    def shown(self) -> list[Message]:
        """Return the messages of the view, our notes in them with the call that this reader can make."""
        strange, known = self._strange(), self._shown
        if not strange:
            return self._view.messages
        self._shown = {
            id(message): known.get(id(message)) or (message, self._retold(message, strange))
            for message in self._view.messages
        }
        return [shown for _, shown in self._shown.values()]

    def _strange(self) -> list[str]:
        now = self._options.recall_call
        return [call for call in self._state.recall_calls if call and call != now]

    def _retold(self, message: Message, strange: Iterable[str]) -> Message:
        """Return a message of ours with other calls; what we did not write stays as it is."""
        if message.origin not in _NOTES and message.message_id not in self._view.originals:
            return message
        for place, part in enumerate(message.parts):
            text = retold(part.text, strange, self._options.recall_call) if _is_ours(part) else ""
            if text and text != part.text:
                message = replace_text(message, place, text)
        return message


def retold(text: str, strange: Iterable[str], now: str | None) -> str:
    """Return a text of ours with the call of its reader in place of strange ones; None leaves handles out."""
    for call in strange:
        before, _, after = map(re.escape, call.partition("{handle}"))
        # The name of one tool may end in that of another.
        found = re.compile(rf"({_LEAD})(?<!\w){before}{_HANDLE}{after}")
        text = found.sub(lambda m: m[1] + recall_call(m[2], now) if now else "", text)
        old, new = search_call(call), search_call(now or "")
        if old and old != new:
            text = text.replace(f"; {old} finds", f"; {new} finds") if new else _unfound(text, old)
    return text if now else without_handles(text)


def _unfound(text: str, call: str) -> str:
    return text.replace(f"; {call} finds them again]", "]")


def _is_ours(part: Part) -> bool:
    return part.kind in ("text", "tool_result") and not part.server_side and "[ctxgc" in part.text
