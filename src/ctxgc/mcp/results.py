"""Results as the protocol wants them: data for programs, the same as text for everybody else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from traceback import format_exception
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ctxgc.config import mask_text
from ctxgc.errors import CtxgcError, InputError

Json = dict[str, Any]
T = TypeVar("T")

PAGE = 50
log = logging.getLogger("ctxgc.mcp")


def result(answer: Json, *, is_error: bool = False) -> types.CallToolResult:
    """Return an answer as a tool result."""
    text = as_text(answer)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=json.loads(text),
        is_error=is_error,
    )


def failure(error: CtxgcError) -> types.CallToolResult:
    """Return an error as a tool result: code, message, hint, details."""
    return result(error.to_dict(), is_error=True)


def crash(error: Exception) -> types.CallToolResult:
    """Return what a caller hears of an error that nobody foresaw: that it happened, and no more."""
    log.error("a tool failed\n%s", mask_text("".join(format_exception(error))))
    return failure(
        CtxgcError("the server failed; nothing was changed", hint="see the server's log on stderr")
    )


def refused(error: ValidationError, known: Iterable[str]) -> InputError:
    """Return pydantic's complaint as one of ours, without the values that it complains about."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    first = found[0]
    field = ".".join(str(step) for step in first["loc"]) or "arguments"
    problems = [f"{'.'.join(str(s) for s in each['loc'])}: {each['msg']}" for each in found[:10]]
    return InputError(
        f"{field}: {first['msg']}",
        hint=f"the arguments are: {', '.join(known) or 'none'}",
        field=field,
        problems=problems,
    )


def as_text(answer: Json) -> str:
    """Return an answer as compact JSON; a lone surrogate, which UTF-8 has no bytes for, becomes U+FFFD."""
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def page(
    items: Sequence[T], params: types.PaginatedRequestParams | None
) -> tuple[list[T], str | None]:
    """Return the page that a cursor asks for, and the cursor of the next.

    Raises:
        MCPError: this is no cursor of ours.
    """
    cursor = params.cursor if params is not None else None
    if cursor is None:
        start = 0
    elif cursor.isascii() and cursor.isdigit() and 0 < int(cursor[:9]) < len(items):
        start = int(cursor[:9])
    else:
        raise MCPError(code=types.INVALID_PARAMS, message="unknown cursor")
    end = start + PAGE
    return list(items[start:end]), str(end) if end < len(items) else None
