"""Tools of the fixture that ask the client by their result, as the 2026 revision does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Ctx = Context[Any, Any]
Round = str | InputRequiredResult


def _form(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str, most: int) -> CreateMessageRequest:
    said = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=most))


def _ask(state: str | None = None, **questions: InputRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests=questions, request_state=state)


def _answer(ctx: Ctx, key: str) -> Any:
    return (ctx.input_responses or {}).get(key)


def _field(ctx: Ctx, key: str, field: str) -> Any:
    """Return a field of an accepted form; None while it was not answered."""
    answer = _answer(ctx, key)
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return None
    return (answer.content or {}).get(field)


def test_input_required_result_elicitation(ctx: Ctx) -> Round:
    """Ask for a name."""
    name = _field(ctx, "user_name", "name")
    if name is None:
        return _ask(user_name=_form("What is your name?", "name"))
    return f"Hello, {name}!"


def test_input_required_result_sampling(ctx: Ctx) -> Round:
    """Ask the client's model."""
    answer = _answer(ctx, "capital_question")
    if not isinstance(answer, CreateMessageResult):
        return _ask(capital_question=_sample("What is the capital of France?", 100))
    return str(getattr(answer.content, "text", ""))


def test_input_required_result_list_roots(ctx: Ctx) -> Round:
    """Ask for the client's roots."""
    answer = _answer(ctx, "client_roots")
    if not isinstance(answer, ListRootsResult):
        return _ask(client_roots=ListRootsRequest())
    return ", ".join(str(root.uri) for root in answer.roots)


def test_input_required_result_request_state(ctx: Ctx) -> Round:
    """Ask, and know again what was asked."""
    if _field(ctx, "confirm", "ok") is None or ctx.request_state != "asked":
        return _ask("asked", confirm=_form("Please confirm", "ok", "boolean"))
    return "state-ok"


def test_input_required_result_tampered_state(ctx: Ctx) -> Round:
    """Ask with a state that nobody may change; the boundary of the SDK refuses a changed one."""
    return test_input_required_result_request_state(ctx)


def test_input_required_result_multiple_inputs(ctx: Ctx) -> Round:
    """Ask three things at once."""
    keys = ("user_name", "greeting", "client_roots")
    if any(_answer(ctx, key) is None for key in keys) or ctx.request_state != "three":
        return _ask(
            "three",
            user_name=_form("What is your name?", "name"),
            greeting=_sample("Generate a greeting", 50),
            client_roots=ListRootsRequest(),
        )
    return "all answered"


def test_input_required_result_multi_round(ctx: Ctx) -> Round:
    """Ask twice, one after the other."""
    if ctx.request_state == "two" and _field(ctx, "step2", "color") is not None:
        return f"You like {_field(ctx, 'step2', 'color')}"
    if ctx.request_state == "one" and _field(ctx, "step1", "name") is not None:
        return _ask("two", step2=_form("Step 2: What is your favorite color?", "color"))
    return _ask("one", step1=_form("Step 1: What is your name?", "name"))


def test_input_required_result_capabilities(ctx: Ctx) -> Round:
    """Ask only what the client can answer."""
    offered = ctx.client_capabilities
    questions: dict[str, InputRequest] = {}
    if offered is not None and offered.sampling is not None:
        questions["greeting"] = _sample("Generate a greeting", 50)
    if offered is not None and offered.elicitation is not None:
        questions["user_name"] = _form("What is your name?", "name")
    if not questions or ctx.input_responses:
        return "done"
    return InputRequiredResult(input_requests=questions)


def test_streaming_elicitation(ctx: Ctx) -> Round:
    """Ask by the result, never by a request of its own."""
    return test_input_required_result_elicitation(ctx)


def test_input_required_result_prompt(ctx: Ctx) -> Round:
    """A prompt that asks first."""
    context = _field(ctx, "user_context", "context")
    if context is None:
        return _ask(user_context=_form("What context should the prompt use?", "context"))
    return f"Use this context: {context}"


TOOLS: tuple[Callable[..., Any], ...] = (
    test_input_required_result_elicitation, test_input_required_result_sampling,
    test_input_required_result_list_roots, test_input_required_result_request_state,
    test_input_required_result_tampered_state, test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round, test_input_required_result_capabilities,
    test_streaming_elicitation,
)  # fmt: skip
