"""Google's Agent Development Kit: a plugin that sends the view, and the recall tools.

gc = CtxgcPlugin(context_limit=200_000)
runner = Runner(app=App(name="app", root_agent=agent, plugins=[gc]), session_service=sessions)
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from google.adk.agents.callback_context import CallbackContext
from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.tools import BaseTool, ToolContext
from google.genai import types

from ctxgc.adapters.session_pool import (
    Histories,
    SessionPool,
    ShownMessage,
    TakenHistory,
    arguments_of,
    call_of,
    recovered,
    said_by_assistant,
    text_of,
)
from ctxgc.session import RecallTool


class CtxgcPlugin(BasePlugin):
    """Sends each agent's model a view that fits; the events of the ADK's session stay as they are.

    Args:
        name: the plugin's name in the runner.
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, name: str = "ctxgc", **options: Any) -> None:
        super().__init__(name=name)
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, GenaiContents())
        self._taken: dict[str, TakenHistory[NumberedContent]] = {}

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Replace the contents of the request by the view."""
        await asyncio.to_thread(self._prepare, _key(callback_context), llm_request)
        return None

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Ask again with a smaller view, if the model said that the contents were too long."""
        taken = self._taken.get(_key(callback_context))
        model = getattr(callback_context.get_invocation_context().agent, "canonical_model", None)
        failed: Exception | None = error
        while taken and model and failed:
            if not await asyncio.to_thread(recovered, taken.session, failed):
                return None
            llm_request.contents = await asyncio.to_thread(self._view, taken)
            answers: list[LlmResponse] = []
            failed = await _asked(model, llm_request, answers)
            if answers:
                return answers[-1]
        return None

    async def close(self) -> None:
        """Make the sessions durable, when the runner closes."""
        await asyncio.to_thread(self.sessions.close)

    def tools(self) -> list[BaseTool]:
        """Return the recall tools for `Agent(tools=[...])`."""
        return [AdkRecallTool(self.sessions, tool) for tool in self.sessions.recall_tools()]

    def _prepare(self, key: str, request: LlmRequest) -> None:
        system = request.config.system_instruction
        self._taken[key] = taken = self._histories.take(
            key,
            [*_numbered(request.contents)],
            system=system if isinstance(system, str) else "",
            tools=[*_schemas(request)],
            model=(request.model or "").rpartition("/")[2] or None,
        )
        request.contents = self._view(taken)

    def _view(self, taken: TakenHistory[NumberedContent]) -> list[types.Content]:
        return [numbered.content for numbered in self._histories.view(taken)]


class AdkRecallTool(BaseTool):
    """One recall tool, for the session of the agent that calls it."""

    def __init__(self, sessions: SessionPool, tool: RecallTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._sessions = sessions
        self._parameters = tool.parameters

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=self._parameters,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return what the tool says."""
        key = _key(tool_context)
        return {"result": await asyncio.to_thread(self._sessions.answer, self.name, args, key)}


class NumberedContent(msgspec.Struct, frozen=True):
    """One content with an id for each of its calls or responses: Gemini's have none of their own."""

    content: types.Content
    ids: Sequence[str] = ()


class GenaiContents:
    """How contents of google-genai are read and written: each function response may leave by itself."""

    def encode(self, numbered: NumberedContent) -> list[dict[str, Any]]:
        """Return a content as OpenAI chat writes it; one with several responses is several messages."""
        parts, text = numbered.content.parts or [], _text(numbered.content)
        responses = [part.function_response for part in parts if part.function_response]
        if responses:
            return [
                {"role": "tool", "tool_call_id": ids, "content": _response_text(each)}
                for ids, each in zip(numbered.ids, responses, strict=True)
            ]
        if numbered.content.role != "model":
            return [{"role": "user", "content": text or str(len(parts))}]
        calls = [part.function_call for part in parts if part.function_call]
        named = zip(numbered.ids, calls, strict=True)
        return [said_by_assistant(text, [call_of(i, c.name or "", c.args or {}) for i, c in named])]

    def edit(self, numbered: NumberedContent, parts: Mapping[int, ShownMessage]) -> NumberedContent:
        """Return a copy with the parts that are left; those that did not change are the same objects."""
        had = numbered.content.parts or []
        if any(part.function_response for part in had):
            responses = [part for part in had if part.function_response]
            kept = [_edited_response(responses[n], each) for n, each in sorted(parts.items())]
            return _copy(numbered, kept, [numbered.ids[n] for n in sorted(parts)])
        data = parts[0].data
        text = text_of(data)
        said = [part for part in had if part.text is not None]
        if text != _text(numbered.content):
            said = [types.Part(text=text)] if text else []
        left = {call["id"]: arguments_of(call) for call in data.get("tool_calls", ())}
        calls = [part for part in had if part.function_call]
        found = [(i, part) for i, part in zip(numbered.ids, calls, strict=True) if i in left]
        edited = [_edited_call(part, left[i]) for i, part in found]
        return _copy(numbered, [*said, *edited], [i for i, _ in found])

    def make(self, data: dict[str, Any]) -> NumberedContent:
        """Return a content that ctxgc wrote."""
        role = "model" if data["role"] == "assistant" else "user"
        return NumberedContent(types.Content(role=role, parts=[types.Part(text=text_of(data))]))


def _numbered(contents: Sequence[types.Content]) -> Iterator[NumberedContent]:
    """Yield the contents with ids; a response without one answers the oldest open call of its name."""
    waiting: dict[str, deque[str]] = defaultdict(deque)
    number = 0
    for content in contents:
        ids = []
        for part in content.parts or ():
            if part.function_call:
                number += 1
                ids.append(part.function_call.id or f"call-{number}")
                waiting[part.function_call.name or ""].append(ids[-1])
            elif part.function_response:
                response, name = part.function_response, part.function_response.name or ""
                open_calls = waiting[name]
                if response.id in open_calls:
                    open_calls.remove(response.id)
                    ids.append(response.id)
                else:
                    ids.append(open_calls.popleft() if open_calls else response.id or "")
        yield NumberedContent(content, ids)


async def _asked(model: Any, request: LlmRequest, answers: list[LlmResponse]) -> Exception | None:
    """Ask a model, and collect its answers; return the error that it raised."""
    try:
        answers += [each async for each in model.generate_content_async(request, stream=False)]
    except Exception as error:  # noqa: BLE001 - a provider's, of any kind
        return error
    return None


def _key(context: CallbackContext) -> str:
    """Return the key of a conversation: agents of one session see different contents of it."""
    return f"{context.session.id}/{context.agent_name}"


def _schemas(request: LlmRequest) -> Iterator[dict[str, Any]]:
    for tool in request.config.tools or ():
        for declared in getattr(tool, "function_declarations", None) or ():
            function = declared.model_dump(mode="json", exclude_none=True)
            parameters = function.pop("parameters_json_schema", None)
            function.setdefault("parameters", parameters or {"type": "object", "properties": {}})
            yield {"type": "function", "function": function}


def _text(content: types.Content) -> str:
    return "".join(part.text or "" for part in content.parts or () if not part.thought)


def _response_text(response: types.FunctionResponse) -> str:
    given = response.response or {}
    result = given.get("result")
    if list(given) == ["result"] and isinstance(result, str):
        return result
    return msgspec.json.encode(given, enc_hook=str).decode()


def _edited_response(part: types.Part, shown: ShownMessage) -> types.Part:
    if shown.is_same or part.function_response is None:
        return part
    edited = part.function_response.model_copy(update={"response": {"result": text_of(shown.data)}})
    return part.model_copy(update={"function_response": edited})


def _edited_call(part: types.Part, arguments: dict[str, Any]) -> types.Part:
    call = part.function_call
    if call is None or call.args == arguments:
        return part
    return part.model_copy(update={"function_call": call.model_copy(update={"args": arguments})})


def _copy(
    numbered: NumberedContent, parts: Sequence[types.Part], ids: Sequence[str]
) -> NumberedContent:
    return NumberedContent(types.Content(role=numbered.content.role, parts=list(parts)), ids)
