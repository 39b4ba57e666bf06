"""The work of the invented agent: tasks that read, search, edit, test, and come back to old facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from ctxgc.testing.agent import words
from ctxgc.testing.agent.project import Function, Module, Project
from ctxgc.testing.agent.steps import Call, Step
from ctxgc.testing.agent.tools import Toolbox, todo_text

REMEMBERED = 400
LOG_LINES = (60, 320)


class Script:
    """An endless session on one project; the same seed always tells the same story."""

    def __init__(self, seed: int, *, parallel: bool = True) -> None:
        self._random = Random(f"ctxgc-agent-{seed}")  # noqa: S311  a story, not a secret
        self.project = Project(self._random)
        self._tools = Toolbox(self.project, self._random)
        self._parallel = parallel
        self._known: list[tuple[str, str]] = []
        self._decided: list[tuple[str, int]] = []

    def steps(self) -> Iterator[Step]:
        """Yield the steps of task after task, without an end."""
        tasks: tuple[Callable[[], Iterator[Step]], ...] = (
            self._fix_a_test,
            self._fix_a_test,
            self._change_a_value,
            self._look_into_an_incident,
            self._answer_from_memory,
        )
        while True:
            yield from self._random.choice(tasks)()

    def _fix_a_test(self) -> Iterator[Step]:
        module = self.project.pick()
        function = self.project.break_one(module)
        ticket = words.code(self._random, "TCK")
        place = self._random.choice(words.PLACES)
        yield Step(
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

    def _repair(self, module: Module, function: Function) -> Iterator[Step]:
        """Edit a broken function until its tests pass; the first try may miss."""
        if self._random.random() < 0.25:
            arguments = {"path": module.path, "old": f"{function.constant}=", "new": ""}
            error = f"error: `{function.constant}=` was not found in {module.path}"
            yield from self._calls("", Call("edit_file", arguments, error, failed=True))
        if self._random.random() < 0.35:
            yield from self._calls("", self._edit(module, function, function.wanted + 5))
            yield from self._calls("", self._test(module))
        yield from self._calls(
            f"The constant `{function.constant}` must be {function.wanted}.",
            self._edit(module, function, function.wanted),
        )
        yield from self._calls("", self._read(module), self._test(module))

    def _change_a_value(self) -> Iterator[Step]:
        module = self.project.pick()
        function = self._random.choice(module.functions)
        decision = words.code(self._random, "DEC")
        older, words_for_value = self._new_value(function)
        yield Step(
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

    def _look_into_an_incident(self) -> Iterator[Step]:
        incident, request = words.code(self._random, "INC"), words.code(self._random, "REQ")
        command = f"tail -n 400 logs/{incident}.log"
        log = self._tools.log(request, self._random.randint(*LOG_LINES))
        yield Step(
            "user",
            f"{incident} hit {self._random.choice(words.PLACES)}. Read its log and tell me which "
            "request failed. Do not change anything yet.",
            plants=(incident,),
        )
        yield Step("assistant", calls=(Call("bash", {"command": command}, log),), plants=(request,))
        module = self.project.pick()
        yield from self._calls("", self._grep("log.debug"), self._read(module))
        self._remember(incident, f"the request of {incident} was {request}")
        yield self._say(
            f"In {incident} the request {request} failed because the upstream closed the "
            f"connection; {module.path} is the place to retry it."
        )

    def _answer_from_memory(self) -> Iterator[Step]:
        if not self._known:
            yield from self._fix_a_test()
            return
        key, fact = self._random.choice(self._known)
        yield Step("user", f"Remind me what we know about {key}.", needs=(key,))
        yield self._say(f"As we saw before: {fact}.", needs=(key,))

    def _calls(self, text: str, *calls: Call, needs: tuple[str, ...] = ()) -> Iterator[Step]:
        """Yield one step with all calls at once, or one for each where none run together."""
        for chosen in [calls] if self._parallel else [(call,) for call in calls]:
            thinking = f"Next: {', '.join(call.name for call in chosen)}. {text}".strip()
            yield Step("assistant", text, tuple(chosen), thinking, needs=needs)

    def _say(self, text: str, needs: tuple[str, ...] = ()) -> Step:
        return Step("assistant", text, needs=needs)

    def _todos(self, text: str, items: list[str], done: int) -> Step:
        call = Call("write_todos", {"todos": items}, todo_text(items, done))
        return Step("assistant", text, (call,))

    def _read(self, module: Module) -> Call:
        return Call("read_file", {"path": module.path}, self._tools.read_file(module))

    def _grep(self, pattern: str) -> Call:
        return Call("grep", {"pattern": pattern}, self._tools.grep(pattern))

    def _test(self, module: Module | None) -> Call:
        target = "tests" if module is None else module.test_path
        output = self._tools.run_tests(module)
        return Call("run_tests", {"target": target}, output, failed=" failed, " in output)

    def _edit(self, module: Module, function: Function, value: int) -> Call:
        old, new, said = self._tools.edit_file(module, function, value)
        return Call("edit_file", {"path": module.path, "old": old, "new": new}, said)

    def _note(self, module: Module, entry: str) -> Call:
        old, new, said = self._tools.annotate(module, entry)
        return Call("edit_file", {"path": module.path, "old": old, "new": new}, said)

    def _remember(self, key: str, fact: str) -> None:
        self._known.append((key, fact))
        if len(self._known) > REMEMBERED:
            del self._known[self._random.randrange(REMEMBERED)]
