"""Repairs of calls and results: each call answered once, right behind its batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ctxgc.core.message import Message, Part
from ctxgc.invariants.batch import ResultsFollowTheirBatch, misplaced
from ctxgc.invariants.blocks import block_of
from ctxgc.invariants.pair import CallsAndResultsPair, is_pending, trailing_results
from ctxgc.invariants.pairs import Batch, Pairing, Ref, may_stay_open, pair, tool_channel
from ctxgc.invariants.single import OneResultPerCall
from ctxgc.wire import anthropic, openai_chat, openai_responses
from ctxgc.wire.draft import Draft, Reason
from ctxgc.wire.edit import drop_parts
from ctxgc.wire.fields import Json
from ctxgc.wire.messages import build

INTERRUPTED = "[no result: the call was interrupted]"
_ANSWERABLE = ("function_call", "custom_tool_call")


class _Move(NamedTuple):
    """A result on its way to its call; a result that does not exist yet comes from nowhere."""

    call: Ref
    source: Ref | None


def mend_pairs(draft: Draft, *, complete: bool) -> None:
    """Give each call its one result and each result its place."""
    # Again, because answers of the Responses format that lose what parted them become one.
    while surplus := _surplus(draft, complete=complete):
        draft.drop(surplus)
    pairing = pair(draft.messages)
    wrong = dict(misplaced(draft.messages, pairing))
    wrong.update(_early_results(draft.messages, pairing))
    missing = set(_unanswered(draft, pairing, complete=complete)) - set(wrong)
    moves = [_Move(call, wrong.get(call)) for call in sorted({*wrong, *missing})]
    if moves:
        _carry_out(draft, pairing, moves)


def _surplus(draft: Draft, *, complete: bool) -> dict[Ref, Reason]:
    """Return second results, results of no call, repeated calls and calls nobody can answer."""
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
    """Return the open calls whose result stands in front of them, with that result."""
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


def _unanswered(draft: Draft, pairing: Pairing, *, complete: bool) -> list[Ref]:
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


def _carry_out(draft: Draft, pairing: Pairing, moves: list[_Move]) -> None:
    """Take the moving results out, then put each batch's results behind it."""
    batches = {call: batch for batch in pairing.batches for call in batch.calls}
    results = {move.call: move.source for move in moves}
    arrivals: dict[int, list[Message]] = {}
    for move in moves:
        target = _target(draft.messages, batches[move.call], results)
        arrivals.setdefault(target, []).append(_result_message(draft, move))
    left = _without(draft.messages, [source for source in results.values() if source is not None])
    draft.messages = _joined(left, arrivals)


def _target(messages: list[Message], batch: Batch, results: Mapping[Ref, Ref | None]) -> int:
    """Return the message behind which the late results of a batch belong.

    That is its last call, so that an answer which followed stays behind the results. But results
    in place, and calls that still wait, need the whole answer in front of all results.
    """
    placed = [ref.message for call, ref in batch.answers.items() if call not in results]
    waits = any(call not in results for call in batch.open_calls())
    last = batch.last if waits else batch.calls[-1].message
    if messages[last].format == "anthropic":
        return batch.last if placed else last
    return max([last, *placed])


def _result_message(draft: Draft, move: _Move) -> Message:
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
        "the result stood away from its call",
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
    """Return the kept messages with the arriving results behind their batches."""
    joined: list[Message] = []
    waiting: list[Message] = []
    for index, message in enumerate(left):
        if message is not None:
            joined += _with_results(waiting, message)
            waiting = []
        waiting += arrivals.get(index, ())
    return joined + _one_message(waiting)


def _with_results(results: list[Message], message: Message) -> list[Message]:
    """Return results and the message behind them; Anthropic wants both in one user message."""
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
