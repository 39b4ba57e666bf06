"""Everything that a request to each provider may hold, and what the answers hold, by the SDKs."""

from __future__ import annotations

from typing import Any

from anthropic.types import ContentBlock, ContentBlockParam
from anthropic.types.beta import BetaContentBlock, BetaContentBlockParam, BetaSystemMessageParam
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam, ResponseOutputItem
from typing_extensions import is_typeddict

from ctxgc.core import Format
from tests.sdk.type_walk import Json, instances, members

REQUESTS: dict[Format, tuple[Any, ...]] = {
    "openai": (ChatCompletionMessageParam,),
    "responses": (ResponseInputItemParam,),
    "anthropic": (ContentBlockParam, BetaContentBlockParam, BetaSystemMessageParam),
}
ANSWERS: dict[Format, tuple[Any, ...]] = {
    "openai": (ChatCompletionMessage,),
    "responses": (ResponseOutputItem,),
    "anthropic": (ContentBlock, BetaContentBlock),
}
# Objects that their types allow and their documentation does not: they say nothing at all.
_EMPTY: list[Json] = [{"role": "assistant"}, {"role": "system"}]

Case = tuple[Format, Any]


def request_types() -> list[Case]:
    """Return each type of a message, block or item that may be sent, with its format."""
    return [(form, each) for form, each in _types(REQUESTS) if is_typeddict(each)]


def answer_types() -> list[Case]:
    """Return each class of what comes back, with its format."""
    return _types(ANSWERS)


def objects(member: Any) -> list[Json]:
    """Return objects of a type: the least, the fullest, and one for each further choice."""
    return [one for each in instances(member) if each not in _EMPTY for one in _apart(each)]


def _apart(instance: Json) -> list[Json]:
    """Return an answer that calls tools in the new and in the old way as two that do one of both."""
    old_and_new = ("function_call", "tool_calls")
    if not all(instance.get(key) for key in old_and_new):
        return [instance]
    return [{k: v for k, v in instance.items() if k != left_out} for left_out in old_and_new]


def name_of(case: Any) -> str:
    """Return what a type is called in the list of tests."""
    return getattr(case, "__name__", str(case))


def _types(unions: dict[Format, tuple[Any, ...]]) -> list[Case]:
    return [
        (form, member)
        for form, together in unions.items()
        for union in together
        for member in members(union)
    ]
