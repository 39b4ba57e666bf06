"""Signed thinking: how a server recognises the blocks it issued, and the conversation before them.

A signature is a keyed digest of the thinking text, followed by digests of what came before it: the
system prompt, the tools and every earlier block. So a server can tell without a database whether a
block was changed and, if blocks are bound, which part of the conversation before it was.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxgc.testing.anthropic_turns import THINKING, Block, blocks_of, turns_of
from ctxgc.testing.breach import Body, Breach, Json, history_of

BINDING_BETA = "thinking-binding-controls-2026-08-01"
_SIZE = 16
_FRAME = ("system", "tools", "messages")
_DIFFERS = {
    "system": "The `system` prompt differs from the one this block was created with.",
    "tools": "The `tools` differ from the ones this block was created with.",
    "messages": "The messages before this block differ from the ones it was created with.",
}


class ThinkingSignatures:
    """Issues and verifies the signatures of one server.

    `bind` ties each block to everything before it; None does so for the models that do, by their names, and
    for unknown ones. `accept_foreign` accepts blocks that this server did not issue, as in a recorded
    transcript.
    """

    def __init__(self, *, bind: bool | None = True, accept_foreign: bool = False) -> None:
        self.bind = bind
        self.accept_foreign = accept_foreign
        self._issued: set[str] = set()
        self._issued_with: dict[str, tuple[Json, ...]] = {}

    def sign(self, thinking: str, body: Json, before: Sequence[Json] = ()) -> str:
        """Return the signature of a block that answers `body`, after the blocks `before` it."""
        digest = hashlib.sha256()
        for role, block in _blocks(body):
            _feed(digest, role, block.data)
        for data in before:
            _feed(digest, "assistant", data)
        stamp = b"".join([_mac(thinking), *_frame(body), digest.digest()[:_SIZE]])
        signature = base64.b64encode(stamp).decode()
        self._issued.add(signature)
        return signature

    def remember(self, blocks: Sequence[Json]) -> None:
        """Remember which thinking was issued together with which tool calls."""
        thinking = tuple(block for block in blocks if block["type"] in THINKING)
        for block in blocks:
            if block["type"] == "tool_use":
                self._issued_with[str(block["id"])] = thinking

    def check(self, body: Body) -> list[Breach]:
        """Return the thinking blocks of a request that are not what was issued, or not in place."""
        drops = isinstance(body, Mapping) and drops_blocks(body)
        breaches = list(self._latest(body))
        for block, fault in self._faults(body):
            if fault == "text":
                text = f"{block.path}: Invalid `signature` in `thinking` block"
                breaches.append(Breach("signature", text, block.path, index=block.index))
            elif fault and not drops:
                breaches.append(_bound(block, fault))
        return breaches

    def dropped(self, body: Json) -> list[Block]:
        """Return the blocks whose prefix changed, each with the thinking right after it."""
        found: list[Block] = []
        falling = False
        for block, fault in self._faults(body):
            falling = fault in _FRAME or (falling and block.type in THINKING)
            if falling:
                found.append(block)
        return found

    def _faults(self, body: Body) -> Iterator[tuple[Block, str | None]]:
        """Yield every block with what is wrong about its signature, if anything is."""
        digest = hashlib.sha256()
        frame = _frame(body) if isinstance(body, Mapping) else None
        for role, block in _blocks(body):
            fault = None
            if block.type == "thinking":
                parts = None if frame is None else [*frame, digest.digest()[:_SIZE]]
                fault = self._fault(block.data, parts if self._binds(body) else None)
            yield block, fault
            _feed(digest, role, block.data)

    def _binds(self, body: Body) -> bool:
        if self.bind is not None:
            return self.bind
        return not isinstance(body, Mapping) or not _is_free(str(body.get("model")))

    def _fault(self, data: Json, prefix: list[bytes] | None) -> str | None:
        signature = str(data.get("signature"))
        if signature not in self._issued and self.accept_foreign:
            return None
        stamp = _parts(signature)
        if stamp is None or not hmac.compare_digest(stamp[0], _mac(str(data.get("thinking")))):
            return "text"
        if prefix is None:
            return None
        pairs = zip(_FRAME, stamp[1:], prefix, strict=True)
        return next((name for name, issued, now in pairs if issued != now), None)

    def _latest(self, body: Body) -> Iterator[Breach]:
        """Check that the last assistant turn has all the thinking it was issued with, or none."""
        turns = turns_of(history_of(body, "messages"))
        latest = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
        blocks = latest.blocks if latest is not None else []
        sent = [_bare(block.data) for block in blocks if block.type in THINKING]
        issued: list[Json] = []
        for block in blocks:
            known = self._issued_with.get(str(block.data.get("id")), ())
            issued += [each for each in known if each not in issued]
        if sent and issued and sent != issued:
            text = (
                f"{blocks[0].path}: `thinking` or `redacted_thinking` blocks in the latest "
                "assistant message cannot be modified. These blocks must remain as they were in "
                "the original response."
            )
            yield Breach("thinking_changed", text, blocks[0].path, index=blocks[0].index)


_FAMILIES = {"fable": 5.1, "opus": 5.5, "sonnet": 5.5, "haiku": 5.5}


def _is_free(model: str) -> bool:
    """Return whether a model is known to be older than the rule that binds thinking."""
    words = re.split(r"[-.@:]", model.lower())
    if "claude" not in words:
        return False
    after = words[words.index("claude") + 1 :]
    family = next((word for word in after if word in _FAMILIES), None)
    if family is None or after[0] != family:
        return after[:1] in (["1"], ["2"], ["3"], ["instant"], ["v2"])
    numbers = [word for word in after[1:3] if word.isdecimal() and len(word) < 3]
    return bool(numbers) and float(".".join(numbers)) < _FAMILIES[family]


def drops_blocks(body: Json) -> bool:
    """Return whether a request asks for mismatched thinking to be dropped instead of refused."""
    config = body.get("thinking")
    binding = config.get("block_binding") if isinstance(config, Mapping) else None
    return isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block"


def _bound(block: Block, fault: str) -> Breach:
    text = (
        f"{block.path}: Invalid `signature` in `thinking` block. The block is bound to a different "
        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` "
        f'to "drop_block". That setting requires the `{BINDING_BETA}` value in the '
        f"`anthropic-beta` header. {_DIFFERS[fault]}"
    )
    return Breach("thinking_bound", text, block.path, index=block.index)


def _blocks(body: Body) -> Iterator[tuple[str, Block]]:
    for index, message in enumerate(history_of(body, "messages")):
        if isinstance(message, Mapping):
            for block in blocks_of(index, message):
                yield str(message.get("role")), block


def _frame(body: Json) -> list[bytes]:
    system = body.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    parts = ([_bare(block) for block in blocks], [_bare(tool) for tool in body.get("tools") or ()])
    return [hashlib.sha256(_canonical(part)).digest()[:_SIZE] for part in parts]


def _feed(digest: Any, role: str, block: Json) -> None:
    digest.update(role.encode() + b"\0" + _canonical(_bare(block)) + b"\0")


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _bare(block: Any) -> Any:
    """Return a block without its cache breakpoint, which the model does not read."""
    if not isinstance(block, Mapping):
        return block
    return {key: value for key, value in block.items() if key != "cache_control"}


def _mac(text: str) -> bytes:
    return hmac.digest(b"ctxgc.testing", text.encode(errors="surrogatepass"), "sha256")[:_SIZE]


def _parts(signature: str) -> list[bytes] | None:
    try:
        stamp = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    size = _SIZE * (1 + len(_FRAME))
    return [stamp[at : at + _SIZE] for at in range(0, size, _SIZE)] if len(stamp) == size else None
