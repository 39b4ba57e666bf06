"""OpenAI's Responses over the official SDK. The whole history is sent; no request refers to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from ctxgc.client.answer import Answer, Call, mark_truncated, read_arguments
from ctxgc.client.provider import Endpoint, OnText
from ctxgc.client.tools import Tool, ToolOutcome
from ctxgc.core import Format
from ctxgc.errors import ClientError

_ENDINGS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponses(Endpoint, frozen=True, kw_only=True):
    """Responses."""

    format: ClassVar[Format] = "responses"

    def user(self, text: str) -> dict[str, Any]:
        """Return a user message."""
        return {"type": "message", "role": "user", "content": text}

    def results(self, outcomes: Sequence[ToolOutcome]) -> list[dict[str, Any]]:
        """Return one output item for each call."""
        return [
            {"type": "function_call_output", "call_id": each.call_id, "output": each.marked()}
            for each in outcomes
        ]

    def schema(self, tool: Tool) -> dict[str, Any]:
        """Return a tool as Responses describe it."""
        function = {"type": "function", "name": tool.name, "description": tool.description}
        return {**function, "parameters": tool.parameters, "strict": False}

    def send(
        self,
        messages: list[dict[str, Any]],
        *,
        system: str | None,
        tools: Sequence[dict[str, Any]],
        on_text: OnText | None,
    ) -> Answer:
        """Ask the model; with `on_text` the answer is streamed to it piece by piece."""
        fields = self.given(
            model=self.model,
            input=messages,
            instructions=system,
            tools=list(tools),
            max_output_tokens=self.max_output_tokens,
        )
        if on_text is None:
            return _answer(self.sdk.responses.create(**fields))
        with self.sdk.responses.create(**fields, stream=True) as events:
            return _answer(_streamed(events, on_text))


def _streamed(events: Iterable[Any], on_text: OnText) -> Any:
    response = None
    for event in events:
        if event.type == "response.output_text.delta":
            on_text(event.delta)
        elif event.type in _ENDINGS:
            response = event.response
    if response is None:
        raise ClientError("the stream ended before the answer did", hint="send it again")
    return response


def _answer(response: Any) -> Answer:
    if response.status == "failed":
        error = response.error.to_dict() if response.error else {}
        said = error.get("message", "no reason given")
        raise ClientError(f"the response failed: {said}", hint="send it again", error=error)
    items = [_kept(item.to_dict()) for item in response.output]
    # Reasoning without an answer after it may not be sent again.
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    calls = [_call(item) for item in items if item.get("type") == "function_call"]
    cut = response.status == "incomplete"
    details = response.incomplete_details
    return Answer(
        messages=items,
        text=response.output_text,
        calls=mark_truncated(calls) if cut else calls,
        stop=(details.reason or "") if cut and details else str(response.status or ""),
        input_tokens=response.usage.input_tokens if response.usage else None,
        output_tokens=response.usage.output_tokens if response.usage else 0,
        raw=response,
    )


def _kept(item: dict[str, Any]) -> dict[str, Any]:
    """Return an output item as it may be sent again: SDK helpers add fields that servers refuse."""
    return {name: value for name, value in item.items() if name != "parsed_arguments"}


def _call(item: dict[str, Any]) -> Call:
    """Return a call, and rewrite arguments that no provider would accept."""
    item["arguments"], arguments, problem = read_arguments(item["arguments"])
    return Call(call_id=item["call_id"], name=item["name"], arguments=arguments, problem=problem)
