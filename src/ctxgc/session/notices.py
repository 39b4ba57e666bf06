"""Notices in the view: what an emergency removed and how to recall it; the end of a loop without thinking."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from ctxgc.collector import (
    DigestEntry,
    handle_of,
    handles_in,
    without,
    write_digest,
)
from ctxgc.core import Message, note
from ctxgc.session.apply import ViewEditor
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.view import Kept, StoredMessage
from ctxgc.wire import text_message

_WITHOUT_THINKING = "the thinking before these calls has left the window"
_GO_ON = "the results above are complete; go on from them"


class Notices(SessionPart):
    """Writes and rewrites the notices of what left the view."""

    def __init__(self, core: SessionCore, *, editor: ViewEditor) -> None:
        super().__init__(core)
        self._editor = editor

    def leaving(self, new: Sequence[Message]) -> list[str]:
        """Return the handles of all groups that would be out of the view if this were the new one.

        Those that a notice of the new view lists are left out.
        """
        view = self._view
        stay = {message.message_id for message in new}
        gone = [message for message in view.messages if message.message_id not in stay]
        found = [handle for m in gone if m.origin == "gc_notice" for handle in handles_in(m.text())]
        for group in view.groups_of(view.messages):
            first = view.messages[group[0]]
            if first.message_id not in stay and first.origin != "gc_notice":
                ids = self._segmenter.segment_ids(first.message_id)
                handle = handle_of(map(self._heap.get, ids))
                found += [] if handle is None else [handle]
        listed = _listed(new)
        return [handle for handle in dict.fromkeys(found) if handle not in listed]

    def notice_of(self, handles: Sequence[str]) -> Message | None:
        """Return a notice of groups that left; None when there are none, or no way to recall them.

        A recovery has several steps: what a later one brought back, or another notice lists, is left out.
        """
        messages = self._view.messages
        wanted = self._options.recall_call is not None and self._options.config.notify_on_gc
        out = self._still_out(handles) if wanted and messages and handles else []
        if not out:
            return None
        said = note(f"{len(out)} older steps were moved out to fit the window")
        text = "\n".join([said, write_digest(map(DigestEntry, out))])
        return text_message("user", text, messages[0].format, _new_id())

    def show(self, notice: Message) -> None:
        """Put a notice before the last step of the view."""
        messages = self._view.messages
        place = max(self._view.groups_of(messages), key=max)[0]
        self._editor.show(
            [*messages[:place], notice, *messages[place:]], "notice", created_by="guard"
        )

    def end_loop_without_thinking(self) -> None:
        """End the running tool loop in the view if its calls have lost their thinking.

        A model that binds its thinking refuses it after an edit, and with thinking `enabled` refuses results
        of calls without it. After an answer and a message of ours, which say so, no such loop is open.

        Raises:
            StoreError: that could not be made durable; nothing has changed.
        """
        if self._thinking.is_lost_in_loop():
            messages = self._view.messages
            said = (("assistant", _WITHOUT_THINKING), ("user", _GO_ON))
            ended = [
                text_message(role, note(text), messages[-1].format, _new_id())
                for role, text in said
            ]
            self._editor.show([*messages, *ended], "thinking", created_by="thinking")

    def drop(self, handles: set[str]) -> None:
        """Rewrite the notices in the view without the handles and lines of some groups.

        Raises:
            StoreError: that could not be made durable; nothing has changed.
        """
        for message in [each for each in self._view.messages if _lists(each, handles)]:
            text = without(message.text(), handles)
            new = [text_message("user", text, message.format, _new_id())] if text else []
            view = self._view.messages
            place = view.index(message)
            self._editor.show(
                [*view[:place], *new, *view[place + 1 :]], "delete", created_by="delete"
            )

    def of_earlier_views(self, handles: set[str]) -> frozenset[str]:
        """Return the notices that an undo would show, and that list one of the handles."""
        return frozenset(
            message.message_id
            for record in self._log.applied
            for message in record.before
            if _lists(message, handles)
        )

    def _still_out(self, handles: Sequence[str]) -> list[str]:
        """Return the handles whose group is neither in the view, nor listed there, nor deleted."""
        here = {message.message_id for message in self._view.messages}
        listed = _listed(self._view.messages)
        found = {handle: self._heap.peek(handle) for handle in handles if handle not in listed}
        return [h for h, segment in found.items() if segment and segment.message_id not in here]


def _listed(messages: Sequence[Message]) -> set[str]:
    return {h for m in messages if m.origin == "gc_notice" for h in handles_in(m.text())}


def _lists(message: Kept, handles: set[str]) -> bool:
    if isinstance(message, StoredMessage):
        return False
    return message.origin == "gc_notice" and not handles.isdisjoint(handles_in(message.text()))


def _new_id() -> str:
    return f"gc_notice_{uuid.uuid4().hex}"
