"""A small invented project whose files really change when they are edited.

Every module has functions with a constant each; a function can be broken (its constant is wrong),
and then the tests that use it fail until somebody edits the constant back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ctxgc.testing.agent import words

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
        self.name = f"{random.choice(words.NOUNS)}-{random.choice(words.AREAS)}"
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
        area, noun = random.choice(words.AREAS), random.choice(words.NOUNS)
        functions = []
        for _ in range(random.randint(*FUNCTIONS_PER_MODULE)):
            name = words.identifier(random)
            if name not in taken:
                taken.add(name)
                functions.append(self._function(name, taken))
        path = f"src/{area}/{noun}.py"
        return Module(path, functions or [self._function(f"load_{area}_{noun}", taken)])

    def _function(self, name: str, taken: set[str]) -> Function:
        random = self.random
        constant = words.constant(random)
        while constant in taken:
            constant = words.constant(random)
        taken.add(constant)
        value = random.randrange(2, 900)
        note = f"{name.replace('_', ' ').capitalize()} for {random.choice(words.PLACES)}."
        return Function(name, constant, value, value, random.choice(words.PARTS), note)
