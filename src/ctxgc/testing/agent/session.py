"""Whole sessions of the invented agent, of any length, in the words of any provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ctxgc.errors import InputError
from ctxgc.testing.agent.render import Anthropic, Message, OpenAIChat, Renderer, Responses
from ctxgc.testing.agent.script import Script
from ctxgc.testing.agent.steps import Fact, Step

CHARS_PER_TOKEN = 4
_RENDERERS: dict[str, Callable[..., Renderer]] = {
    "openai": OpenAIChat,
    "anthropic": Anthropic,
    "responses": Responses,
}


@dataclass(frozen=True, slots=True)
class AgentSession:
    """One invented session: its history, and what a request needs around it.

    In the `openai` format the system text is the first message; elsewhere it stands apart.
    `facts` says which texts are needed again long after they were said.
    """

    seed: int
    format: str
    messages: list[Message]
    system: str
    tools: list[Message]
    facts: tuple[Fact, ...]

    def body(self, model: str = "scripted-model", **fields: Any) -> dict[str, Any]:
        """Return a request body with this history; `fields` are added to it."""
        body: dict[str, Any] = {"model": model, "tools": self.tools}
        if self.format == "openai":
            body["messages"] = self.messages
        elif self.format == "anthropic":
            body |= {"system": self.system, "messages": self.messages, "max_tokens": 1024}
        else:
            body |= {"instructions": self.system, "input": self.messages}
        return body | fields


@dataclass(slots=True)
class _Ledger:
    """Collects messages and remembers where each fact was said and needed."""

    messages: list[Message] = field(default_factory=list)
    chars: int = 0
    _born: dict[str, int] = field(default_factory=dict)
    _needed: dict[str, list[int]] = field(default_factory=dict)

    def add(self, step: Step, rendered: list[Message]) -> None:
        start = len(self.messages)
        for fact in step.plants:
            places = (start + n for n, message in enumerate(rendered) if fact in str(message))
            self._born[fact] = next(places, start)
        for fact in step.needs:
            self._needed.setdefault(fact, []).append(start)
        self.messages += rendered
        self.chars += step.size

    def facts(self) -> tuple[Fact, ...]:
        return tuple(
            Fact(text, born, tuple(self._needed.get(text, ()))) for text, born in self._born.items()
        )


def make_session(
    seed: int = 0,
    messages: int = 200,
    format: str = "openai",  # noqa: A002  the word that every door of ctxgc uses
    *,
    tokens: int | None = None,
    thinking: bool = False,
    parallel: bool = True,
    reuse_ids: bool = False,
) -> AgentSession:
    """Return the session of this seed, cut to `messages` messages or to about `tokens` tokens.

    The agent works on an invented project: it greps, reads, edits and reads again what it
    changed, runs tests that fail and then pass, keeps a todo list, reads long logs, and is asked
    about tickets and decisions of long ago. The history is valid in its format at any length.
    Thinking is signed with a plain digest, which no server has issued.
    """
    make = _RENDERERS.get(format)
    if make is None or messages < 1 or (tokens is not None and tokens < 1):
        raise _bad_arguments(format, make is None)
    renderer = make(thinking=thinking, reuse_ids=reuse_ids)
    script = Script(seed, parallel=parallel)
    system = _system(script.project.name)
    ledger = _Ledger()
    if format == "openai":
        ledger.messages.append({"role": "system", "content": system})
    if tokens is None:
        _fill(ledger, renderer, script.steps(), messages)
    else:
        _grow(ledger, renderer, script.steps(), tokens * CHARS_PER_TOKEN)
    return AgentSession(seed, format, ledger.messages, system, renderer.tools(), ledger.facts())


def _fill(ledger: _Ledger, renderer: Renderer, steps: Iterator[Step], messages: int) -> None:
    """Add steps while they fit, then say a few words until the number is met."""
    for step in steps:
        rendered = renderer.messages(step)
        if len(ledger.messages) + len(rendered) > messages:
            break
        ledger.add(step, rendered)
    while len(ledger.messages) < messages:
        last = ledger.messages[-1].get("role") if ledger.messages else "assistant"
        said = Step("user", "Please go on.") if last in ("assistant", "system") else _GO_ON
        ledger.add(said, renderer.messages(said))


_GO_ON = Step("assistant", "I will go on with the next step.")


def _grow(ledger: _Ledger, renderer: Renderer, steps: Iterator[Step], chars: int) -> None:
    for step in steps:
        if ledger.chars >= chars:
            return
        ledger.add(step, renderer.messages(step))


def _system(project: str) -> str:
    return (
        f"You are a careful software engineer who works on the project {project}. Use the tools. "
        "Read before you edit, run the tests after each edit, and keep the todo list current."
    )


def _bad_arguments(form: str, unknown: bool) -> InputError:
    if unknown:
        hint = f"use one of {', '.join(_RENDERERS)}"
        return InputError(f"format: unknown format {form!r}", hint=hint, field="format")
    hint = "ask for at least one message or token"
    return InputError("messages: a session cannot be empty", hint=hint, field="messages")
