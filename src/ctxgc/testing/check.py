"""`check_history`: would the provider of this format accept a history?"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ctxgc.errors import InputError
from ctxgc.testing import checker_anthropic, checker_openai, checker_responses
from ctxgc.testing.breach import Body, Breach, without

_CHECKERS: dict[str, Callable[..., list[Breach]]] = {
    "openai": checker_openai.check,
    "responses": checker_responses.check,
    "anthropic": checker_anthropic.check,
}


def check_history(
    messages: Body,
    format: str = "openai",  # noqa: A002  the word that all of ctxgc uses
    *,
    complete: bool = True,
    ignore: Iterable[str] = (),
) -> list[Breach]:
    """Return every rule of the provider that a history breaks; an empty list means it is accepted.

    `messages` is a list of messages or a whole request body in the given format (`openai`,
    `responses` or `anthropic`). `complete=False` allows calls at the very end that still wait for
    their results. `ignore` names rules to leave out, for example `duplicate_id` for histories
    recorded from servers that reuse ids.
    """
    checker = _CHECKERS.get(format)
    if checker is None:
        raise InputError(
            f"format: unknown format {format!r}",
            hint=f"use one of {', '.join(_CHECKERS)}",
            field="format",
        )
    return without(checker(messages, complete=complete), ignore)
