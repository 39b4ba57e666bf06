"""Clarifications: questions to the user, and the answers, which S2 calls preservable.

Only what is plainly one counts: a tool that asks the user, or a message that does nothing but ask and
is answered at once.
"""

from __future__ import annotations

import re
import unicodedata

from ctxgc.budget import GCPolicy
from ctxgc.core import Message
from ctxgc.session.part import SessionPart

LONGEST_QUESTION = 1_000
LONGEST_ANSWER = 4_000
_TOOLS = frozenset(
    (
        "askuser", "askuserquestion", "askquestion", "askhuman", "askfollowupquestion",
        "askclarification", "askclarifyingquestion", "clarify", "requestclarification",
        "requestuserinput", "getuserinput",
    )
)  # fmt: skip
_CHOICE = re.compile(r"\s*(?:[-*•]|\(?\w{1,2}[.)])\s+\S")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+")
_WEAK = (GCPolicy.PARTIAL, GCPolicy.EPHEMERAL)


class Clarifications(SessionPart):
    """Makes clarifications preservable as they come in; a policy that the user gave stays."""

    def question_of(self, answer: Message) -> str | None:
        """Return the message that asked what a message, which is not in the view yet, answers; or None."""
        if not self._options.config.preserve_clarifications:
            return None
        if answer.results():
            return self._asked_by_tool(answer)
        last = self._view.messages[-1] if self._view.messages else None
        if last is None or not answer.opens_turn() or len(answer.text()) > LONGEST_ANSWER:
            return None
        return last.message_id if only_asks(last) else None

    def preserve(self, *message_ids: str) -> None:
        """Make messages of the view preservable, unless they have a stricter policy or one by hand."""
        for message_id in message_ids:
            if message_id not in self._state.policies and self._is_weak(message_id):
                policies = {**self._state.policies, message_id: GCPolicy.PRESERVABLE}
                self._state.policies = policies
                self._accounting.set_policy(message_id, GCPolicy.PRESERVABLE)

    def _asked_by_tool(self, answer: Message) -> str | None:
        callers = {self._view.waiting.get(call_id) for call_id in answer.results()}
        caller = self._view.get(callers.pop() or "") if len(callers) == 1 else None
        return caller.message_id if caller is not None and _calls_only_questions(caller) else None

    def _is_weak(self, message_id: str) -> bool:
        budget = self._accounting.budget
        entries = [budget.get_child(*place) for place in budget.children_of_message(message_id)]
        return all(entry is not None and entry.gc_policy in _WEAK for entry in entries)


def only_asks(message: Message) -> bool:
    """Return whether a message of the model is a question, with its choices, and nothing else."""
    if message.role != "assistant" or message.origin != "conversation":
        return False
    spoken = [part for part in message.parts if part.kind != "thinking"]
    text = message.text().strip()
    if len(text) > LONGEST_QUESTION or any(part.kind != "text" for part in spoken):
        return False
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sentences = [s for line in lines if not _CHOICE.match(line) for s in _SENTENCE.split(line)]
    ends = [unicodedata.normalize("NFKC", s.rstrip("*_)\"'"))[-1:] for s in sentences]
    return "?" in ends and all(end in "?:" for end in ends)


def _calls_only_questions(message: Message) -> bool:
    names = [part.name or "" for part in message.parts if part.kind == "tool_call"]
    return bool(names) and all(_is_question_tool(name) for name in names)


def _is_question_tool(name: str) -> bool:
    return re.sub(r"[^a-z]", "", name.rpartition("__")[2].lower()) in _TOOLS
