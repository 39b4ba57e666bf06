"""OpenAI's chat completions, and every server with this protocol, over the official SDK."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from ctxgc.client.answer import Answer, Call, mark_truncated, read_arguments
from ctxgc.client.provider import Endpoint, OnText
from ctxgc.client.tools import Tool, ToolOutcome
from ctxgc.core import Format
from ctxgc.errors import ClientError

# What an answer may hold but a request may not.
_ONLY_OUT = ("annotations", "audio", "parsed", "function_call")


class OpenAIChat(Endpoint, frozen=True, kw_only=True):
    """Chat completions."""

    format: ClassVar[Format] = "openai"

    def user(self, text: str) -> dict[str, Any]:
        """Return a user message."""
        return {"role": "user", "content": text}

    def results(self, outcomes: Sequence[ToolOutcome]) -> list[dict[str, Any]]:
        """Return one tool message for each call."""
        return [
            {"role": "tool", "tool_call_id": each.call_id, "content": each.marked()}
            for each in outcomes
        ]

    def schema(self, tool: Tool) -> dict[str, Any]:
        """Return a tool as chat completions describe it."""
        function = {"name": tool.name, "description": tool.description}
        return {"type": "function", "function": {**function, "parameters": tool.parameters}}

    def send(
        self,
        messages: list[dict[str, Any]],
        *,
        system: str | None,
        tools: Sequence[dict[str, Any]],
        on_text: OnText | None,
    ) -> Answer:
        """Ask the model; with `on_text` the answer is streamed to it piece by piece."""
        opening = [{"role": "system", "content": system}] if system else []
        fields = self.given(
            model=self.model,
            messages=[*opening, *messages],
            tools=list(tools),
            max_completion_tokens=self.max_output_tokens,
            stream_options={"include_usage": True} if on_text else None,
        )
        if on_text is None:
            return _whole(self.sdk.chat.completions.create(**fields))
        with self.sdk.chat.completions.create(**fields, stream=True) as chunks:
            return _streamed(chunks, on_text)


def _whole(completion: Any) -> Answer:
    if not completion.choices:
        raise ClientError("the answer has no choices", hint="check the server's log")
    choice = completion.choices[0]
    message = choice.message.to_dict()
    return _answer(message, choice.finish_reason, completion.usage, completion)


def _streamed(chunks: Iterable[Any], on_text: OnText) -> Answer:
    message: dict[str, Any] = {}
    stop, usage, last = "", None, None
    for last in chunks:
        usage = last.usage or usage
        for choice in last.choices[:1]:
            _gather(message, choice.delta.to_dict())
            stop = choice.finish_reason or stop
            if choice.delta.content:
                on_text(choice.delta.content)
    calls = message.get("tool_calls", {})
    message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return _answer(message, stop, usage, last)


def _gather(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a piece of a streamed message to what has arrived."""
    for name, value in delta.items():
        if name == "tool_calls":
            for piece in value or ():
                _gather_call(message.setdefault(name, {}), piece)
        elif isinstance(value, str) and name != "role":
            message[name] = message.get(name, "") + value
        elif value is not None:
            message[name] = value


def _gather_call(calls: dict[int, Any], piece: dict[str, Any]) -> None:
    index = piece.get("index", len(calls))
    call = calls.setdefault(
        index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = piece.get("id") or call["id"]
    function = piece.get("function") or {}
    call["function"]["name"] = function.get("name") or call["function"]["name"]
    call["function"]["arguments"] += function.get("arguments") or ""


def _answer(message: dict[str, Any], stop: str, usage: Any, raw: Any) -> Answer:
    kept = {
        name: value
        for name, value in message.items()
        if name not in _ONLY_OUT and value not in (None, [], {})
    }
    calls = [_call(each) for each in kept.get("tool_calls", ())]
    if not calls and "refusal" not in kept:
        kept.setdefault("content", "")
    kept["role"] = "assistant"
    return Answer(
        messages=[kept],
        text=kept.get("content") or kept.get("refusal") or "",
        calls=mark_truncated(calls) if stop == "length" else calls,
        stop=stop or "",
        input_tokens=usage.prompt_tokens if usage else None,
        output_tokens=usage.completion_tokens if usage else 0,
        raw=raw,
    )


def _call(call: dict[str, Any]) -> Call:
    """Return a call, and rewrite arguments that no provider would accept."""
    function = call["function"]
    function["arguments"], arguments, problem = read_arguments(function["arguments"])
    return Call(call_id=call["id"], name=function["name"], arguments=arguments, problem=problem)
