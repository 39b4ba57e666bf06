"""Repairs within one message, and of the order that needs no partner."""

from __future__ import annotations

from ctxgc.core.message import Message
from ctxgc.invariants.arguments import ArgumentsAreJson, has_valid_arguments
from ctxgc.invariants.content import (
    ContentIsPresent,
    is_blank,
    is_excused,
    lacks_content,
    may_be_empty,
)
from ctxgc.invariants.first import UserSpeaksFirst, first_spoken
from ctxgc.invariants.follow import ThinkingIsFollowed, followers
from ctxgc.invariants.pairs import Ref
from ctxgc.invariants.server import ServerToolsPair, last_answer, running, server_pairs
from ctxgc.invariants.unique import ItemsAreUnique, repeated_items
from ctxgc.invariants.verbatim import ThinkingIsWhole, missing_seal
from ctxgc.wire.draft import Draft
from ctxgc.wire.edit import replace_arguments, text_message
from ctxgc.wire.fields import Json
from ctxgc.wire.json_text import dump
from ctxgc.wire.messages import build

NOTICE = "[The beginning of this conversation is not shown.]"


def mend_content(draft: Draft) -> None:
    """Fill or take out what is empty."""
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


def _fill_openai(draft: Draft, index: int) -> None:
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


def _drop_blank_text(draft: Draft, index: int) -> None:
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


def mend_arguments(draft: Draft) -> None:
    """Wrap arguments that are not JSON, so that the model still sees what it had written."""
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


def mend_unique(draft: Draft) -> None:
    """Take out items whose id an earlier item has."""
    for index in reversed(repeated_items(draft.messages)):
        _drop_message(draft, index, ItemsAreUnique.id, "an earlier item has the same id")


def _drop_message(draft: Draft, index: int, promise: str, text: str) -> None:
    message = draft.messages[index]
    draft.note(promise, "dropped", message, text, content=message.data)
    draft.put(index, None)


def mend_server_tools(draft: Draft, *, complete: bool) -> None:
    """Take out server tool blocks that lost their partner, and what a lost program had called."""
    if not draft.messages or draft.messages[0].format not in ServerToolsPair.formats:
        return
    reason = (ServerToolsPair.id, "a server tool block lost its partner")
    # Again, because what goes may be the program that others belong to.
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


def mend_thinking(draft: Draft, *, complete: bool) -> None:
    """Take out thinking that is not whole, or that no answer follows."""
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


def mend_first(draft: Draft) -> None:
    """Put a short notice in front where the user must speak first."""
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
