"""The rules that a provider checks: one invariant for each, with what it reports and how to fix it.

In the order of the promises: P1, calls and results (`CallsAndResultsPair`, `OneResultPerCall`,
`ResultsFollowTheirBatch`, `ServerToolsPair`, `ArgumentsAreJson`); P2, thinking (`ThinkingIsWhole`,
`ThinkingIsFollowed`); P14, order and content (`UserSpeaksFirst`, `ContentIsPresent`, `ItemsAreUnique`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctxgc.core import Message, Part, common_prefix
from ctxgc.invariants.pairing import (
    Batch,
    Invariant,
    Pairing,
    Ref,
    SingleInvariant,
    Violation,
    answers,
    block_of,
    is_reference,
    is_thinking,
    may_stay_open,
    pair,
    positions_outside,
)

# -- P1: no call without its result, no result without its call


_OPEN = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding "
    "to each 'tool_call_id'.",
    "responses": "No tool output found for function call {id}.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {id}.",
}
_ORPHAN = {
    "openai": "messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'.",
    "responses": "No tool call found for function call output with call_id {id}.",
    "anthropic": "unexpected `tool_use_id` found in `tool_result` blocks: {id}.",
}


class CallsAndResultsPair(Invariant):
    """Every result answers an earlier call, and every call is answered.

    An asynchronous call of the Responses format may be answered at any later time, or never.
    """

    id = "P1.pair"
    sentence = "Every tool call has its result and every result its call."

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the results without a call and the calls without a result."""
        pairing = pair(messages)
        found = [_orphan(messages[ref.message], ref) for ref in pairing.orphans]
        tail = trailing_results(messages)
        for batch in pairing.batches:
            pending = is_pending(batch, tail)
            found += [
                _unanswered(messages[ref.message], ref, pending=pending)
                for ref in batch.open_calls()
                if not may_stay_open(messages[ref.message])
            ]
        return sorted(found, key=lambda violation: violation.index)

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that part no call from its batch or its results."""
        pairing = pair(messages)
        spans = [_whole_span(batch, len(messages)) for batch in pairing.batches]
        spans += [(index, ref.message) for index, ref in pairing.referenced]
        return positions_outside(spans, len(messages))


def trailing_results(messages: Sequence[Message]) -> int:
    """Return the index from which on there is nothing but tool results."""
    tail = len(messages)
    while tail and _only_results(messages[tail - 1]):
        tail -= 1
    return tail


def is_pending(batch: Batch, tail: int) -> bool:
    """Return whether a batch is at the very end, so that its results may still come."""
    return batch.last == tail - 1


def _only_results(message: Message) -> bool:
    if message.role == "system":
        return message.format == "anthropic"
    return bool(message.parts) and all(
        part.kind == "tool_result" and not part.server_side for part in message.parts
    )


def _whole_span(batch: Batch, length: int) -> tuple[int, int]:
    first, last = batch.span()
    return (first, length - 1) if batch.open_calls() else (first, last)


def _orphan(message: Message, ref: Ref) -> Violation:
    return Violation(
        promise=CallsAndResultsPair.id,
        index=ref.message,
        message_id=message.message_id,
        call_id=ref.call_id,
        text=f"the result {ref.call_id!r} answers no earlier call",
        provider_error=_ORPHAN[message.format].format(id=ref.call_id),
        fix="move the result after its call; without a call, remove it from the view",
    )


def _unanswered(message: Message, ref: Ref, *, pending: bool) -> Violation:
    return Violation(
        promise=CallsAndResultsPair.id,
        index=ref.message,
        message_id=message.message_id,
        call_id=ref.call_id,
        text=f"the call {ref.call_id!r} has no result",
        provider_error=_OPEN[message.format].format(id=ref.call_id),
        fix="add a result that says the call was interrupted",
        pending=pending,
    )


# -- P1: one result per call, one call per id in a batch


_RESULTS = {
    "openai": "Duplicate value for 'tool_call_id' of '{id}'.",
    "responses": "Duplicate tool output found for function call {id}.",
    "anthropic": "each tool_use must have a single result. Found multiple `tool_result` blocks "
    "with id: {id}",
}
_CALLS = {
    "openai": "Duplicate value for 'tool_calls.id' of '{id}'.",
    "responses": "Duplicate item found with call_id {id}.",
    "anthropic": "`tool_use` ids must be unique: {id}",
}


class OneResultPerCall(Invariant):
    """No call is answered twice, and no batch uses an id twice."""

    id = "P1.single"
    sentence = "Every call has one result, and no two calls of a batch share an id."

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return second results and repeated call ids."""
        pairing = pair(messages)
        found = [
            self._breach(messages[ref.message], ref.message, ref.call_id, second_result=True)
            for ref in pairing.extras
        ]
        found += [
            self._breach(messages[ref.message], ref.message, ref.call_id, second_result=False)
            for ref in pairing.repeats
        ]
        return sorted(found, key=lambda violation: violation.index)

    def _breach(
        self, message: Message, index: int, call_id: str | None, *, second_result: bool
    ) -> Violation:
        errors = _RESULTS if second_result else _CALLS
        what = "a second result answers the call" if second_result else "two calls share the id"
        return Violation(
            promise=self.id,
            index=index,
            message_id=message.message_id,
            call_id=call_id,
            text=f"{what} {call_id!r}",
            provider_error=errors[message.format].format(id=call_id),
            fix="keep the first and take the other out of the view",
        )


# -- P1: the results of a batch follow it directly


_SPLIT = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding "
    "to each 'tool_call_id'.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {id}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
}


class ResultsFollowTheirBatch(Invariant):
    """All results of a batch follow at once.

    Anthropic wants them in front of all else that the user says next; it reads consecutive
    messages of one role as one, and system entries between them as none. The Responses format
    pairs by id alone: its results may come later.
    """

    id = "P1.batch"
    sentence = "The results of a batch of calls follow it directly, with nothing between."
    formats = ("openai", "anthropic")

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the results that do not directly follow their call."""
        return [
            Violation(
                promise=self.id,
                index=result.message,
                message_id=messages[result.message].message_id,
                call_id=result.call_id,
                text=f"the result {result.call_id!r} does not directly follow its call "
                f"in message {call.message}",
                provider_error=_SPLIT[messages[0].format].format(id=result.call_id),
                fix="move the result next to its call",
            )
            for call, result in misplaced(messages, pair(messages))
        ]


def misplaced(messages: Sequence[Message], pairing: Pairing) -> list[tuple[Ref, Ref]]:
    """Return the calls whose result is where its provider refuses it, with the result."""
    if not messages or messages[0].format == "responses":
        return []
    layout = _anthropic_turns if messages[0].format == "anthropic" else _openai_turns
    turns, homes = layout(messages)
    wrong = [
        (call, result)
        for call, result in pairing.pairs()
        if homes[result.message] != turns[call.message]
        or (result.part and _follows_other_parts(messages, result))
    ]
    return sorted(wrong, key=lambda refs: refs[1])


def _openai_turns(messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Return each message's own number, and that of the message whose calls it may answer."""
    homes, before = [], -1
    for index, message in enumerate(messages):
        homes.append(before)
        if message.role != "tool":
            before = index
    return list(range(len(messages))), homes


def _anthropic_turns(messages: Sequence[Message]) -> tuple[list[int], list[int]]:
    """Return the turn of each message, and the turn whose calls it may answer (else -1)."""
    turns, homes = [], []
    turn, role, only_results = 0, "", True
    for message in messages:
        if message.role not in (role, "system"):
            turn, role, only_results = turn + 1, message.role, True
        turns.append(turn)
        homes.append(turn - 1 if only_results and message.role == "user" else -1)
        if message.role != "system":
            only_results &= all(part.kind == "tool_result" for part in message.parts)
    return turns, homes


def _follows_other_parts(messages: Sequence[Message], result: Ref) -> bool:
    """Return whether something other than results precedes a result within its message."""
    before = messages[result.message].parts[: result.part]
    return any(part.kind != "tool_result" for part in before)


# -- P1: a tool that the provider runs keeps its call and its result


# Items of the Responses format that an item of their own answers; other tools answer within.
_ANSWERED = ("program", "tool_search_call", "mcp_approval_request")


class _ServerPairing(NamedTuple):
    """The provider's own calls with their results, and what has no partner.

    `strays` are calls and results of a program that is not in the history.
    """

    pairs: list[tuple[Ref, Ref]]
    orphans: list[Ref]
    open_calls: list[Ref]
    strays: list[Ref]


class ServerToolsPair(Invariant):
    """Providers want both the call and the result of a tool that they run.

    Anthropic's result is usually in the same answer; a program that calls the client's tools
    gets it in a later one. A call at the very end has its result still to come: the provider goes
    on with it when the history is sent.
    """

    id = "P1.server"
    sentence = "Every tool that the provider ran keeps its call and its result."
    formats = ("responses", "anthropic")

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the server tool blocks without a partner."""
        pairing = server_pairs(messages)
        last = last_answer(messages)
        going_on = running(messages, pairing)
        found = [
            self._breach(messages, ref, "call has no result", pending=ref.message >= last)
            for ref in pairing.open_calls
            if ref not in going_on
        ]
        found += [self._breach(messages, ref, "result has no call") for ref in pairing.orphans]
        found += [self._breach(messages, ref, "program is gone") for ref in pairing.strays]
        return sorted(found, key=lambda violation: violation.index)

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that part no server tool from its result."""
        pairing = server_pairs(messages)
        spans = [(call.message, result.message) for call, result in pairing.pairs]
        spans += [(call.message, len(messages) - 1) for call in pairing.open_calls]
        return positions_outside(spans, len(messages))

    def _breach(
        self, messages: Sequence[Message], ref: Ref, what: str, *, pending: bool = False
    ) -> Violation:
        wanted = "tool_result" if what.startswith("call") else "server_tool_use"
        return Violation(
            promise=self.id,
            index=ref.message,
            message_id=messages[ref.message].message_id,
            call_id=ref.call_id,
            text=f"the server tool {ref.call_id!r}: its {what}",
            provider_error=f"tool use with id `{ref.call_id}` was found without a corresponding "
            f"`{wanted}` block",
            fix="take the block out of the view",
            pending=pending,
        )


def server_pairs(messages: Sequence[Message]) -> _ServerPairing:
    """Match the provider's own calls and results: the nearest earlier open call of the id."""
    pairing = _ServerPairing([], [], [], [])
    waiting: dict[str | None, list[Ref]] = {}
    knows_all = True
    for index, message in enumerate(messages):
        # What a reference refers to may have made the call of any later result.
        knows_all = knows_all and not is_reference(message)
        for place, part in enumerate(message.parts):
            ref = Ref(index, place, part.call_id)
            owner = owner_of(message, part)
            if owner is not None and owner not in waiting and knows_all:
                pairing.strays.append(ref)
            elif awaits_result(message, part):
                waiting.setdefault(part.call_id, []).append(ref)
            elif part.kind == "tool_result" and part.server_side:
                if waiting.get(part.call_id):
                    pairing.pairs.append((waiting[part.call_id].pop(), ref))
                elif knows_all:
                    pairing.orphans.append(ref)
    pairing.open_calls.extend(sorted(ref for refs in waiting.values() for ref in refs))
    return pairing


def awaits_result(message: Message, part: Part) -> bool:
    """Return whether a part is a call of the provider's own whose result is a part of its own."""
    if part.kind != "tool_call" or not part.server_side:
        return False
    return message.format != "responses" or message.data.get("type") in _ANSWERED


def follow(message: Message, owed: set[str | None]) -> None:
    """Keep up the ids whose results the provider owes; a program's may come many messages later."""
    for part in message.parts:
        if awaits_result(message, part):
            owed.add(part.call_id)
        elif part.server_side and part.kind == "tool_result":
            owed.discard(part.call_id)


def owner_of(message: Message, part: Part) -> str | None:
    """Return the id of the program that made a call or got its result; None if none did."""
    block = block_of(message, part) if part.call_id is not None else None
    caller = block.get("caller") if isinstance(block, dict) else None
    owner = caller.get("caller_id", caller.get("tool_id")) if isinstance(caller, dict) else None
    return owner if isinstance(owner, str) else None


def running(messages: Sequence[Message], pairing: _ServerPairing) -> frozenset[Ref]:
    """Return the open calls at the very end, which the provider continues with when they are sent.

    Behind the last answer there are at most results of the client, for a program that asked for
    them. A text after a call says that the provider was done with it; a request for approval waits
    all the same.
    """
    spans = answers(messages) if pairing.open_calls else []
    if not spans or trailing_results(messages) != spans[-1][1] + 1:
        return frozenset()
    first, last = spans[-1]
    tail = [(n, place, part) for n in range(first, last + 1)
            for place, part in enumerate(messages[n].parts)]  # fmt: skip
    asked = {owner_of(messages[n], part) for n, _, part in tail} - {None}
    spoke = max(((n, place) for n, place, part in tail if part.kind == "text"), default=(-1, 0))
    return frozenset(
        ref
        for ref in pairing.open_calls
        if ref.call_id in asked
        or (ref.message >= first and (ref[:2] > spoke or _asks(messages[ref.message])))
    )


def _asks(message: Message) -> bool:
    return message.data.get("type") == "mcp_approval_request"


def last_answer(messages: Sequence[Message]) -> int:
    """Return where the model's last answer begins; the length if it gave none."""
    spans = answers(messages)
    return spans[-1][0] if spans else len(messages)


# -- P1: the arguments of a call are JSON


class ArgumentsAreJson(SingleInvariant):
    """Replayed calls carry arguments that parse; free-form custom tools carry any text."""

    id = "P1.arguments"
    sentence = "The arguments of every tool call are valid JSON."
    formats = ("openai", "responses")

    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return the calls whose arguments do not parse."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=message.message_id,
                call_id=part.call_id,
                text=f"the arguments of the call {part.call_id!r} are not valid JSON",
                provider_error="failed to parse tool call arguments as json",
                fix='wrap the text as {"_invalid": ...}; empty arguments become {}',
            )
            for index in indices
            for message in (messages[index],)
            for part in message.parts
            if part.kind == "tool_call" and not has_valid_arguments(message, part)
        ]


def has_valid_arguments(message: Message, part: Part) -> bool:
    """Return whether the arguments of a call may be replayed."""
    return part.server_side or not _takes_json(message, part) or is_json(part.text)


def is_json(text: str) -> bool:
    """Return whether a text is one JSON value by the letter of the standard."""
    try:
        _STRICT.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _takes_json(message: Message, part: Part) -> bool:
    block = block_of(message, part)
    return "arguments" in block or "function" in block


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_STRICT = json.JSONDecoder(parse_int=str, parse_constant=_refuse)


# -- P2: thinking is kept as the model wrote it, or not at all


_NEEDS = {"thinking": "signature", "redacted_thinking": "data"}


class ThinkingIsWhole(SingleInvariant):
    """A thinking block carries what the provider verifies it by.

    Whether kept blocks are still the same bytes can only be seen against an earlier history:
    `changed_thinking` and `bound_thinking` compare two.
    """

    id = "P2.verbatim"
    sentence = "Signed thinking is whole or gone."
    formats = ("anthropic",)

    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return the thinking blocks that lost their signature or their data."""
        return [
            _breach(
                message, index, f"a thinking block has no `{missing}`", f"{missing}: Field required"
            )
            for index in indices
            for message in (messages[index],)
            for part in message.parts
            if (missing := missing_seal(message, part))
        ]


def missing_seal(message: Message, part: Part) -> str | None:
    """Return the field that a thinking block of Anthropic lacks, or None."""
    if part.kind != "thinking":
        return None
    block = _block(message, part)
    field = _NEEDS.get(str(block.get("type")))
    return field if field and not isinstance(block.get(field), str) else None


def changed_thinking(before: Sequence[Message], after: Sequence[Message]) -> list[Violation]:
    """Return the thinking of `after` that the same message of `before` does not hold as it is."""
    same = set(map(id, before))
    touched = [(n, m) for n, m in enumerate(after) if id(m) not in same]
    thinking = [(n, m) for n, m in touched if any(p.kind == "thinking" for p in m.parts)]
    known = {m.message_id: _thinking(m) for m in before} if thinking else {}
    return [
        _breach(message, index, "a thinking block was changed", _CHANGED)
        for index, message in thinking
        for block in _thinking(message)
        if block not in known.get(message.message_id, [block])
    ]


def bound_thinking(before: Sequence[Message], after: Sequence[Message]) -> list[Violation]:
    """Return the thinking of `after` that follows its first difference from `before`.

    For models that bind thinking to everything in front of it.
    """
    first = first_difference(before, after)
    return [
        _breach(message, index, "a bound thinking block follows an edit", _CHANGED)
        for index, message in enumerate(after)
        if index >= first
        for _ in _thinking(message)
    ]


def first_difference(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the index of the first message that is not the same in both histories."""
    start = common_prefix(before, after)
    for index, (old, new) in enumerate(zip(before[start:], after[start:], strict=False), start):
        if old is not new and old.data != new.data:
            return index
    return min(len(before), len(after))


_CHANGED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


def _thinking(message: Message) -> list[Mapping[str, Any]]:
    return [_block(message, part) for part in message.parts if part.kind == "thinking"]


def _block(message: Message, part: Part) -> Mapping[str, Any]:
    block = block_of(message, part)
    return block if isinstance(block, Mapping) else {"text": block}


def _breach(message: Message, index: int, text: str, error: str) -> Violation:
    return Violation(
        promise=ThinkingIsWhole.id,
        index=index,
        message_id=message.message_id,
        text=text,
        provider_error=error,
        fix="take the thinking block out of the view",
    )


# -- P2: thinking is followed by what it led to


_NOT_FOLLOWED = {
    "responses": "Item '{id}' of type 'reasoning' was provided without its required following "
    "item.",
    "anthropic": "The final block in an assistant message cannot be `thinking`.",
}


class ThinkingIsFollowed(Invariant):
    """A reasoning item belongs to the item after it; an Anthropic answer does not end in thinking.

    Anthropic joins assistant messages that follow each other, so the next one may complete it.
    """

    id = "P2.follow"
    sentence = "Thinking is followed by the answer or the call that it led to."
    formats = ("responses", "anthropic")

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the thinking that leads nowhere."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=messages[index].message_id,
                text="the thinking is not followed by what it led to",
                provider_error=_NOT_FOLLOWED[messages[index].format].format(
                    id=messages[index].data.get("id", "")
                ),
                fix="take the thinking out of the view",
                pending=after is None,
            )
            for index, after in followers(messages)
            if after is None or messages[after].role != "assistant"
        ]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions that do not part thinking from what follows it."""
        spans = [(index, after) for index, after in followers(messages) if after is not None]
        return positions_outside(spans, len(messages))


def followers(messages: Sequence[Message]) -> list[tuple[int, int | None]]:
    """Return each message that ends in thinking with the message that comes next, if any.

    System entries between Anthropic messages do not count.
    """
    found: list[tuple[int, int | None]] = []
    after: int | None = None
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "system" and message.format == "anthropic":
            continue
        if _ends_in_thinking(message):
            found.append((index, after))
        after = index
    return found[::-1]


def _ends_in_thinking(message: Message) -> bool:
    if message.role != "assistant" or not message.parts:
        return False
    if message.format == "responses":
        return is_thinking(message)
    return message.format == "anthropic" and message.parts[-1].kind == "thinking"


# -- P14: the history begins the way its provider demands


class UserSpeaksFirst(Invariant):
    """Anthropic wants the user to begin. Messages of equal role it joins by itself."""

    id = "P14.first"
    sentence = "The first message comes from the user."
    formats = ("anthropic",)

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the first message if it is not the user's."""
        first = first_spoken(messages)
        if first is None or messages[first].role == "user":
            return []
        return [
            Violation(
                promise=self.id,
                index=first,
                message_id=messages[first].message_id,
                text=f"the first message has the role {messages[first].role!r}",
                provider_error='messages: first message must use the "user" role',
                fix="put a short notice of the user role in front",
            )
        ]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions at which the user speaks next, and the end."""
        free, next_role = [len(messages)], "user"
        for index in range(len(messages) - 1, -1, -1):
            if messages[index].role != "system":
                next_role = messages[index].role
            if next_role == "user":
                free.append(index)
        return frozenset(free)


def first_spoken(messages: Sequence[Message]) -> int | None:
    """Return the index of the first message that is not a system entry."""
    return next((i for i, message in enumerate(messages) if message.role != "system"), None)


# -- P14: every message says something where its provider demands it


_NULL = "Invalid value for 'content': expected a string, got null."
_NO_CALLS = "Invalid 'tool_calls': empty array. Expected an array with minimum length 1."
_NOTHING = "all messages must have non-empty content"
_BLANK = "text content blocks must be non-empty"


class ContentIsPresent(SingleInvariant):
    """Anthropic refuses empty messages and blank text, OpenAI null content and empty call lists."""

    id = "P14.content"
    sentence = "No message is empty where its provider wants content."
    formats = ("openai", "anthropic")

    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return the messages and text blocks that are empty."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=message.message_id,
                text=text,
                provider_error=error,
                fix="take the empty block or message out; null content becomes empty text",
            )
            for index in indices
            for message in (messages[index],)
            if not may_be_empty(messages, index)
            for text, error in _gaps(message)
        ]


def may_be_empty(messages: Sequence[Message], index: int) -> bool:
    """Return whether this is Anthropic's one exception: an empty assistant message at the very end."""
    message = messages[index]
    if index != len(messages) - 1 or (message.format, message.role) != ("anthropic", "assistant"):
        return False
    return message.data.get("content") in ("", [])


def _gaps(message: Message) -> Iterator[tuple[str, str]]:
    if message.format == "openai":
        if lacks_content(message):
            yield "the message has no content", _NULL
        if message.data.get("tool_calls") == []:
            yield "the list of tool calls is empty", _NO_CALLS
    elif not message.parts and not message.data.get("output_config"):
        yield "the message has no content", _NOTHING
    else:
        blank = sum(_has_blank_text(message, part) for part in message.parts)
        yield from [("a text block is blank", _BLANK)] * blank


def lacks_content(message: Message) -> bool:
    """Return whether an OpenAI message has an empty list for content, or null without an excuse."""
    content = message.data.get("content")
    return content == [] or (content is None and not is_excused(message))


def is_excused(message: Message) -> bool:
    """Return whether an OpenAI message may do without content: it calls, refuses or speaks.

    A function of the oldest kind may return null.
    """
    if message.data.get("role") == "function":
        return "content" in message.data
    return message.role == "assistant" and any(part.kind != "thinking" for part in message.parts)


def _has_blank_text(message: Message, part: Part) -> bool:
    """Return whether an Anthropic part is, or holds, a text block without any letter."""
    if part.kind == "text":
        return not part.text.strip()
    if part.kind != "tool_result" or part.server_side:
        return False
    content = block_of(message, part).get("content")
    return isinstance(content, list) and any(is_blank(each) for each in content)


def is_blank(block: Any) -> bool:
    """Return whether a block within a result is a text block without any letter."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return False
    return not str(block.get("text", "")).strip()


# -- P14: no item occurs twice in a history


class ItemsAreUnique(Invariant):
    """The Responses format names its items; a second item of one id is refused."""

    id = "P14.unique"
    sentence = "No item occurs twice in a history."
    formats = ("responses",)

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return the items whose id an earlier item has."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=messages[index].message_id,
                text=f"an earlier item has the id {messages[index].data['id']!r} too",
                provider_error=f"Duplicate item found with id {messages[index].data['id']}.",
                fix="keep the first and take the other out of the view",
            )
            for index in repeated_items(messages)
        ]


PLACEHOLDER_ID = "__fake_id__"
"""The id of every item that openai-agents makes of an answer over Chat Completions: it names none of them."""


def repeated_items(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the items whose id occurs earlier in the history."""
    seen: set[str] = set()
    repeated = []
    for index, message in enumerate(messages):
        item_id = message.data.get("id")
        if not isinstance(item_id, str) or item_id == PLACEHOLDER_ID:
            continue
        if is_reference(message) or _names_its_call(message):
            continue
        if item_id in seen:
            repeated.append(index)
        seen.add(item_id)
    return repeated


def _names_its_call(message: Message) -> bool:
    """Return whether an item's `id` is that of the call it answers, as local shells have it."""
    return message.data.get("type") == "local_shell_call_output"
