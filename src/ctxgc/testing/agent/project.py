"""A small invented project whose files really change when they are edited.

Every module has functions with a constant each; a function can be broken (its constant is wrong),
and then the tests that use it fail until somebody edits the constant back.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

# -- The words that invented projects are made of


AREAS = (
    "billing", "catalog", "shipping", "ledger", "search", "auth", "notify", "export", "metrics",
    "scheduler", "inventory", "pricing", "refunds", "webhooks", "sessions", "reports",
)  # fmt: skip
VERBS = (
    "resolve", "collect", "merge", "expire", "rotate", "allocate", "reconcile", "dispatch",
    "normalize", "prune", "replay", "settle", "throttle", "verify", "encode", "hydrate",
)  # fmt: skip
NOUNS = (
    "invoice", "voucher", "parcel", "cursor", "bucket", "tenant", "quota", "digest", "window",
    "segment", "batch", "ticket", "route", "token", "snapshot", "tariff", "manifest", "backlog",
)  # fmt: skip
PARTS = (
    "limit", "offset", "weight", "margin", "retries", "delay", "floor", "ceiling", "factor", "span",
)  # fmt: skip
PLACES = ("staging", "production", "the nightly job", "the canary", "the EU region", "CI")


def identifier(random: Random) -> str:
    """Return a function name such as `reconcile_voucher_window`."""
    return f"{random.choice(VERBS)}_{random.choice(NOUNS)}_{random.choice(NOUNS)}"


def constant(random: Random) -> str:
    """Return a constant name such as `PARCEL_QUOTA_MARGIN`."""
    return f"{random.choice(NOUNS)}_{random.choice(NOUNS)}_{random.choice(PARTS)}".upper()


def code(random: Random, start: str) -> str:
    """Return a code that stands nowhere else, such as `INC-7F3A9`."""
    return f"{start}-{random.randrange(16**5):05X}"


FUNCTIONS_PER_MODULE = (3, 7)
MAX_NOTES = 8


@dataclass(slots=True)
class Function:
    """One function: its name, the constant it uses, what that is and what it ought to be."""

    name: str
    constant: str
    value: int
    wanted: int
    argument: str
    note: str

    @property
    def broken(self) -> bool:
        """Whether its tests fail."""
        return self.value != self.wanted

    def constant_line(self, value: int | None = None) -> str:
        """Return the line that sets the constant, as it stands or with another value."""
        return f"{self.constant} = {self.value if value is None else value}"

    def lines(self) -> list[str]:
        """Return the source of the function."""
        return [
            self.constant_line(),
            "",
            "",
            f"def {self.name}({self.argument}: int, *, strict: bool = False) -> int:",
            f'    """{self.note}"""',
            f"    if strict and {self.argument} < 0:",
            f'        raise ValueError(f"{self.argument} must not be negative: {{{self.argument}}}")',
            f"    scaled = {self.argument} * {self.constant}",
            f'    log.debug("{self.name}: %s -> %s", {self.argument}, scaled)',
            "    return scaled",
            "",
            "",
        ]


@dataclass(slots=True)
class Module:
    """One source file; its text is made once for each version."""

    path: str
    functions: list[Function]
    history: list[str] = field(default_factory=list)
    _text: str | None = None
    _notes: int = 0

    @property
    def text(self) -> str:
        """The source as it stands now."""
        if self._text is None:
            body = [line for function in self.functions for line in function.lines()]
            self._text = "\n".join([*_HEAD, *(f"# {entry}" for entry in self.history), *body])
        return self._text

    @property
    def test_path(self) -> str:
        """Where the tests of this module stand."""
        area, name = self.path.removeprefix("src/").removesuffix(".py").rsplit("/", 1)
        return f"tests/{area}/test_{name}.py"

    def set_value(self, function: Function, value: int) -> None:
        """Change a constant; the text follows."""
        function.value = value
        self._text = None

    def add_note(self, entry: str) -> tuple[str, str]:
        """Write a note into the head of the file; return the text it replaces and the new text.

        A long head takes no more notes: the oldest makes room.
        """
        self._text = None
        place = self._notes % MAX_NOTES
        self._notes += 1
        if len(self.history) == MAX_NOTES:
            old, self.history[place] = self.history[place], entry
            return f"# {old}", f"# {entry}"
        old = f"# {self.history[-1]}" if self.history else f"{_LOGGER}\n"
        self.history.append(entry)
        return old, f"{old}\n# {entry}"


_LOGGER = "log = logging.getLogger(__name__)"
_HEAD = (
    "from __future__ import annotations",
    "",
    "import logging",
    "",
    _LOGGER,
    "",
)


class Project:
    """All modules of one invented project; the same seed gives the same project."""

    def __init__(self, random: Random, modules: int = 14) -> None:
        self.random = random
        self.name = f"{random.choice(NOUNS)}-{random.choice(AREAS)}"
        self.modules: list[Module] = []
        taken: set[str] = set()
        while len(self.modules) < modules:
            module = self._module(taken)
            if module.path not in taken:
                taken.add(module.path)
                self.modules.append(module)

    def pick(self) -> Module:
        """Return some module; the first ones come up more often, as in real work."""
        place = int(len(self.modules) * self.random.random() ** 1.7)
        return self.modules[place]

    def break_one(self, module: Module) -> Function:
        """Make one constant of a module wrong and return its function."""
        function = self.random.choice(module.functions)
        module.set_value(function, function.wanted + self.random.choice((-3, -1, 1, 2, 10)))
        return function

    def broken(self) -> list[tuple[Module, Function]]:
        """Return every function whose tests fail now."""
        return [(m, f) for m in self.modules for f in m.functions if f.broken]

    def _module(self, taken: set[str]) -> Module:
        random = self.random
        area, noun = random.choice(AREAS), random.choice(NOUNS)
        functions = []
        for _ in range(random.randint(*FUNCTIONS_PER_MODULE)):
            name = identifier(random)
            if name not in taken:
                taken.add(name)
                functions.append(self._function(name, taken))
        path = f"src/{area}/{noun}.py"
        return Module(path, functions or [self._function(f"load_{area}_{noun}", taken)])

    def _function(self, name: str, taken: set[str]) -> Function:
        random = self.random
        name_of_value = constant(random)
        while name_of_value in taken:
            name_of_value = constant(random)
        taken.add(name_of_value)
        value = random.randrange(2, 900)
        note = f"{name.replace('_', ' ').capitalize()} for {random.choice(PLACES)}."
        return Function(name, name_of_value, value, value, random.choice(PARTS), note)


# -- What happens in a session, before any provider's words: users speak, the agent speaks and cal


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One tool call with what the tool returned."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One message of the user, or one of the agent with the results of its calls.

    `plants` are facts that appear here for the first time, `needs` facts from earlier that the
    step cannot do without.
    """

    role: str
    text: str = ""
    calls: tuple[AgentCall, ...] = ()
    thinking: str = ""
    plants: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many characters the step adds to a history."""
        outputs = sum(len(call.output) + 60 for call in self.calls)
        return len(self.text) + len(self.thinking) + outputs


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that was said at message `born` and is needed again at the messages `needed`."""

    text: str
    born: int
    needed: tuple[int, ...]


# -- The tools of the invented agent: what each prints for the project as it stands now


MAX_HITS = 40


def _schema(name: str, about: str, **fields: str) -> dict[str, Any]:
    properties = {field: {"type": kind} for field, kind in fields.items()}
    parameters = {"type": "object", "properties": properties, "required": list(fields)}
    return {"name": name, "description": about, "parameters": parameters}


SCHEMAS = (
    _schema("read_file", "Return a file with line numbers.", path="string"),
    _schema("grep", "Search all files for a text.", pattern="string"),
    _schema("edit_file", "Replace a text in a file.", path="string", old="string", new="string"),
    _schema("run_tests", "Run the tests of one file, or of the project.", target="string"),
    _schema("bash", "Run a shell command.", command="string"),
    _schema("write_todos", "Replace the list of open work.", todos="array"),
)


class AgentTools:
    """Runs the tools of one agent on one project."""

    def __init__(self, project: Project, random: Random) -> None:
        self._project = project
        self._random = random
        self._numbered: dict[str, tuple[str, str]] = {}
        self._runs = 0

    def read_file(self, module: Module) -> str:
        """Return a file with a number before each line."""
        known = self._numbered.get(module.path)
        if known is None or known[0] is not module.text:
            lines = enumerate(module.text.split("\n"), 1)
            known = (module.text, "\n".join(f"{n:6d}\t{line}" for n, line in lines))
            self._numbered[module.path] = known
        return known[1]

    def grep(self, pattern: str) -> str:
        """Return the lines of all files that hold a text, with their places."""
        files = (module for module in self._project.modules if pattern in module.text)
        hits = (
            f"{module.path}:{number}:{line.strip()}"
            for module in files
            for number, line in enumerate(module.text.split("\n"), 1)
            if pattern in line
        )
        return "\n".join(itertools.islice(hits, MAX_HITS)) or "no matches"

    def edit_file(self, module: Module, function: Function, value: int) -> tuple[str, str, str]:
        """Set a constant; return the old line, the new line and what the tool says."""
        old, new = function.constant_line(), function.constant_line(value)
        module.set_value(function, value)
        return old, new, _edited(module, new)

    def annotate(self, module: Module, entry: str) -> tuple[str, str, str]:
        """Write a note into the head of a file; return the same as `edit_file`."""
        old, new = module.add_note(entry)
        return old, new, _edited(module, new)

    def run_tests(self, module: Module | None = None) -> str:
        """Return what the test runner prints: a traceback for each broken function."""
        modules = self._project.modules if module is None else [module]
        total = sum(len(m.functions) * 3 for m in modules)
        broken = [(m, f) for m in modules for f in m.functions if f.broken]
        self._runs += 1
        seconds = f"{self._runs % 7}.{self._random.randrange(100):02d}s"
        head = [f"collected {total} items", ""]
        head += [f"{m.test_path} {_dots(m.functions)}" for m in modules]
        if not broken:
            return "\n".join([*head, "", f"===== {total} passed in {seconds} ====="])
        traces = [line for m, f in broken for line in _traceback(m, f)]
        summary = [f"FAILED {m.test_path}::test_{f.name}" for m, f in broken]
        tail = f"===== {len(broken)} failed, {total - len(broken)} passed in {seconds} ====="
        return "\n".join([*head, "", "===== FAILURES =====", *traces, *summary, tail])

    def log(self, code: str, lines: int) -> str:
        """Return a long service log with one line in it that matters."""
        important = self._random.randrange(lines)
        start = self._random.randrange(10_000, 90_000)
        return "\n".join(
            _important(start, code) if n == important else _routine(start, n) for n in range(lines)
        )


def todo_text(items: Sequence[str], done: int) -> str:
    """Return a todo list as the tool shows it."""
    return "\n".join(f"[{'x' if n < done else ' '}] {item}" for n, item in enumerate(items))


def _edited(module: Module, new: str) -> str:
    line = module.text.count("\n", 0, module.text.index(new)) + 1
    return f"Edited {module.path}: 1 replacement at line {line}."


def _dots(functions: Sequence[Function]) -> str:
    return "".join("F.." if function.broken else "..." for function in functions)


def _traceback(module: Module, function: Function) -> list[str]:
    return [
        f"_____ test_{function.name} _____",
        "",
        f"    def test_{function.name}() -> None:",
        f">       assert {function.name}(3) == {3 * function.wanted}",
        f"E       assert {3 * function.value} == {3 * function.wanted}",
        f"E        +  where {3 * function.value} = {function.name}(3)",
        "",
        f"{module.test_path}: AssertionError",
    ]


def _important(start: int, code: str) -> str:
    return f"{start} ERROR worker-3 request {code} failed: upstream closed the connection"


def _routine(start: int, n: int) -> str:
    job = (start * 31 + n * 17) % 99_991
    return f"{start + n} INFO worker-{n % 8} handled job {job} in {n % 40 + 3} ms"
