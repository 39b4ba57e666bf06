"""Whole sessions of the scripted agent, of any length, in the format of any provider."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ctxgc.errors import InputError
from ctxgc.testing.agent.project import Chance, Project
from ctxgc.testing.agent.render import (
    AnthropicRendering,
    ChatRendering,
    Message,
    Renderer,
    ResponsesRendering,
)
from ctxgc.testing.agent.stories import Script
from ctxgc.testing.agent.tools import AgentStep, instructions

_MODULES = 10
_CHARS_PER_TOKEN = 4
_RENDERERS: dict[str, type[Renderer]] = {
    "openai": ChatRendering,
    "anthropic": AnthropicRendering,
    "responses": ResponsesRendering,
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that was said at message `born` and is needed again at the messages `needed`."""

    text: str
    born: int
    needed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AgentSession:
    """One invented session: its history, and what a request needs besides it.

    In the `openai` format the system text is the first message, in the others it is separate.
    `facts` lists texts that are needed again long after they were said.
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

    def add(self, step: AgentStep, rendered: list[Message]) -> None:
        start = len(self.messages)
        for fact in step.plants:
            places = (start + n for n, message in enumerate(rendered) if fact in str(message))
            self._born.setdefault(fact, next(places, start))
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
    format: str = "openai",  # noqa: A002  the word that all of ctxgc uses
    *,
    tokens: int | None = None,
    thinking: bool = False,
    parallel: bool = True,
    reuse_ids: bool = False,
) -> AgentSession:
    """Return the session of this seed, cut to `messages` messages or to about `tokens` tokens.

    The agent works on an invented project: it greps, reads, edits, runs tests that fail and then
    pass, keeps a todo list, reads long logs, commits, and is asked about tickets and decisions of
    long ago. The history is valid in its format at any length. `parallel=False` makes one call at a
    time. Thinking is signed with a plain digest that no server has issued.
    """
    make = _RENDERERS.get(format)
    if make is None or messages < 1 or (tokens is not None and tokens < 1):
        raise _bad_arguments(format, make is None)
    renderer = make(thinking=thinking, reuse_ids=reuse_ids)
    project, chance = seeded_project(seed)
    steps = Script(project, chance).steps()
    if not parallel:
        steps = (single for step in steps for single in step.one_by_one())
    system = instructions(project)
    ledger = _Ledger()
    if format == "openai":
        ledger.messages.append({"role": "system", "content": system})
    if tokens is None:
        _fill(ledger, renderer, steps, messages)
    else:
        _grow(ledger, renderer, steps, tokens * _CHARS_PER_TOKEN)
    return AgentSession(seed, format, ledger.messages, system, renderer.tools(), ledger.facts())


def _fill(ledger: _Ledger, renderer: Renderer, steps: Iterator[AgentStep], messages: int) -> None:
    """Add steps while they fit, then say a few words until the number is met."""
    for step in steps:
        rendered = renderer.messages(step)
        if len(ledger.messages) + len(rendered) > messages:
            break
        ledger.add(step, rendered)
    while len(ledger.messages) < messages:
        last = ledger.messages[-1].get("role") if ledger.messages else "assistant"
        said = AgentStep("user", "Please go on.") if last in ("assistant", "system") else _GO_ON
        ledger.add(said, renderer.messages(said))


_GO_ON = AgentStep("assistant", "I will go on with the next step.")


def _grow(ledger: _Ledger, renderer: Renderer, steps: Iterator[AgentStep], chars: int) -> None:
    for step in steps:
        if ledger.chars >= chars:
            return
        ledger.add(step, renderer.messages(step))


def seeded_project(seed: int) -> tuple[Project, Chance]:
    """Return the project of a seed, and the chance that decides what happens to it."""
    chance = Chance(f"session {seed}")
    return Project(chance, _MODULES), chance


def _bad_arguments(form: str, unknown: bool) -> InputError:
    if unknown:
        hint = f"use one of {', '.join(_RENDERERS)}"
        return InputError(f"format: unknown format {form!r}", hint=hint, field="format")
    hint = "ask for at least one message or token"
    return InputError("messages: a session cannot be empty", hint=hint, field="messages")
