"""The one-shot form: a history in, a history under budget out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxgc.core import Format
from ctxgc.session.session import Session
from ctxgc.strategies import GCResult
from ctxgc.wire import RawMessage, detect_format


def collect(
    messages: Sequence[RawMessage],
    context_limit: int,
    *,
    format: Format | None = None,  # noqa: A002 - the word of the public face
    target_tokens: int | None = None,
    **options: Any,
) -> tuple[list[dict[str, Any]], GCResult]:
    """Return a history that fits and what was done to make it fit; `messages` is not changed.

    Args:
        messages: a whole history in one wire format.
        context_limit: the size of the window in tokens.
        format: the wire format; found out when it is not given.
        target_tokens: where to land; else `target_percent` of the limit.
        options: anything that `Session` takes, such as `plugin` or `config`.
    """
    options.setdefault("store", "memory:")
    options.setdefault("recall_call", None)
    with Session(context_limit=context_limit, **options) as session:
        session.extend(messages, format=format or detect_format(list(messages)))
        result = session.collect(target_tokens)
        return session.view(), result
