"""What the agent is asked to do, and how it goes about it: one function for each kind of task."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from ctxgc.lab.corpus import agent as tools
from ctxgc.lab.corpus.agent import Agent, Recorder, bullet
from ctxgc.lab.corpus.project import (
    PEOPLE,
    Chance,
    CorpusModule,
    CorpusProject,
    make_function,
    trial_text,
)

Story = Callable[[Agent], None]


def repair(agent: Agent) -> None:
    """A test fails; the agent reads, finds the fault, mends it and runs the tests."""
    chance, project = agent.chance, agent.project
    module = chance.choice(project.modules)
    faults = chance.some(module.functions, chance.randrange(1, 4))
    for function in faults:
        project.break_function(module, function)
    ticket = chance.ticket()
    agent.recorder.user(
        f"{ticket}: since this morning {len(faults)} tests in {agent.short(module.tests)} fail. "
        f"Please find out why and fix it; {chance.choice(PEOPLE)} waits for it."
    )
    plan = [
        f"Reproduce {ticket}",
        f"Find the fault in {agent.short(module.path)}",
        "Fix and test",
        "Commit",
    ]
    agent.todo(plan, 0)
    agent.test("I'll run the failing tests first.", module)
    if module.path not in agent.read_files or chance.happens(0.5):
        agent.read(f"Now the code and its tests for {ticket}.", module.path, module.tests)
    if chance.happens(0.5):
        agent.grep(f"Who else uses `{faults[0].name}`?", faults[0].name)
    agent.todo(plan, 2)
    for number, function in enumerate(faults):
        said = f"`{function.name}` is wrong: the test expects {function.expected} and gets {function.got}."
        agent.fix(said, module, function)
        if number + 1 < len(faults) and chance.happens(0.5):
            agent.test(None, module)
    agent.test(f"Let me run {agent.short(module.tests)} again.", module)
    if chance.happens(0.6):
        agent.test("And everything, to be sure.", verbose=chance.happens(0.6))
    agent.todo(plan, 3)
    sha = agent.commit(f"{ticket}: fix {faults[0].name}")
    names = [f"`{function.name}` ({agent.short(module.path)})" for function in faults]
    agent.recorder.say(f"{ticket} is fixed in {sha}:\n\n{bullet(names)}\n\nAll tests pass.")


def incident(agent: Agent) -> None:
    """A request failed at night; the agent searches a long log and mends what it names."""
    chance, project = agent.chance, agent.project
    module, function = chance.choice(project.functions())
    project.break_function(module, function)
    request, lines = chance.hexes(10), chance.randrange(80, 420)
    fault = f"{function.name}: {function.got} (wanted {function.expected}) in {agent.short(module.path)}"
    log = tools.service_log(chance, project, fault, request, lines)
    path = f"/var/log/{project.package}/worker.log"
    agent.recorder.user(f"Something went wrong last night around request {request}. See {path}.")
    agent.bash("I'll look at the log.", f"tail -n {lines} {path}", log, "Show the log")
    hits = "\n".join(line for line in log.splitlines() if request in line)
    agent.bash(f"Only the lines of {request}.", f"grep {request} {path}", hits, "Search the log")
    agent.read_part(f"It fails in `{function.name}`.", module.path, function.faulty_text, 40)
    agent.fix(f"Request {request} got {function.got}; this line is the reason.", module, function)
    agent.test(None, module)
    sha = agent.commit(f"Fix {function.name} (request {request})")
    agent.recorder.say(
        f"Request {request} failed because `{function.name}` gave {function.got} in place of "
        f"{function.expected}. Fixed in {sha}; {agent.short(module.tests)} passes."
    )


def limit(agent: Agent) -> None:
    """A constant must change; the agent decides on a value and says why."""
    chance, project = agent.chance, agent.project
    module = chance.choice(project.modules)
    old = next(
        li
        for li in project.files[module.path].splitlines()
        if li.startswith(f"{module.constant} =")
    )
    value = chance.randrange(1000, 9999)
    ticket = chance.ticket()
    agent.recorder.user(f"{ticket}: raise {module.constant}. {value - 137} is what we see at most.")
    agent.grep(None, module.constant)
    if module.path not in agent.read_files:
        agent.read_part(None, module.path, old, 24)
    agent.edit(
        f"I'll take {value}, a little more than asked.",
        module.path,
        old,
        f"{module.constant} = {value}",
    )
    readme = f"{project.root}/README.md"
    if readme not in agent.read_files:
        agent.read("The README names it too.", readme)
    agent.test(None, module)
    sha = agent.commit(f"{ticket}: {module.constant} is {value}")
    agent.memories.append(f"{module.constant} = {value}, decided in {ticket}")
    agent.recorder.say(f"Decision for {ticket}: {module.constant} is now {value} ({sha}).")


def feature(agent: Agent) -> None:
    """A new function is wanted, with a test; the first try has a fault."""
    chance, project = agent.chance, agent.project
    module = chance.choice(project.modules)
    function = make_function(chance, chance.symbol(), module.constant)
    if any(function.name in text for text in project.files.values()):
        return
    ticket, last = chance.ticket(), module.functions[-1]
    agent.recorder.user(
        f"{ticket}: add `{function.name}` to {agent.short(module.path)}, like `{last.name}`, with a test."
    )
    items = [
        f"Read {agent.short(module.path)}",
        f"Write {function.name}",
        "Write its test",
        "Run all tests",
    ]
    agent.todo(items, 0)
    if module.path not in agent.read_files or chance.happens(0.4):
        agent.read(f"First how `{last.name}` does it.", module.path)
    agent.read_part(None, module.tests, f"test_{last.name}", 14)
    module.functions.append(function)
    end = _tail(last.text)
    agent.edit(
        f"Now `{function.name}`.", module.path, end, f"{end}\n\n\n{function.faulty_text.rstrip()}"
    )
    end = _tail(trial_text(last))
    agent.edit(None, module.tests, end, f"{end}\n\n\n{trial_text(function).rstrip()}")
    agent.todo(items, 3)
    agent.test(None, module)
    agent.fix(
        f"My own mistake: expected {function.expected}, got {function.got}.", module, function
    )
    agent.test(f"Again, all of {ticket}.", verbose=chance.happens(0.5))
    sha = agent.commit(f"{ticket}: add {function.name}")
    agent.recorder.say(f"`{function.name}` is in {agent.short(module.path)}, tested, in {sha}.")


def question(agent: Agent) -> None:
    """The user asks what was done long ago; the agent answers from the conversation."""
    chance = agent.chance
    if len(agent.memories) < 2:
        return
    agent.recorder.user(chance.choice(_QUESTIONS))
    if chance.happens(0.5):
        agent.bash(None, "git log --oneline -12", tools.git_log(agent.project), "Show the commits")
    told = chance.some(agent.memories, chance.randrange(2, 6))
    agent.recorder.say(f"So far:\n\n{bullet(told)}\n\nNothing else is open.")


def tour(agent: Agent) -> None:
    """The user wants an overview; the agent reads several files that it may never need again."""
    chance, project = agent.chance, agent.project
    modules: list[CorpusModule] = chance.some(project.modules, chance.randrange(2, 4))
    agent.recorder.user(
        "Before we go on: which of our modules retry, and which ones raise on bad input?"
    )
    listing = "\n".join(sorted(project.files))
    agent.bash(None, f"find {project.root} -type f", listing, "List the files")
    agent.read("I'll read the likely ones.", *(module.path for module in modules))
    agent.grep(None, "raise ")
    said = [
        f"{agent.short(m.path)}: `{chance.choice(m.functions).name}` and others raise"
        for m in modules
    ]
    agent.recorder.say(f"From what I read:\n\n{bullet(said)}")


def _tail(text: str) -> str:
    """Return the last two lines of a function, as an edit quotes them."""
    return "\n".join(text.rstrip("\n").splitlines()[-2:])


_QUESTIONS = (
    "What did we decide today, and in which commits?",
    "I have to write the release notes: what changed, with the commit of each?",
    "Which tickets are done, and where?",
)

STORIES: tuple[Story, ...] = (
    repair,
    repair,
    repair,
    incident,
    limit,
    feature,
    feature,
    question,
    tour,
)
"""What may be asked; those that stand here twice are asked more often."""


# -- The corpus: which runs it has, and how each is made from its seed


SOURCE = "ctxgc demo corpus: synthetic, a scripted agent on a generated project"
CHARS_PER_TOKEN = 3.3


class Plan(NamedTuple):
    """A run to make: its number, the project that it works on, and about how long it is in tokens."""

    number: int
    project: int
    tokens: int


PLANS = tuple(
    Plan(number, project, tokens)
    for number, (project, tokens) in enumerate(
        [
            (1, 10_000), (1, 24_000), (2, 14_000), (3, 18_000), (3, 60_000), (4, 30_000),
            (5, 36_000), (6, 42_000), (6, 12_000), (7, 48_000), (8, 54_000), (9, 66_000),
            (10, 78_000), (11, 90_000), (12, 104_000), (12, 112_000),
        ],
        start=1,
    )
)  # fmt: skip


def record(plan: Plan) -> dict[str, Any]:
    """Return a run as a line of the corpus."""
    project = CorpusProject(Chance(f"project {plan.project}"), 4 + plan.project % 4)
    chance = Chance(f"run {plan.number}")
    project.chance = chance
    recorder = Recorder(chance, _system(project))
    agent = Agent(chance, project, recorder)
    while recorder.chars < plan.tokens * CHARS_PER_TOKEN:
        chance.choice(STORIES)(agent)
    return {
        "id": f"demo-{plan.number:02}",
        "group": f"demo-project-{plan.project:02}",
        "source": SOURCE,
        "messages": recorder.messages,
        "times": recorder.times,
    }


def corpus_text() -> bytes:
    """Return all runs as JSON lines."""
    lines = (json.dumps(record(plan), ensure_ascii=False, separators=(",", ":")) for plan in PLANS)
    return "".join(f"{line}\n" for line in lines).encode()


def packed(text: bytes) -> bytes:
    """Return the text compressed, without the time of day."""
    return gzip.compress(text, 9, mtime=0)


def _system(project: CorpusProject) -> str:
    return (
        f"You are a coding agent. You work on {project.package} in {project.root} with the tools "
        "Read, Edit, Write, Grep, Bash and TodoWrite.\n\n"
        "- Read a file before you edit it. `old_string` must match the file exactly.\n"
        "- Run the tests after each change, and commit what passes.\n"
        "- Keep a todo list for work of several steps.\n"
        f"- The code is Python 3.12, in src/{project.package}, its tests in tests/.\n"
        "- Answer briefly; name files, functions and commits."
    )
