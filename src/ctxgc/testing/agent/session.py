"""Whole sessions of the invented agent, of any length, in the words of any provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ctxgc.errors import InputError
from ctxgc.testing.agent import project as words
from ctxgc.testing.agent.project import (
    AgentCall,
    AgentStep,
    AgentTools,
    Fact,
    Function,
    Module,
    Project,
    todo_text,
)
from ctxgc.testing.agent.render import Anthropic, ChatRendering, Message, Renderer, Responses

# -- The work of the invented agent: tasks that read, search, edit, test, and come back to old fac


REMEMBERED = 400
LOG_LINES = (60, 320)


class Script:
    """An endless session on one project; the same seed always tells the same story."""

    def __init__(self, seed: int, *, parallel: bool = True) -> None:
        self._random = Random(f"ctxgc-agent-{seed}")  # noqa: S311  a story, not a secret
        self.project = Project(self._random)
        self._tools = AgentTools(self.project, self._random)
        self._parallel = parallel
        self._known: list[tuple[str, str]] = []
        self._decided: list[tuple[str, int]] = []

    def steps(self) -> Iterator[AgentStep]:
        """Yield the steps of task after task, without an end."""
        tasks: tuple[Callable[[], Iterator[AgentStep]], ...] = (
            self._fix_a_test,
            self._fix_a_test,
            self._change_a_value,
            self._look_into_an_incident,
            self._answer_from_memory,
        )
        while True:
            yield from self._random.choice(tasks)()

    def _fix_a_test(self) -> Iterator[AgentStep]:
        module = self.project.pick()
        function = self.project.break_one(module)
        ticket = words.code(self._random, "TCK")
        place = self._random.choice(words.PLACES)
        yield AgentStep(
            "user",
            f"{ticket}: the tests of {module.path} fail in {place}. Find out why and fix it, but "
            f"do not change the signature of `{function.name}`.",
            plants=(ticket,),
        )
        todos = [f"reproduce {ticket}", f"fix {function.name}", "run all tests"]
        yield self._todos(f"I will reproduce {ticket} first.", todos, 0)
        yield from self._calls("", self._test(module))
        yield from self._calls(
            f"`{function.name}` is wrong. Let me see it and who uses it.",
            self._grep(function.name),
            self._read(module),
            self._read(self.project.pick()),
        )
        yield from self._repair(module, function)
        yield self._todos("", todos, 2)
        yield from self._calls("Now all tests.", self._test(None))
        self._remember(ticket, f"{ticket} was {function.constant} in {module.path}")
        yield self._say(
            f"Fixed {ticket}: `{function.constant}` in {module.path} is {function.wanted} again; "
            f"`{function.name}` passes its tests."
        )

    def _repair(self, module: Module, function: Function) -> Iterator[AgentStep]:
        """Edit a broken function until its tests pass; the first try may miss."""
        if self._random.random() < 0.25:
            arguments = {"path": module.path, "old": f"{function.constant}=", "new": ""}
            error = f"error: `{function.constant}=` was not found in {module.path}"
            yield from self._calls("", AgentCall("edit_file", arguments, error, failed=True))
        if self._random.random() < 0.35:
            yield from self._calls("", self._edit(module, function, function.wanted + 5))
            yield from self._calls("", self._test(module))
        yield from self._calls(
            f"The constant `{function.constant}` must be {function.wanted}.",
            self._edit(module, function, function.wanted),
        )
        yield from self._calls("", self._read(module), self._test(module))

    def _change_a_value(self) -> Iterator[AgentStep]:
        module = self.project.pick()
        function = self._random.choice(module.functions)
        decision = words.code(self._random, "DEC")
        older, words_for_value = self._new_value(function)
        yield AgentStep(
            "user",
            f"Decision {decision}: `{function.constant}` becomes {words_for_value}. Write the "
            f"decision into the head of {module.path} too.",
            plants=(decision,),
            needs=older,
        )
        yield from self._calls("", self._read(module))
        yield from self._calls("", self._edit(module, function, function.wanted), needs=older)
        entry = f"{decision}: {function.constant} is {function.wanted}"
        yield from self._calls("", self._note(module, entry))
        yield from self._calls("", self._read(module), self._test(module))
        self._remember(decision, f"{decision} set {function.constant} to {function.wanted}")
        self._decided.append((decision, function.wanted))
        yield self._say(f"Done: {decision} stands in {module.path}, and its tests pass.")

    def _new_value(self, function: Function) -> tuple[tuple[str, ...], str]:
        """Choose what a constant ought to be: a number, or what an older decision says."""
        if self._decided and self._random.random() < 0.4:
            older, function.wanted = self._random.choice(self._decided)
            return (older,), f"the value that we chose in {older}"
        function.wanted = self._random.randrange(2, 900)
        return (), str(function.wanted)

    def _look_into_an_incident(self) -> Iterator[AgentStep]:
        incident, request = words.code(self._random, "INC"), words.code(self._random, "REQ")
        command = f"tail -n 400 logs/{incident}.log"
        log = self._tools.log(request, self._random.randint(*LOG_LINES))
        yield AgentStep(
            "user",
            f"{incident} hit {self._random.choice(words.PLACES)}. Read its log and tell me which "
            "request failed. Do not change anything yet.",
            plants=(incident,),
        )
        yield AgentStep(
            "assistant", calls=(AgentCall("bash", {"command": command}, log),), plants=(request,)
        )
        module = self.project.pick()
        yield from self._calls("", self._grep("log.debug"), self._read(module))
        self._remember(incident, f"the request of {incident} was {request}")
        yield self._say(
            f"In {incident} the request {request} failed because the upstream closed the "
            f"connection; {module.path} is the place to retry it."
        )

    def _answer_from_memory(self) -> Iterator[AgentStep]:
        if not self._known:
            yield from self._fix_a_test()
            return
        key, fact = self._random.choice(self._known)
        yield AgentStep("user", f"Remind me what we know about {key}.", needs=(key,))
        yield self._say(f"As we saw before: {fact}.", needs=(key,))

    def _calls(
        self, text: str, *calls: AgentCall, needs: tuple[str, ...] = ()
    ) -> Iterator[AgentStep]:
        """Yield one step with all calls at once, or one for each where none run together."""
        for chosen in [calls] if self._parallel else [(call,) for call in calls]:
            thinking = f"Next: {', '.join(call.name for call in chosen)}. {text}".strip()
            yield AgentStep("assistant", text, tuple(chosen), thinking, needs=needs)

    def _say(self, text: str, needs: tuple[str, ...] = ()) -> AgentStep:
        return AgentStep("assistant", text, needs=needs)

    def _todos(self, text: str, items: list[str], done: int) -> AgentStep:
        call = AgentCall("write_todos", {"todos": items}, todo_text(items, done))
        return AgentStep("assistant", text, (call,))

    def _read(self, module: Module) -> AgentCall:
        return AgentCall("read_file", {"path": module.path}, self._tools.read_file(module))

    def _grep(self, pattern: str) -> AgentCall:
        return AgentCall("grep", {"pattern": pattern}, self._tools.grep(pattern))

    def _test(self, module: Module | None) -> AgentCall:
        target = "tests" if module is None else module.test_path
        output = self._tools.run_tests(module)
        return AgentCall("run_tests", {"target": target}, output, failed=" failed, " in output)

    def _edit(self, module: Module, function: Function, value: int) -> AgentCall:
        old, new, said = self._tools.edit_file(module, function, value)
        return AgentCall("edit_file", {"path": module.path, "old": old, "new": new}, said)

    def _note(self, module: Module, entry: str) -> AgentCall:
        old, new, said = self._tools.annotate(module, entry)
        return AgentCall("edit_file", {"path": module.path, "old": old, "new": new}, said)

    def _remember(self, key: str, fact: str) -> None:
        self._known.append((key, fact))
        if len(self._known) > REMEMBERED:
            del self._known[self._random.randrange(REMEMBERED)]


CHARS_PER_TOKEN = 4
_RENDERERS: dict[str, Callable[..., Renderer]] = {
    "openai": ChatRendering,
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

    def add(self, step: AgentStep, rendered: list[Message]) -> None:
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
