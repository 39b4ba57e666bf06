"""Intake: how messages come in, one by one or as a whole history again."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ctxgc.budget import GCPolicy
from ctxgc.core import SECRET_TAG, ContextSegment, Format, Message, find_secrets
from ctxgc.errors import MessageError
from ctxgc.session.annotations import Said, annotated
from ctxgc.session.apply import ViewEditor
from ctxgc.session.clarifications import Clarifications
from ctxgc.session.documents import form_writes
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.usage import UsageMeter
from ctxgc.session.view import View, compare, digest, wrong_format
from ctxgc.stores import Drop
from ctxgc.strategies import CollectsForPrice
from ctxgc.wire import PartTexts, RawMessage, detect_format, message_bytes, parse, refuse_answers

_NOTHING: Said = {}


class Intake(SessionPart):
    """Takes messages into the view, the heap, the budget and the archive."""

    def __init__(
        self, core: SessionCore, *, meter: UsageMeter, editor: ViewEditor, texts: PartTexts
    ) -> None:
        super().__init__(core)
        self._meter = meter
        self._editor = editor
        self._texts = texts
        self._clarifications = Clarifications(core)
        self._format_is_guess = all(map(_is_plain, core.view.messages))

    def append(self, message: RawMessage, asked: Format | None, said: Said) -> list[str]:
        """Take in one message that may come next, with what is said about it, and return its segments."""
        (parsed,) = self._parse([message], asked)
        self._view.check_next(parsed)
        return self._take(parsed, said)

    def take_named(self, message: Message, said: Said) -> list[str]:
        """Take in a message that may come next under its own id; its segments are named after it.

        Raises:
            MessageError: it cannot come next, or it holds a likely key and those are refused.
        """
        known = self._view.format
        if known is not None and message.format != known and self._format_is_guess:
            self._reformat(message.format)
        self._view.check_next(message)
        self._format_is_guess = self._format_is_guess and _is_plain(message)
        return self._take(message, said, named=True)

    def extend(
        self, batch: Sequence[RawMessage], asked: Format | None, said: Said = _NOTHING
    ) -> list[str]:
        """Take in several messages, or none when one of them cannot come next."""
        return self._take_all(self._parse(batch, asked), said) if batch else []

    def sync(self, history: Sequence[RawMessage], asked: Format | None) -> list[str]:
        """Take in what is new; where the history differs from what came in, go on from there."""
        messages = self._parse(history, asked)
        shared = self._view.shared_with(messages)
        new = messages[shared:]
        if shared < len(self._view.arrivals):
            self._rewind(shared, new)
        return self._take_all(new)

    # -- reading ------------------------------------------------------------------------------------

    def _parse(self, batch: Sequence[RawMessage], asked: Format | None) -> list[Message]:
        known = self._view.format
        refuse_answers(batch, asked)
        seen = detect_format(list(batch)) if asked is None else asked
        # While all that came in was plain text, which fits every format, a clear sign may choose it.
        chosen = seen if known is None or (self._format_is_guess and seen != "openai") else known
        if asked is None and seen not in ("openai", chosen):
            raise wrong_format(chosen, seen)
        parsed = [parse(message, asked or chosen, uuid.uuid4().hex) for message in batch]
        if self._options.config.secrets == "refuse":
            refuse_secrets(parsed)
        if known is not None and chosen != known:
            self._reformat(chosen)
        plain = asked is None and all(map(_is_plain, parsed))
        self._format_is_guess = self._format_is_guess and plain
        return parsed

    def _reformat(self, format_: Format) -> None:
        """Read the plain messages of a session, whose format was only guessed, in another format."""
        view, accounting = self._view, self._accounting
        for message_id, left in view.originals.items():
            view.originals[message_id] = replace(left, message=_read_as(left.message, format_))
        self._log.applied = [
            replace(record, before=tuple(_read_as(m, format_) for m in record.before))
            for record in self._log.applied
        ]
        twins = [_read_as(message, format_) for message in view.messages]
        for old, new in zip(view.messages, twins, strict=True):
            accounting.leave(old)
            accounting.enter(new)
        view.show(twins)
        for message in (*twins, *(left.message for left in view.originals.values())):
            self._archive.later(self._archive.arrival(message))

    # -- taking in ----------------------------------------------------------------------------------

    def _take_all(self, messages: Sequence[Message], said: Said = _NOTHING) -> list[str]:
        self._view.check_next(*messages)
        return [segment_id for message in messages for segment_id in self._take(message, said)]

    def _take(self, message: Message, said: Said, *, named: bool = False) -> list[str]:
        state, accounting = self._state, self._accounting
        self._thinking.note(message)
        question = self._clarifications.question_of(message)
        self._view.take(message, state.requests + 1)
        said = {"task_id": state.task_id, **said}
        made = self._segmenter.prepare(message)
        if named:
            name = message.message_id
            made = [replace(s, segment_id=f"{name}.{place}") for place, s in enumerate(made)]
        ids = self._segmenter.enter(message, [replace(s, **annotated(s, said)) for s in made])
        if "policy" in said:
            policy = GCPolicy(said["policy"])
            state.policies = {**state.policies, message.message_id: policy}
        accounting.enter(message)
        accounting.alongside.hear(message)
        if question is not None:
            self._clarifications.preserve(question, message.message_id)
        if isinstance(self._options.plugin, CollectsForPrice):
            self._texts.read(message)
        state.ingested_tokens += accounting.tokens(message)
        self._count_turn(message)
        self._archive.note_unsaved(ids)
        self._archive.later(self._archive.arrival(message))
        self._report_secrets(map(self._heap.get, ids))
        self._meter.watch()
        return list(ids)

    def _count_turn(self, message: Message) -> None:
        state, pinned_turns = self._state, self._options.config.pinned_turn_indices
        if message.opens_turn():
            state.turns_taken += 1
        # A pin by number is resolved once, as the turn comes in, and stays with its messages.
        if state.turns_taken - 1 in pinned_turns:
            state.pinned_messages |= {message.message_id}

    def _report_secrets(self, segments: Iterable[ContextSegment]) -> None:
        """Emit which of these segments hold likely keys, and of which kind; never their values."""
        for segment in segments:
            for tag in segment.tags:
                if tag.startswith(SECRET_TAG):
                    rule = tag.removeprefix(SECRET_TAG)
                    self._events.emit("secret_found", segment_id=segment.segment_id, rule=rule)

    # -- taking back --------------------------------------------------------------------------------

    def _rewind(self, count: int, new: Sequence[Message]) -> None:
        """Stash all but the first `count` messages that came in; the host took them back."""
        view = self._view
        forgotten = frozenset(arrival.message_id for arrival in view.arrivals[count:])
        leaving = forgotten | self._strays(count)
        rest = [m for m in view.messages if m.message_id not in leaving]
        trial = View()
        trial.show(rest)
        trial.check_next(*new)
        traces = [
            write
            for message_id in forgotten
            for write in (Drop("messages", message_id), *form_writes(message_id, None, None))
        ]
        self._editor.apply(rest, compare(view.messages, rest), forget=forgotten, more=traces)
        for message_id in forgotten:
            view.originals.pop(message_id, None)
        view.restate(view.arrivals[:count])
        self._accounting.forget(forgotten)
        self._log.forget(forgotten)

    def _strays(self, count: int) -> set[str]:
        """The messages after the first `count` arrivals that a restore brought back after a rewind.

        A message with the same content as a missing arrival counts as that arrival.
        """
        view = self._view
        kept = {arrival.message_id: arrival.digest for arrival in view.arrivals[:count]}
        here = {message.message_id for message in view.messages}
        border = max((view.place_of(name) for name in here & kept.keys()), default=-1.0)
        missing = Counter(known for name, known in kept.items() if name not in here)
        strays: set[str] = set()
        for message in view.messages:
            name = message.message_id
            if message.origin != "conversation" or view.number_of(name) is not None:
                continue
            if view.place_of(name) > border:
                said = digest(message)
                missing[said] -= 1
                if missing[said] < 0:
                    strays.add(name)
        return strays


def _is_plain(message: Message) -> bool:
    """Return whether a message is nothing but text, which reads the same in every format."""
    return message.role != "tool" and all(part.kind == "text" for part in message.parts)


def _read_as(message: Message, format_: Format) -> Message:
    twin = parse(message_bytes(message), format_, message.message_id)
    return replace(twin, origin=message.origin, source=message.source)


def refuse_secrets(messages: Sequence[Message]) -> None:
    """Check that no message holds a likely key.

    Raises:
        MessageError: one does; the message names the rule and the part, never the value.
    """
    for number, message in enumerate(messages, 1):
        for place, part in enumerate(message.parts, 1):
            for secret in find_secrets(part.text)[:1]:
                raise MessageError(
                    f"part {place} ({part.kind}) of message {number} holds what looks like "
                    f"a key of the kind '{secret.rule}'",
                    hint="take it out, or set the key 'secrets' to 'mark' or 'mask'",
                    rule=secret.rule,
                    part=place,
                )
