"""Intake: how messages come in, one by one or as a whole history again."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from ctxgc.budget import GCPolicy
from ctxgc.core import SECRET_TAG, ContextSegment, Format, Message, find_secrets
from ctxgc.errors import MessageError
from ctxgc.invariants import check, first_spoken
from ctxgc.session.annotations import Said, annotated
from ctxgc.session.apply import ViewEditor
from ctxgc.session.clarifications import Clarifications
from ctxgc.session.documents import form_writes
from ctxgc.session.part import SessionCore, SessionPart
from ctxgc.session.usage import UsageMeter
from ctxgc.session.view import View, compare, digest, in_memory, wrong_format
from ctxgc.stores import Drop, Put
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
        # A store of an older version does not say which format was clear.
        left = (original.message for original in core.view.originals.values())
        self._settle(chain(core.view.messages, left))

    def append(self, message: RawMessage, asked: Format | None, said: Said) -> list[str]:
        """Take in one message that may come next, with what is said about it, and return its segments."""
        return self._take_all(self._parse([message], asked), said, asked)

    def take_named(self, message: Message, said: Said) -> list[str]:
        """Take in a message that may come next under its own id; its segments are named after it.

        Raises:
            MessageError: it cannot come next, or it would open a session whose format is not clear yet
                in a way that not every provider allows.
        """
        known, is_plain = self._format, _is_plain(message)
        if known is not None and message.format != known:
            if is_plain and _fits(message, known):
                message = _read_as(message, known)
            else:
                self._check_readable(message.format)
                self._reformat(message.format)
        is_open = self._state.format is None and first_spoken(self._view.messages) is None
        if is_open and is_plain and message.role == "assistant":
            raise MessageError("the assistant speaks first", hint="begin with the user's words")
        self._view.check_next(message)
        self._settle([message])
        return self._take(message, said, named=True)

    def refuse_keys(self, messages: Sequence[Message]) -> None:
        """Check that no message holds a likely key, where the configuration refuses those.

        Raises:
            MessageError: one does; the message names the rule and the part, never the value.
        """
        if self._options.config.secrets == "refuse":
            _refuse_secrets(messages)

    def extend(
        self, batch: Sequence[RawMessage], asked: Format | None, said: Said = _NOTHING
    ) -> list[str]:
        """Take in several messages, or none when one of them cannot come next."""
        return self._take_all(self._parse(batch, asked), said, asked) if batch else []

    def sync(self, history: Sequence[RawMessage], asked: Format | None) -> list[str]:
        """Take in what is new; where the history differs from what came in, go on from there."""
        # What came in as the same bytes need not be read again, if it is read in the same way.
        known = self._view.shared_bytes(history) if asked in (None, self._state.format) else 0
        messages = self._parse(history[known:], asked) if known < len(history) else []
        shared = known + self._view.shared_with(messages, known)
        new = messages[shared - known :]
        if shared < len(self._view.arrivals):
            self._rewind(shared, new)
        return self._take_all(new, _NOTHING, asked)

    # -- reading ------------------------------------------------------------------------------------

    @property
    def _format(self) -> Format | None:
        """The format of the session: the one that is clear, or the one guessed; None before both."""
        return self._state.format or self._view.format

    def _settle(self, messages: Iterable[Message], asked: Format | None = None) -> None:
        """Remember the format once it was named, or once a message came in that is clear."""
        if self._state.format is None:
            clear = (message.format for message in messages if not _is_plain(message))
            self._state.format = asked or next(clear, None)

    def _parse(self, batch: Sequence[RawMessage], asked: Format | None) -> list[Message]:
        known = self._format
        refuse_answers(batch, asked)
        seen = detect_format(list(batch)) if asked is None else asked
        # While all that came in was plain text, a clear sign may choose the format.
        is_guess = self._state.format is None and seen != known
        may_choose = is_guess and (asked is not None or seen != "openai" or _has_calls(batch))
        chosen = seen if known is None or may_choose else known
        if chosen != seen and (asked is not None or seen != "openai"):
            raise wrong_format(chosen, seen)
        parsed = [parse(message, chosen, uuid.uuid4().hex) for message in batch]
        self.refuse_keys(parsed)
        if known is not None and chosen != known:
            self._check_readable(chosen)
            self._reformat(chosen)
        return parsed

    def _check_readable(self, format_: Format) -> None:
        """Check that the session, if its format was only guessed, can be read in another format.

        Raises:
            MessageError: its format is clear, or what came in would be invalid in the other.
        """
        view, known = self._view, self._format or format_
        messages = [*view.messages, *(left.message for left in view.originals.values())]
        readable = self._state.format is None and all(_fits(m, format_) for m in messages)
        if not readable or check([_read_as(m, format_) for m in view.messages], complete=False):
            raise wrong_format(known, format_)

    def _reformat(self, format_: Format) -> None:
        """Read the plain messages of a session, whose format was only guessed, in another format."""
        view, accounting, archive = self._view, self._accounting, self._archive
        for message_id, left in view.originals.items():
            view.originals[message_id] = replace(left, kept=_read_as(left.message, format_))
        self._log.applied = [
            replace(record, before=tuple(_read_as(in_memory(m), format_) for m in record.before))
            for record in self._log.applied
        ]
        twins = [_read_as(message, format_) for message in view.messages]
        for old, new in zip(view.messages, twins, strict=True):
            accounting.leave(old)
            accounting.enter(new)
        view.show(twins)
        for message in (*twins, *(left.message for left in view.originals.values())):
            archive.later(archive.arrival(message))
        for message in twins:
            if message.message_id in view.originals:
                original = view.originals[message.message_id]
                archive.later(*form_writes(message.message_id, message, original))
        for record in self._log.applied:
            doc = archive.store.get(archive.session_id, "collections", record.key)
            if doc is not None:
                doc = {**doc, **record.to_doc(view.originals)}
                archive.later(Put("collections", record.key, doc))

    # -- taking in ----------------------------------------------------------------------------------

    def _take_all(self, messages: Sequence[Message], said: Said, asked: Format | None) -> list[str]:
        self._view.check_next(*messages)
        self._settle(messages, asked)
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
            self._texts.keep_to(self._view.messages)
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
        rest = _before_next(rest, new)
        traces = [
            write
            for message_id in forgotten
            for write in (Drop("messages", message_id), *form_writes(message_id, None, None))
        ]
        self._editor.apply(
            rest, compare(view.messages, rest), "rewind", forget=forgotten, more=traces
        )
        for message_id in forgotten:
            view.originals.pop(message_id, None)
        view.restate(view.arrivals[:count])
        self._accounting.forget(leaving)
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


def _before_next(rest: list[Message], new: Sequence[Message]) -> list[Message]:
    """Return a history that new messages may follow; a notice at its end leaves if it keeps them out.

    Raises:
        MessageError: they may not come next all the same.
    """
    trial = View()
    trial.show(rest)
    try:
        trial.check_next(*new)
    except MessageError:
        if not rest or rest[-1].origin != "gc_notice":
            raise
        return _before_next(rest[:-1], new)
    return rest


def _has_calls(batch: Sequence[RawMessage]) -> bool:
    """Return whether messages without a sign of another format are clearly of OpenAI's chat."""
    return not all(_is_plain(parse(message, "openai", "")) for message in batch)


def _is_plain(message: Message) -> bool:
    """Return whether a message is nothing but text that no format marks as its own."""
    is_text = message.role != "tool" and all(part.kind == "text" for part in message.parts)
    return is_text and detect_format([message.data]) == "openai"


def _fits(message: Message, format_: Format) -> bool:
    """Return whether a plain message reads the same in a format; the Responses have blocks of their own."""
    return format_ != "responses" or isinstance(message.data.get("content"), str)


def _read_as(message: Message, format_: Format) -> Message:
    twin = parse(message_bytes(message), format_, message.message_id)
    return replace(twin, origin=message.origin, source=message.source)


def _refuse_secrets(messages: Sequence[Message]) -> None:
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
