"""Repair: a broken history made valid by the smallest edits, each of them reported.

`repair` takes what a host or an agent left behind (orphan results, interrupted calls, blank texts, thinking
without its signature) and returns what the provider accepts. The rules are those of `ctxgc.invariants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

import msgspec

from ctxgc.core import Format, Message, Part
from ctxgc.errors import MessageError
from ctxgc.invariants import (
    ArgumentsAreJson,
    Batch,
    CallsAndResultsPair,
    ContentIsPresent,
    ItemsAreUnique,
    OneResultPerCall,
    Pairing,
    Ref,
    ResultsFollowTheirBatch,
    ServerToolsPair,
    ThinkingIsFollowed,
    ThinkingIsWhole,
    UserSpeaksFirst,
    block_of,
    first_spoken,
    followers,
    has_valid_arguments,
    is_blank,
    is_excused,
    is_pending,
    lacks_content,
    last_answer,
    may_be_empty,
    may_stay_open,
    misplaced,
    missing_seal,
    pair,
    repeated_items,
    running,
    server_pairs,
    tool_channel,
    trailing_results,
)
from ctxgc.wire import anthropic, openai_chat, openai_responses
from ctxgc.wire.blocks import Json
from ctxgc.wire.edit import drop_parts, replace_arguments, text_message
from ctxgc.wire.json_text import copy, dump
from ctxgc.wire.messages import RawMessage, build, render
from ctxgc.wire.validation import SHAPE, as_message, check_request

INTERRUPTED = "[no result: the call was interrupted]"
NOTICE = "[The beginning of this conversation is not shown.]"
_ANSWERABLE = ("function_call", "custom_tool_call")

Action = Literal["dropped", "moved", "added", "rewritten"]
_Reason: TypeAlias = tuple[str, str]
T = TypeVar("T")


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One change that repair made; `content` is what it removed or replaced.

    `index` is the place in the history that was handed in, None for a message that was added.
    """

    promise: str
    action: Action
    message_id: str
    text: str
    index: int | None = None
    call_id: str | None = None
    content: Any = None


class RepairResult(msgspec.Struct, Generic[T], frozen=True):
    """A valid history and the fixes that made it so; whatever was removed is in its fix."""

    messages: list[T]
    fixes: list[Fix]


@overload
def repair(
    messages: Sequence[Message],
    format: Format,
    *,
    complete: bool = True,
) -> RepairResult[Message]: ...


@overload
def repair(
    messages: Sequence[RawMessage],
    format: Format,
    *,
    complete: bool = True,
) -> RepairResult[dict[str, Any]]: ...


def repair(
    messages: Sequence[Message] | Sequence[RawMessage],
    format: Format,  # noqa: A002 - the word of the public face
    *,
    complete: bool = True,
) -> RepairResult[Message] | RepairResult[dict[str, Any]]:
    """Return the history as its provider accepts it, with a list of fixes; a valid one unchanged.

    Parsed messages come back as parsed messages, provider messages as provider messages. Results
    move to just after their calls, missing ones are added as interrupted, and results that answer no
    call are removed and kept in their fix. With `complete=False` calls at the very end may stay open.
    """
    check_request(messages, format)
    draft = _draft(messages, format)
    _drop_repeated_items(draft)
    _repair_content(draft)
    _repair_arguments(draft)
    _repair_server_tools(draft, complete=complete)
    _repair_pairs(draft, complete=complete)
    _repair_thinking(draft, complete=complete)
    _repair_opening(draft)
    # A result may now follow the empty last message that Anthropic allows.
    _repair_content(draft)
    if messages and all(isinstance(message, Message) for message in messages):
        return RepairResult(draft.messages, draft.fixes)
    return RepairResult(render(draft.messages), draft.fixes)


def _draft(messages: Sequence[Message] | Sequence[RawMessage], format: Format) -> _Draft:  # noqa: A002
    parsed, places, fixes = [], [], []
    for index, message in enumerate(messages):
        try:
            parsed.append(as_message(message, format, index))
            places.append(index)
        except MessageError as error:
            fixes.append(_dropped(index, message, error))
    return _Draft(parsed, fixes, places)


def _dropped(index: int, message: Message | RawMessage, error: MessageError) -> Fix:
    return Fix(
        promise=SHAPE,
        action="dropped",
        message_id=f"message-{index}",
        text=error.message,
        index=index,
        content=message.data if isinstance(message, Message) else message,
    )


class _Draft:
    """The messages as repaired so far, and the fixes in the order they were made."""

    def __init__(self, messages: Sequence[Message], fixes: Sequence[Fix], places: Sequence[int]):
        self.messages = list(messages)
        self.fixes = list(fixes)
        self._places = {
            message.message_id: place for message, place in zip(messages, places, strict=True)
        }

    def note(
        self,
        promise: str,
        action: Action,
        message: Message,
        text: str,
        *,
        call_id: str | None = None,
        content: Any = None,
    ) -> None:
        """Record a fix."""
        self.fixes.append(
            Fix(
                promise=promise,
                action=action,
                message_id=message.message_id,
                text=text,
                index=self._places.get(message.message_id),
                call_id=call_id,
                content=copy(content),
            )
        )

    def drop(self, reasons: Mapping[Ref, _Reason]) -> None:
        """Remove parts, each for its reason; a message that would not be valid without them goes too."""
        places: dict[int, list[Ref]] = {}
        for ref in sorted(reasons):
            places.setdefault(ref.message, []).append(ref)
        for index in sorted(places, reverse=True):
            for ref in places[index]:
                self._note_part(ref, *reasons[ref])
            self._drop_parts(index, {ref.part for ref in places[index]})

    def _note_part(self, ref: Ref, promise: str, text: str) -> None:
        message = self.messages[ref.message]
        content = block_of(message, message.parts[ref.part])
        self.note(promise, "dropped", message, text, call_id=ref.call_id, content=content)

    def _drop_parts(self, index: int, places: set[int]) -> None:
        message = self.messages[index]
        left = drop_parts(message, places)
        if left is None and len(places) < len(message.parts):
            text = "the rest of the message is not valid by itself"
            self.note(self.fixes[-1].promise, "dropped", message, text, content=message.data)
        self.put(index, left)

    def put(self, index: int, message: Message | None) -> None:
        """Replace one message by another, or by none."""
        self.messages[index : index + 1] = [] if message is None else [message]


# -- Content, arguments, thinking, and who speaks first


def _repair_content(draft: _Draft) -> None:
    """Fill or remove empty content."""
    for index in range(len(draft.messages) - 1, -1, -1):
        message = draft.messages[index]
        if may_be_empty(draft.messages, index):
            continue
        if message.format == "openai":
            _fill_openai(draft, index)
        elif message.data.get("output_config") and not message.parts:
            continue
        elif message.format == "anthropic" and not message.parts:
            _drop_message(draft, index, ContentIsPresent.id, "the message is empty")
        elif message.format == "anthropic":
            _drop_blank_text(draft, index)


def _fill_openai(draft: _Draft, index: int) -> None:
    message = draft.messages[index]
    data = dict(message.data)
    if data.get("tool_calls") == []:
        del data["tool_calls"]
    if lacks_content(message):
        data["content"] = None if is_excused(message) else ""
    if data != message.data:
        text = "the content was null or empty"
        draft.note(ContentIsPresent.id, "rewritten", message, text, content=message.data)
        draft.put(index, _rebuilt(message, data))


def _drop_blank_text(draft: _Draft, index: int) -> None:
    message = draft.messages[index]
    content = message.data["content"]
    blocks = [_without_blanks(block) for block in content] if isinstance(content, list) else content
    if blocks != content:
        text = "a result held blank text"
        draft.note(ContentIsPresent.id, "rewritten", message, text, content=message.data)
        draft.put(index, _rebuilt(message, {**message.data, "content": blocks}))
    reason = (ContentIsPresent.id, "a text block is blank")
    parts = draft.messages[index].parts
    blank = [p for p, part in enumerate(parts) if part.kind == "text" and not part.text.strip()]
    draft.drop({Ref(index, place, None): reason for place in blank})


def _without_blanks(block: Json) -> Json:
    content = block.get("content")
    if block.get("type") != "tool_result" or not isinstance(content, list):
        return block
    return {**block, "content": [each for each in content if not is_blank(each)]}


def _repair_arguments(draft: _Draft) -> None:
    """Wrap arguments that are not JSON, so that the model still sees what it wrote."""
    for index, message in enumerate(draft.messages):
        for place, part in enumerate(message.parts):
            if part.kind != "tool_call" or has_valid_arguments(message, part):
                continue
            wrapped = dump({"_invalid": part.text}) if part.text.strip() else "{}"
            draft.note(
                ArgumentsAreJson.id,
                "rewritten",
                message,
                "the arguments were not valid JSON",
                call_id=part.call_id,
                content=part.text,
            )
            draft.messages[index] = replace_arguments(draft.messages[index], place, wrapped)


def _drop_repeated_items(draft: _Draft) -> None:
    """Remove items that repeat the id of an earlier one."""
    for index in reversed(repeated_items(draft.messages)):
        _drop_message(draft, index, ItemsAreUnique.id, "an earlier item has the same id")


def _drop_message(draft: _Draft, index: int, promise: str, text: str) -> None:
    message = draft.messages[index]
    draft.note(promise, "dropped", message, text, content=message.data)
    draft.put(index, None)


def _repair_server_tools(draft: _Draft, *, complete: bool) -> None:
    """Remove server tool blocks that lost their partner, and the calls of a program that is gone."""
    if not draft.messages or draft.messages[0].format not in ServerToolsPair.formats:
        return
    reason = (ServerToolsPair.id, "a server tool block lost its partner")
    # Repeated, because what goes may be the program that other blocks belong to.
    while alone := _without_partner(draft.messages, complete=complete):
        draft.drop(dict.fromkeys(alone, reason))


def _without_partner(messages: list[Message], *, complete: bool) -> list[Ref]:
    pairing = server_pairs(messages)
    last, going_on = last_answer(messages), running(messages, pairing)
    open_calls = [
        ref
        for ref in pairing.open_calls
        if ref not in going_on and (complete or ref.message < last)
    ]
    return [*pairing.orphans, *pairing.strays, *open_calls]


def _repair_thinking(draft: _Draft, *, complete: bool) -> None:
    """Remove thinking that is not whole, or that no answer follows."""
    unsealed = [
        Ref(index, place, None)
        for index, message in enumerate(draft.messages)
        for place, part in enumerate(message.parts)
        if missing_seal(message, part)
    ]
    draft.drop(dict.fromkeys(unsealed, (ThinkingIsWhole.id, "the thinking had lost its signature")))
    reason = (ThinkingIsFollowed.id, "no answer follows the thinking")
    while dangling := _dangling(draft.messages, complete=complete):
        draft.drop(dict.fromkeys(dangling, reason))


def _dangling(messages: list[Message], *, complete: bool) -> list[Ref]:
    return [
        Ref(index, len(messages[index].parts) - 1, None)
        for index, after in followers(messages)
        if (complete if after is None else messages[after].role != "assistant")
    ]


def _repair_opening(draft: _Draft) -> None:
    """Insert a short notice at the start if the provider wants the user to speak first."""
    first = first_spoken(draft.messages)
    if first is None or draft.messages[first].format != "anthropic":
        return
    if draft.messages[first].role == "user":
        return
    follower = draft.messages[first]
    notice = text_message("user", NOTICE, "anthropic", f"{follower.message_id}:notice")
    draft.messages.insert(first, notice)
    draft.note(UserSpeaksFirst.id, "added", notice, "the first message was not the user's")


def _rebuilt(message: Message, data: Json) -> Message:
    return build(data, message.format, message.message_id, origin=message.origin)


# -- Calls and results


class _Move(NamedTuple):
    """A result to be placed after its call; `source` is None if there is no result yet."""

    call: Ref
    source: Ref | None


def _repair_pairs(draft: _Draft, *, complete: bool) -> None:
    """Give each call its one result and each result its place."""
    # Repeated, because Responses items become one answer when what separated them is removed.
    while surplus := _surplus(draft, complete=complete):
        draft.drop(surplus)
    pairing = pair(draft.messages)
    wrong = dict(misplaced(draft.messages, pairing))
    wrong.update(_early_results(draft.messages, pairing))
    missing = set(_unanswered(draft, pairing, complete=complete)) - set(wrong)
    moves = [_Move(call, wrong.get(call)) for call in sorted({*wrong, *missing})]
    if moves:
        _carry_out(draft, pairing, moves)


def _surplus(draft: _Draft, *, complete: bool) -> dict[Ref, _Reason]:
    """Return second results, results of no call, repeated calls and calls that cannot be answered."""
    pairing = pair(draft.messages)
    early = _early_results(draft.messages, pairing)
    found = set(early.values())
    orphans = [ref for ref in pairing.orphans if ref not in found]
    hopeless = [
        ref
        for ref in _unanswered(draft, pairing, complete=complete)
        if ref not in early and not _can_answer(draft.messages[ref.message])
    ]
    return {
        **dict.fromkeys(pairing.extras, (OneResultPerCall.id, "a second result of one call")),
        **dict.fromkeys(pairing.repeats, (OneResultPerCall.id, "a second call of one id")),
        **dict.fromkeys(orphans, (CallsAndResultsPair.id, "the result answers no call")),
        **dict.fromkeys(hopeless, (CallsAndResultsPair.id, "the call was interrupted")),
    }


def _early_results(messages: list[Message], pairing: Pairing) -> dict[Ref, Ref]:
    """Return the open calls whose result comes before them, with that result."""
    orphans: dict[tuple[str, str | None], list[Ref]] = {}
    for ref in pairing.orphans:
        orphans.setdefault(_key(messages, ref), []).append(ref)
    found = {}
    for batch in pairing.batches:
        for call in batch.open_calls():
            earlier = orphans.get(_key(messages, call))
            if earlier and earlier[0] < call:
                found[call] = earlier.pop(0)
    return found


def _key(messages: list[Message], ref: Ref) -> tuple[str, str | None]:
    return tool_channel(messages[ref.message]), ref.call_id


def _unanswered(draft: _Draft, pairing: Pairing, *, complete: bool) -> list[Ref]:
    tail = trailing_results(draft.messages)
    return [
        call
        for batch in pairing.batches
        if complete or not is_pending(batch, tail)
        for call in batch.open_calls()
        if not may_stay_open(draft.messages[call.message])
    ]


def _can_answer(message: Message) -> bool:
    return message.format != "responses" or message.data.get("type") in _ANSWERABLE


def _carry_out(draft: _Draft, pairing: Pairing, moves: list[_Move]) -> None:
    """Remove the moving results, then insert each batch's results after it."""
    batches = {call: batch for batch in pairing.batches for call in batch.calls}
    results = {move.call: move.source for move in moves}
    arrivals: dict[int, list[Message]] = {}
    for move in moves:
        target = _target(draft.messages, batches[move.call], results)
        arrivals.setdefault(target, []).append(_result_message(draft, move))
    left = _without(draft.messages, [source for source in results.values() if source is not None])
    draft.messages = _joined(left, arrivals)


def _target(messages: list[Message], batch: Batch, results: Mapping[Ref, Ref | None]) -> int:
    """Return the message after which the late results of a batch belong.

    That is its last call, so that an answer which followed it still follows the results. But results
    already in place, and calls that stay open, need the whole answer before all results.
    """
    placed = [ref.message for call, ref in batch.answers.items() if call not in results]
    waits = any(call not in results for call in batch.open_calls())
    last = batch.last if waits else batch.calls[-1].message
    if messages[last].format == "anthropic":
        return batch.last if placed else last
    return max([last, *placed])


def _result_message(draft: _Draft, move: _Move) -> Message:
    caller = draft.messages[move.call.message]
    if move.source is None:
        call = caller.parts[move.call.part]
        message = _interrupted(caller, call)
        draft.note(
            CallsAndResultsPair.id, "added", message, "the call had no result", call_id=call.call_id
        )
        return message
    holder = draft.messages[move.source.message]
    draft.note(
        ResultsFollowTheirBatch.id,
        "moved",
        holder,
        "the result was not next to its call",
        call_id=move.call.call_id,
    )
    if holder.format != "anthropic":
        return holder
    block = block_of(holder, holder.parts[move.source.part])
    data = {"role": "user", "content": [block]}
    return build(data, "anthropic", f"{holder.message_id}:{move.call.call_id}")


def _interrupted(caller: Message, call: Part) -> Message:
    if caller.format == "openai":
        data = openai_chat.result_data(call, INTERRUPTED)
    elif caller.format == "responses":
        data = openai_responses.result_data(call, INTERRUPTED, caller.data["type"])
    else:
        data = anthropic.result_data(call, INTERRUPTED)
    message_id = f"{caller.message_id}:{call.call_id}:result"
    return build(data, caller.format, message_id, origin="gc_notice")


def _without(messages: list[Message], refs: Iterable[Ref]) -> list[Message | None]:
    places: dict[int, set[int]] = {}
    for ref in refs:
        places.setdefault(ref.message, set()).add(ref.part)
    return [
        drop_parts(message, places[index]) if index in places else message
        for index, message in enumerate(messages)
    ]


def _joined(left: list[Message | None], arrivals: dict[int, list[Message]]) -> list[Message]:
    """Return the kept messages with the arriving results after their batches."""
    joined: list[Message] = []
    waiting: list[Message] = []
    for index, message in enumerate(left):
        if message is not None:
            joined += _with_results(waiting, message)
            waiting = []
        waiting += arrivals.get(index, ())
    return joined + _one_message(waiting)


def _with_results(results: list[Message], message: Message) -> list[Message]:
    """Return results and the message after them; Anthropic wants both in one user message."""
    if message.format != "anthropic" or message.role != "user" or not results:
        return [*_one_message(results), message]
    content = message.data["content"]
    rest = [{"type": "text", "text": content}] if isinstance(content, str) else content
    data = {**message.data, "content": [*_blocks(results), *rest]}
    return [build(data, "anthropic", message.message_id, origin=message.origin)]


def _one_message(results: list[Message]) -> list[Message]:
    if len(results) < 2 or results[0].format != "anthropic":
        return results
    data = {"role": "user", "content": _blocks(results)}
    return [build(data, "anthropic", results[0].message_id, origin=results[0].origin)]


def _blocks(results: list[Message]) -> list[Json]:
    return [block for result in results for block in result.data["content"]]
