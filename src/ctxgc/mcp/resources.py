"""What clients can show: resources (usage, segments, collections, plans, checkpoints) and two prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from ctxgc.errors import CtxgcError
from ctxgc.mcp.request import Json
from ctxgc.mcp.service import ContextService

JSON_TYPE = "application/json"
PAGE = 100
MOST_COLLECTIONS = 100

_FIXED: dict[str, tuple[str, Callable[[ContextService], Json]]] = {
    "usage": ("How full the context is", lambda service: service.usage()),
    "segments": ("The first segments, without texts", lambda service: service.segments(PAGE, 0)),
    "collections": ("What was collected", lambda service: service.collections(MOST_COLLECTIONS)),
    "plans": ("Plans that can be applied", lambda service: service.plans()),
    "checkpoints": ("Checkpoints", lambda service: service.checkpoints()),
}
_SEGMENT = re.compile(r"ctxgc://segment/([^/?#]{1,6000})")
_SEGMENTS = re.compile(r"ctxgc://segments/([0-9]{1,9})")

RESOURCES: tuple[types.Resource, ...] = tuple(
    types.Resource(uri=f"ctxgc://{name}", name=name, description=says, mime_type=JSON_TYPE)
    for name, (says, _) in _FIXED.items()
)
TEMPLATES: tuple[types.ResourceTemplate, ...] = (
    types.ResourceTemplate(
        uri_template="ctxgc://segment/{reference}",
        name="segment",
        description="One segment by id, handle or name, with its text",
        mime_type=JSON_TYPE,
    ),
    types.ResourceTemplate(
        uri_template="ctxgc://segments/{offset}",
        name="segments-from",
        description=f"{PAGE} segments from an offset on",
        mime_type=JSON_TYPE,
    ),
)


def read_resource(service: ContextService, uri: str) -> Json:
    """Return the content of a resource.

    Raises:
        MCPError: there is no such resource.
    """
    reader = _reader(uri)
    if reader is None:
        raise _missing(uri, "there is no such resource")
    try:
        return reader(service)
    except CtxgcError as error:
        raise _missing(uri, error.message, error.to_dict()) from None


def _reader(uri: str) -> Callable[[ContextService], Json] | None:
    fixed = _FIXED.get(uri.removeprefix("ctxgc://")) if uri.startswith("ctxgc://") else None
    if fixed is not None:
        return fixed[1]
    if found := _SEGMENTS.fullmatch(uri):
        offset = int(found[1])
        return lambda service: service.segments(PAGE, offset)
    if found := _SEGMENT.fullmatch(uri):
        reference = unquote(found[1])
        return lambda service: service.segment(reference)
    return None


def _missing(uri: str, why: str, error: Json | None = None) -> MCPError:
    return MCPError(
        code=types.INVALID_PARAMS,
        message=f"{why}: {uri[:200]}",
        data={"uri": uri[:200], **(error or {})},
    )


# -- Prompts


PROMPTS: tuple[types.Prompt, ...] = (
    types.Prompt(
        name="clean_up",
        title="Clean up my context",
        description="Find what is no longer needed and stash it",
        arguments=[
            types.PromptArgument(name="target_tokens", description="Where to land", required=False)
        ],
    ),
    types.Prompt(
        name="hand_over",
        title="Hand over this task",
        description="Keep what the next agent needs, and write down where things stand",
        arguments=[types.PromptArgument(name="task_id", description="Which task", required=False)],
    ),
)


def get_prompt(
    service: ContextService, name: str, given: Mapping[str, str] | None
) -> types.GetPromptResult:
    """Return a prompt with the current state of the context in it.

    Raises:
        MCPError: there is no such prompt, or an argument is wrong.
    """
    prompt = next((prompt for prompt in PROMPTS if prompt.name == name), None)
    if prompt is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"there is no prompt '{name[:80]}'")
    said = dict(given or {})
    known = {argument.name for argument in prompt.arguments or ()}
    for argument in said:
        if argument not in known:
            raise MCPError(
                code=types.INVALID_PARAMS,
                message=f"the prompt '{name}' has no argument '{argument[:80]}'",
            )
    text = _clean_up(service, said) if name == "clean_up" else _hand_over(service, said)
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(
        description=prompt.description,
        messages=[types.PromptMessage(role="user", content=content)],
    )


def _clean_up(service: ContextService, said: Mapping[str, str]) -> str:
    size = service.usage()["usage"]
    target = said.get("target_tokens", "")
    if target and not (target.isascii() and target.isdigit()):
        raise MCPError(code=types.INVALID_PARAMS, message="target_tokens is a number of tokens")
    asked = f"target_tokens={target}" if target else ""
    return (
        f"The context holds {size['tokens']} of {size['context_limit']} tokens "
        f"(zone {size['zone']}).\n"
        f"1. Call context_gc_analyze({asked}) and read the reason of each candidate.\n"
        "2. Pin with context_gc_pin what is still needed; then analyse again.\n"
        "3. Call context_gc_prune with the plan_id. Stash; delete nothing that I did not name.\n"
        "4. Tell me in two sentences what left, how many tokens that won, and how to get it back."
    )


def _hand_over(service: ContextService, said: Mapping[str, str]) -> str:
    known = service.usage()
    task = said.get("task_id") or known["task"]
    named = f"task {task!r}" if task else "present task"
    return (
        f"Hand over the {named} to the next agent.\n"
        "1. Call context_search for its decisions, open questions and changed files.\n"
        "2. Put in with context_ingest one decision named 'handover': the goal, what is done, what is "
        "open, which files and commands matter, what was tried and failed. Quote paths, commands and "
        "numbers word for word.\n"
        "3. Pin it with context_gc_pin, then call context_checkpoint(label='handover').\n"
        "4. Answer with the checkpoint_id."
    )
