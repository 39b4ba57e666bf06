"""The resources: usage, segments, collections, plans and checkpoints, for clients that show them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from ctxgc.errors import CtxgcError
from ctxgc.mcp.service import ContextService

Json = dict[str, Any]
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


def read(service: ContextService, uri: str) -> Json:
    """Return what a resource holds.

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
