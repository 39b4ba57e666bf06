"""P2: thinking is kept as the model wrote it, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctxgc.core import Message, Part, common_prefix
from ctxgc.invariants.violation import SingleInvariant, Violation, block_of

_NEEDS = {"thinking": "signature", "redacted_thinking": "data"}


class ThinkingIsWhole(SingleInvariant):
    """A thinking block carries what the provider verifies it by.

    Whether kept blocks are still the same bytes can only be seen against an earlier history:
    `changed_thinking` and `bound_thinking` compare two.
    """

    id = "P2.verbatim"
    sentence = "Signed thinking is whole or gone."
    formats = ("anthropic",)

    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return the thinking blocks that lost their signature or their data."""
        return [
            _breach(
                message, index, f"a thinking block has no `{missing}`", f"{missing}: Field required"
            )
            for index in indices
            for message in (messages[index],)
            for part in message.parts
            if (missing := missing_seal(message, part))
        ]


def missing_seal(message: Message, part: Part) -> str | None:
    """Return the field that a thinking block of Anthropic lacks, or None."""
    if part.kind != "thinking":
        return None
    block = _block(message, part)
    field = _NEEDS.get(str(block.get("type")))
    return field if field and not isinstance(block.get(field), str) else None


def changed_thinking(before: Sequence[Message], after: Sequence[Message]) -> list[Violation]:
    """Return the thinking of `after` that the same message of `before` does not hold as it is."""
    same = set(map(id, before))
    touched = [(n, m) for n, m in enumerate(after) if id(m) not in same]
    thinking = [(n, m) for n, m in touched if any(p.kind == "thinking" for p in m.parts)]
    known = {m.message_id: _thinking(m) for m in before} if thinking else {}
    return [
        _breach(message, index, "a thinking block was changed", _CHANGED)
        for index, message in thinking
        for block in _thinking(message)
        if block not in known.get(message.message_id, [block])
    ]


def bound_thinking(before: Sequence[Message], after: Sequence[Message]) -> list[Violation]:
    """Return the thinking of `after` that follows its first difference from `before`.

    For models that bind thinking to everything in front of it.
    """
    first = first_difference(before, after)
    return [
        _breach(message, index, "a bound thinking block follows an edit", _CHANGED)
        for index, message in enumerate(after)
        if index >= first
        for _ in _thinking(message)
    ]


def first_difference(before: Sequence[Message], after: Sequence[Message]) -> int:
    """Return the index of the first message that is not the same in both histories."""
    start = common_prefix(before, after)
    for index, (old, new) in enumerate(zip(before[start:], after[start:], strict=False), start):
        if old is not new and old.data != new.data:
            return index
    return min(len(before), len(after))


_CHANGED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


def _thinking(message: Message) -> list[Mapping[str, Any]]:
    return [_block(message, part) for part in message.parts if part.kind == "thinking"]


def _block(message: Message, part: Part) -> Mapping[str, Any]:
    block = block_of(message, part)
    return block if isinstance(block, Mapping) else {"text": block}


def _breach(message: Message, index: int, text: str, error: str) -> Violation:
    return Violation(
        promise=ThinkingIsWhole.id,
        index=index,
        message_id=message.message_id,
        text=text,
        provider_error=error,
        fix="take the thinking block out of the view",
    )
