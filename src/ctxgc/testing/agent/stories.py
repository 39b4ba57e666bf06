"""What the scripted agent is asked to do and how it goes about it: one generator per kind of task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ctxgc.testing.agent.project import PEOPLE, Chance, Project, make_function
from ctxgc.testing.agent.tools import Agent, AgentStep, say, service_log, user

_MAX_FUNCTIONS = 14


class Script:
    """An endless session on one project; the same project and chance give the same session."""

    def __init__(self, project: Project, chance: Chance) -> None:
        self._agent = Agent(chance, project)

    def story(self) -> Iterator[AgentStep]:
        """Yield the steps of the next task; now and then there is nothing to do, and none."""
        return self._agent.chance.choice(_STORIES)(self._agent)

    def steps(self) -> Iterator[AgentStep]:
        """Yield the steps of task after task, without an end."""
        while True:
            yield from self.story()


def _repair(agent: Agent) -> Iterator[AgentStep]:
    """A test fails; the agent reads, finds the fault, fixes it and runs the tests."""
    chance, project = agent.chance, agent.project
    module = chance.choice(project.modules)
    faults = chance.some(module.functions, chance.randrange(1, 4))
    for function in faults:
        project.break_function(module, function)
    ticket, path, tests = chance.ticket(), project.short(module.path), project.short(module.tests)
    yield user(
        f"{ticket}: since this morning {len(faults)} tests in {tests} fail. "
        f"Please find out why and fix it; {chance.choice(PEOPLE)} waits for it.",
        ticket,
    )
    plan = [f"Reproduce {ticket}", f"Find the fault in {path}", "Fix and test", "Commit"]
    yield agent.todo(plan, 0)
    yield agent.test("I'll run the failing tests first.", module)
    if module.path not in agent.read_files or chance.happens(0.5):
        yield agent.read(f"Now the code and its tests for {ticket}.", module.path, module.tests)
    if chance.happens(0.5):
        yield agent.grep(f"Who else uses `{faults[0].name}`?", faults[0].name)
    yield agent.todo(plan, 2)
    for number, function in enumerate(faults):
        said = f"`{function.name}` is wrong: the test expects {function.expected} and gets {function.got}."
        yield agent.fix(said, module, function)
        if number + 1 < len(faults) and chance.happens(0.5):
            yield agent.test("", module)
    yield agent.test(f"Let me run {tests} again.", module)
    if chance.happens(0.6):
        yield agent.test("And everything, to be sure.", verbose=chance.happens(0.6))
    yield agent.todo(plan, 3)
    yield agent.commit(f"{ticket}: fix {faults[0].name}")
    names = [f"`{function.name}` ({path})" for function in faults]
    yield say(f"{ticket} is fixed in {project.head}:\n\n{_bullets(names)}\n\nAll tests pass.")


def _incident(agent: Agent) -> Iterator[AgentStep]:
    """A request failed at night; the agent searches a long log and fixes the fault that it names."""
    chance, project = agent.chance, agent.project
    module, function = chance.choice(project.functions())
    project.break_function(module, function)
    request, lines = chance.hexes(10), chance.randrange(80, 420)
    fault = f"{function.name}: {function.got} (wanted {function.expected}) in {project.short(module.path)}"
    log = service_log(chance, project, fault, request, lines)
    path = f"/var/log/{project.package}/worker.log"
    yield user(f"Something went wrong last night around request {request}. See {path}.", request)
    yield agent.bash("I'll look at the log.", f"tail -n {lines} {path}", log, "Show the log")
    hits = "\n".join(line for line in log.splitlines() if request in line)
    yield agent.bash(
        f"Only the lines of {request}.", f"grep {request} {path}", hits, "Search the log"
    )
    yield agent.read_part(f"It fails in `{function.name}`.", module.path, function.faulty_text, 40)
    yield agent.fix(
        f"Request {request} got {function.got}; this line is the reason.", module, function
    )
    yield agent.test("", module)
    yield agent.commit(f"Fix {function.name} (request {request})")
    yield say(
        f"Request {request} failed because `{function.name}` gave {function.got} in place of "
        f"{function.expected}. Fixed in {project.head}; {project.short(module.tests)} passes."
    )


def _limit(agent: Agent) -> Iterator[AgentStep]:
    """A constant must change; the agent decides on a value and says why."""
    chance, project = agent.chance, agent.project
    module = chance.choice(project.modules)
    lines = project.files[module.path].splitlines()
    old = next(line for line in lines if line.startswith(f"{module.constant} ="))
    value = chance.randrange(1000, 9999)
    ticket = chance.ticket()
    yield user(f"{ticket}: raise {module.constant}. {value - 137} is what we see at most.", ticket)
    yield agent.grep("", module.constant)
    if module.path not in agent.read_files:
        yield agent.read_part("", module.path, old, 24)
    new = f"{module.constant} = {value}"
    yield agent.edit(f"I'll take {value}, a little more than asked.", module.path, old, new)
    readme = f"{project.root}/README.md"
    if readme not in agent.read_files:
        yield agent.read("The README names it too.", readme)
    yield agent.test("", module)
    yield agent.commit(f"{ticket}: {module.constant} is {value}")
    agent.memories.append((ticket, f"{new}, decided in {ticket}"))
    yield say(f"Decision for {ticket}: {module.constant} is now {value} ({project.head}).")


def _feature(agent: Agent) -> Iterator[AgentStep]:
    """A new function is wanted, with a test; the first version has a fault."""
    chance, project = agent.chance, agent.project
    module = chance.choice(project.modules)
    function = make_function(chance, chance.symbol(), module.constant)
    taken = any(function.name in text for text in project.files.values())
    if taken or len(module.functions) >= _MAX_FUNCTIONS:  # files do not grow without an end
        return
    ticket, last, path = chance.ticket(), module.functions[-1], project.short(module.path)
    yield user(
        f"{ticket}: add `{function.name}` to {path}, like `{last.name}`, with a test.", ticket
    )
    items = [f"Read {path}", f"Write {function.name}", "Write its test", "Run all tests"]
    yield agent.todo(items, 0)
    if module.path not in agent.read_files or chance.happens(0.4):
        yield agent.read(f"First how `{last.name}` does it.", module.path)
    yield agent.read_part("", module.tests, f"test_{last.name}", 14)
    module.functions.append(function)
    added = function.faulty_text
    yield agent.append(f"Now `{function.name}`.", module.path, last.text, added)
    yield agent.append("", module.tests, last.test_text, function.test_text)
    yield agent.todo(items, 3)
    yield agent.test("", module)
    said = f"My own mistake: expected {function.expected}, got {function.got}."
    yield agent.fix(said, module, function)
    yield agent.test(f"Again, all of {ticket}.", verbose=chance.happens(0.5))
    yield agent.commit(f"{ticket}: add {function.name}")
    yield say(f"`{function.name}` is in {path}, tested, in {project.head}.")


def _question(agent: Agent) -> Iterator[AgentStep]:
    """The user asks what was done long ago; the agent answers from the conversation."""
    chance = agent.chance
    if len(agent.memories) < 2:
        return
    yield user(chance.choice(_QUESTIONS))
    if chance.happens(0.5):
        commits = "\n".join(f"{sha} {title}" for sha, title in agent.project.commits[:12])
        yield agent.bash("", "git log --oneline -12", commits, "Show the commits")
    told = dict(chance.some(agent.memories, chance.randrange(2, 6)))
    yield say(f"So far:\n\n{_bullets(told.values())}\n\nNothing else is open.", *told)


def _tour(agent: Agent) -> Iterator[AgentStep]:
    """The user wants an overview; the agent reads several files that it may never need again."""
    chance, project = agent.chance, agent.project
    modules = chance.some(project.modules, chance.randrange(2, 4))
    yield user("Before we go on: which of our modules retry, and which ones raise on bad input?")
    listing = "\n".join(sorted(project.files))
    yield agent.bash("", f"find {project.root} -type f", listing, "List the files")
    yield agent.read("I'll read the likely ones.", *(module.path for module in modules))
    yield agent.grep("", "raise ")
    said = [
        f"{project.short(m.path)}: `{chance.choice(m.functions).name}` and others raise"
        for m in modules
    ]
    yield say(f"From what I read:\n\n{_bullets(said)}")


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


_QUESTIONS = (
    "What did we decide today, and in which commits?",
    "I have to write the release notes: what changed, with the commit of each?",
    "Which tickets are done, and where?",
)

_Story = Callable[[Agent], Iterator[AgentStep]]
_STORIES: tuple[_Story, ...] = (
    _repair, _repair, _repair, _incident, _limit, _feature, _feature, _question, _tour,
)  # fmt: skip
"""What may be asked; a story that is listed several times is asked more often."""
