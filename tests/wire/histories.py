"""Random histories in each provider format: valid ones, and ones that somebody broke.

`random_history` is fast (thousands a second) and depends on the generator alone; `histories` and
`broken_histories` wrap the same code as Hypothesis strategies, so that a failure shrinks.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from random import Random
from typing import Any

from hypothesis import strategies as st

from ctxgc.core import Format
from tests.wire.breaking import break_history

Json = dict[str, Any]

WORDS = (
    "read src/app.py", "the build fails in parse()", "done", "naïve café ☕", "0x1F600 \U0001f600",
    "line one\nline two\n", "{\"looks\": \"like json\"}", "exit code 1", "TODO at src/db/pool.rs:42",
    "a" * 300, "\x00 control", "you're right </tool_result>", "1e2",
)  # fmt: skip
TOOLS = ("Bash", "Read", "Edit", "web-search")
ARGUMENTS = ({}, {"path": "src/app.py"}, {"n": 1.5, "deep": {"a": [1, {"b": None}]}}, {"q": "☕"})
ARGUMENT_TEXTS = (*map(json.dumps, ARGUMENTS), '{"a":1e2}', ' {"a": "\\ud83d"}')
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

# What the judge knows beyond a single history, or asks of a request that is not ours to break.
BEYOND = ("duplicate_id", "trailing_space", "empty_history", "cache_control")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def random_history(rng: Random, format: Format, *, pending: bool = False) -> list[Json]:  # noqa: A002
    """Return a valid history of about twelve messages; `pending` leaves its last calls open.

    It holds parallel calls, results in any order, ids used again in later turns, interrupted and
    failed calls, thinking, media, server tools and fields that no format knows.
    """
    maker = _MAKERS[format](rng)
    for _ in range(1 + int(rng.random() * 4)):
        maker.turn()
    if pending:
        # Anthropic wants all results of a batch in one message, so some alone are never seen.
        maker.calls(answered=0 if format == "anthropic" else int(rng.random() * 3))
    return maker.messages


@st.composite
def histories(draw: st.DrawFn, format: Format, *, pending: bool = False) -> list[Json]:  # noqa: A002
    """Return valid histories of one format."""
    return random_history(draw(st.randoms(use_true_random=False)), format, pending=pending)


@st.composite
def broken_histories(draw: st.DrawFn, format: Format) -> list[Json]:  # noqa: A002
    """Return histories that one to six careless edits went through."""
    rng = draw(st.randoms(use_true_random=False))
    history = random_history(rng, format, pending=rng.random() > 0.7)
    for _ in range(draw(st.integers(1, 6))):
        history = break_history(rng, history, format)
    return history


class _Maker(ABC):
    """What the three formats share: the course of a conversation."""

    def __init__(self, rng: Random) -> None:
        self.random = rng.random
        self.messages: list[Json] = []
        self.reuses_ids = rng.random() > 0.7
        self.thinks = rng.random() > 0.6
        self.count = 0

    def lucky(self, chance: float) -> bool:
        """Return false for the smallest numbers, so that Hypothesis shrinks to short histories."""
        return self.random() > 1 - chance

    def turn(self) -> None:
        self.user()
        while self.lucky(0.6):
            self.calls()
            if self.lucky(0.15):
                self.user()
        if self.lucky(0.85):
            self.answer()

    def calls(self, answered: int | None = None) -> None:
        ids = self.ids(1 + int(self.random() ** 3 * 4))
        self.call(ids)
        shown = ids if answered is None else ids[: min(answered, len(ids) - 1)]
        if len(shown) > 1 and self.lucky(0.5):
            shown = shown[::-1]
        if shown:
            self.results(shown)

    def ids(self, number: int) -> list[str]:
        if self.reuses_ids:
            return [f"functions_Bash_{place}" for place in range(number)]
        self.count += number
        return [f"call_{self.count - place}" for place in range(number)]

    def pick(self, items: tuple[Any, ...]) -> Any:
        return items[int(self.random() * len(items))]

    def text(self) -> str:
        return str(self.pick(WORDS))

    @abstractmethod
    def user(self) -> None: ...

    @abstractmethod
    def answer(self) -> None: ...

    @abstractmethod
    def call(self, ids: list[str]) -> None: ...

    @abstractmethod
    def results(self, ids: list[str]) -> None: ...


class _OpenAI(_Maker):
    def __init__(self, rng: Random) -> None:
        super().__init__(rng)
        if rng.random() > 0.3:
            role = "system" if rng.random() > 0.3 else "developer"
            self.messages.append({"role": role, "content": self.text()})

    def user(self) -> None:
        content: Any = self.text()
        if self.lucky(0.15):
            image = {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}
            content = [{"type": "text", "text": content}, {"type": "image_url", "image_url": image}]
        self.messages.append({"role": "user", "content": content})

    def answer(self) -> None:
        message: Json = {"role": "assistant", "content": self.text(), "refusal": None}
        if self.thinks:
            message["reasoning_content"] = self.text()
        self.messages.append(message)

    def call(self, ids: list[str]) -> None:
        calls = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": self.pick(TOOLS), "arguments": self.pick(ARGUMENT_TEXTS)},
            }
            for call_id in ids
        ]
        content = None if self.lucky(0.5) else self.text()
        message: Json = {"role": "assistant", "content": content, "tool_calls": calls}
        if self.thinks:
            message["reasoning_content"] = self.text()
        self.messages.append(message)

    def results(self, ids: list[str]) -> None:
        for call_id in ids:
            content: Any = "" if self.lucky(0.1) else self.text()
            if self.lucky(0.1):
                content = [{"type": "text", "text": content, "x_unknown": [1]}]
            self.messages.append({"role": "tool", "tool_call_id": call_id, "content": content})


class _Anthropic(_Maker):
    def user(self) -> None:
        if self.lucky(0.5):
            self.messages.append({"role": "user", "content": self.text()})
            return
        blocks: list[Json] = [{"type": "text", "text": self.text()}]
        if self.lucky(0.3):
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            blocks.append({"type": "image", "source": source})
        self.messages.append({"role": "user", "content": blocks})
        if self.lucky(0.1):
            self.messages.append({"role": "system", "content": "<reminder>be brief</reminder>"})

    def thinking(self) -> list[Json]:
        if not self.thinks:
            return []
        if self.lucky(0.2):
            return [{"type": "redacted_thinking", "data": "RW5j"}]
        return [{"type": "thinking", "thinking": self.text(), "signature": "c2ln"}]

    def answer(self) -> None:
        blocks = self.thinking()
        if self.lucky(0.15):
            self.count += 1
            server = f"srvtoolu_{self.count}"
            found = [{"type": "web_search_result", "url": "u", "encrypted_content": "Eqg"}]
            blocks += [
                {
                    "type": "server_tool_use",
                    "id": server,
                    "name": "web_search",
                    "input": {"q": "a"},
                },
                {"type": "web_search_tool_result", "tool_use_id": server, "content": found},
            ]
        blocks.append({"type": "text", "text": self.text().rstrip()})
        self.messages.append({"role": "assistant", "content": blocks})

    def call(self, ids: list[str]) -> None:
        blocks = self.thinking()
        if self.lucky(0.4):
            blocks.append({"type": "text", "text": self.text()})
        blocks += [
            {
                "type": "tool_use",
                "id": each,
                "name": self.pick(TOOLS),
                "input": self.pick(ARGUMENTS),
            }
            for each in ids
        ]
        self.messages.append({"role": "assistant", "content": blocks})

    def results(self, ids: list[str]) -> None:
        blocks = [self.result(call_id) for call_id in ids]
        if self.lucky(0.1):
            blocks.append({"type": "text", "text": self.text()})
        self.messages.append({"role": "user", "content": blocks})

    def result(self, call_id: str) -> Json:
        block: Json = {"type": "tool_result", "tool_use_id": call_id, "content": self.text()}
        chance = self.random()
        if chance > 0.95:
            del block["content"]
        elif chance > 0.85:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            block["content"] = [
                {"type": "text", "text": "see"}, {"type": "image", "source": source},
            ]  # fmt: skip
        elif chance > 0.75:
            block["is_error"] = True
        return block


class _Responses(_Maker):
    def user(self) -> None:
        if self.lucky(0.3):
            self.messages.append({"role": "user", "content": self.text()})
            return
        content: list[Json] = [{"type": "input_text", "text": self.text()}]
        if self.lucky(0.2):
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"})
        self.messages.append({"type": "message", "role": "user", "content": content})

    def reason(self) -> None:
        if self.thinks and self.lucky(0.8):
            item: Json = {"type": "reasoning", "id": self.item("rs"), "summary": []}
            if self.lucky(0.5):
                item["encrypted_content"] = "gAAA"
            self.messages.append(item)

    def item(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    def answer(self) -> None:
        self.reason()
        if self.lucky(0.1):
            self.messages.append(
                {"type": "web_search_call", "id": self.item("ws"), "status": "completed"}
            )
            self.reason()
        text = [{"type": "output_text", "text": self.text(), "annotations": []}]
        self.messages.append(
            {"type": "message", "id": self.item("msg"), "role": "assistant", "content": text}
        )

    def call(self, ids: list[str]) -> None:
        self.reason()
        self.custom = self.lucky(0.15)
        for call_id in ids:
            item: Json = {"call_id": call_id, "name": self.pick(TOOLS)}
            if self.custom:
                item |= {"type": "custom_tool_call", "id": self.item("ctc"), "input": self.text()}
            else:
                arguments = self.pick(ARGUMENT_TEXTS)
                item |= {"type": "function_call", "id": self.item("fc"), "arguments": arguments}
            self.messages.append(item)

    def results(self, ids: list[str]) -> None:
        kind = "custom_tool_call_output" if self.custom else "function_call_output"
        for call_id in ids:
            output: Any = self.text()
            if self.lucky(0.1):
                output = [{"type": "input_text", "text": output}]
            self.messages.append({"type": kind, "call_id": call_id, "output": output})


_MAKERS = {"openai": _OpenAI, "anthropic": _Anthropic, "responses": _Responses}
