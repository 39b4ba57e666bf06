"""A static call graph of a package, read from its source without importing it.

A function is named by its file and its own name: `session/apply.py:ViewEditor.apply`. What a function
mentions counts as called, so that callbacks and tables of handlers are followed. Code in a nested function
belongs to the outer one; a value that a module assigns is a node of its own. The receiver of a method is
found by annotations, by what methods assign, and by what functions return; a call of a method of a base or
of a protocol may reach every class that has it. This is a little more than can happen. Where the class of a
receiver cannot be told, nothing is called: `unknown` has those calls.
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Class:
    """A class: where it is, what it is made from, its methods, and the annotations of its attributes."""

    name: str
    file: str
    bases: list[str]
    methods: dict[str, Definition] = field(default_factory=dict)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    made: dict[str, tuple[Definition, ast.expr]] = field(default_factory=dict)
    """What a method assigns to an attribute, with that method."""

    @property
    def is_protocol(self) -> bool:
        """Whether any class with its methods will do."""
        return "Protocol" in self.bases


@dataclass(frozen=True)
class Node:
    """A function, a method, or a value of a module: its name, where it is, and its lines."""

    name: str
    file: str
    line: int
    lines: int
    body: ast.AST
    owner: str | None = None

    @property
    def label(self) -> str:
        """The name without the file."""
        return self.name.partition(":")[2]


@dataclass(frozen=True)
class Unknown:
    """A call of a method whose receiver has no known class."""

    caller: str
    method: str
    line: int


class _Module:
    """One file: what it defines, and where the names come from that it imports."""

    def __init__(self, path: Path, root: Path) -> None:
        self.file = path.relative_to(root).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"), self.file)
        self.imports: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(root.name):
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (str(node.module), alias.name)


class CallGraph:
    """Who calls whom in a package."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.classes: dict[str, Class] = {}
        self.nodes: dict[str, Node] = {}
        self.unknown: list[Unknown] = []
        self._modules: dict[str, _Module] = {}
        for path in sorted(root.rglob("*.py")):
            module = _Module(path, root)
            self._modules[module.file] = module
            self._define(module)
        self._heirs = self._inheritance()
        self.calls: dict[str, set[str]] = {}
        for node in list(self.nodes.values()):
            self.calls[node.name] = _Reader(self, node).called()

    # -- what there is ------------------------------------------------------------------------------

    def _define(self, module: _Module) -> None:
        for statement in module.tree.body:
            if isinstance(statement, _DEFINITIONS):
                self._add(module.file, statement.name, statement)
            elif isinstance(statement, ast.ClassDef):
                self._define_class(module.file, statement)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                for target in _targets(statement):
                    self._add(module.file, target, statement.value)

    def _define_class(self, file: str, statement: ast.ClassDef) -> None:
        made = Class(statement.name, file, [_last_name(base) for base in statement.bases])
        self.classes[made.name] = made
        self._add(file, made.name, ast.copy_location(ast.Pass(), statement))
        for inside in statement.body:
            if isinstance(inside, _DEFINITIONS):
                made.methods[inside.name] = inside
                self._add(file, f"{made.name}.{inside.name}", inside, made.name)
                for name, value in _attributes_set(inside):
                    made.made.setdefault(name, (inside, value))
            elif isinstance(inside, ast.AnnAssign) and isinstance(inside.target, ast.Name):
                made.attributes[inside.target.id] = inside.annotation

    def _add(self, file: str, name: str, body: ast.AST, owner: str | None = None) -> None:
        line = getattr(body, "lineno", 1)
        lines = getattr(body, "end_lineno", line) - line + 1
        node = Node(f"{file}:{name}", file, line, lines, body, owner)
        self.nodes[node.name] = node  # the last one: overloads come first

    def _inheritance(self) -> Mapping[str, set[str]]:
        heirs: dict[str, set[str]] = defaultdict(set)
        for one in self.classes.values():
            for base in self.bases(one.name):
                heirs[base].add(one.name)
        for protocol in (c for c in self.classes.values() if c.is_protocol and c.methods):
            wanted = {name for name in protocol.methods if not name.startswith("__")}
            heirs[protocol.name] |= {
                c.name for c in self.classes.values()
                if wanted and all(self.method(c.name, name) or self._holds(c, name) for name in wanted)
            }  # fmt: skip
        return heirs

    @staticmethod
    def _holds(one: Class, name: str) -> bool:
        return name in one.attributes or name in one.made

    def bases(self, name: str) -> Iterator[str]:
        """Yield the classes of the package that a class inherits from."""
        for base in self.classes[name].bases if name in self.classes else ():
            if base in self.classes and base != name:
                yield base
                yield from self.bases(base)

    # -- how names are found ------------------------------------------------------------------------

    def method(self, owner: str, name: str) -> str | None:
        """Return the node of a method of a class or of the classes it inherits from."""
        for each in (owner, *self.bases(owner)):
            known = self.classes.get(each)
            if known is not None and name in known.methods:
                return f"{known.file}:{each}.{name}"
        return None

    def methods(self, owner: str, name: str) -> set[str]:
        """Return all methods that a call on a class, or on one that takes its place, may reach."""
        found = {self.method(each, name) for each in (owner, *self._heirs.get(owner, ()))}
        return {each for each in found if each is not None}

    def named(self, file: str, name: str) -> str | None:
        """Return the node of a function or value that a file knows by a name."""
        if f"{file}:{name}" in self.nodes:
            return f"{file}:{name}"
        module, original = self._modules[file].imports.get(name, ("", ""))
        return self._exported(module, original) if module else None

    def module(self, file: str, name: str) -> str | None:
        """Return the file of a module that a file knows by a name."""
        package, original = self._modules[file].imports.get(name, ("", ""))
        path = "/".join([*package.split(".")[1:], original]) + ".py"
        return path if package and path in self._modules else None

    def _exported(self, module: str, name: str, depth: int = 0) -> str | None:
        path = "/".join(module.split(".")[1:])
        for file in (f"{path}.py", f"{path}/__init__.py".lstrip("/")):
            if f"{file}:{name}" in self.nodes:
                return f"{file}:{name}"
            known = self._modules.get(file)
            if known is not None and name in known.imports and depth < 4:
                return self._exported(*known.imports[name], depth + 1)
        return None

    # -- paths --------------------------------------------------------------------------------------

    def paths(
        self, starts: Iterable[str], closed: Collection[str] = frozenset()
    ) -> dict[str, list[str]]:
        """Return a shortest path to everything that is reached without passing a closed node."""
        found = {start: [start] for start in sorted(starts) if start not in closed}
        waiting = deque(found)
        while waiting:
            here = waiting.popleft()
            for there in sorted(self.calls.get(here, ())):
                if there not in found and there not in closed:
                    found[there] = [*found[here], there]
                    waiting.append(there)
        return found

    def face(self, file: str) -> Iterator[str]:
        """Yield what a face hands out: functions, and the public methods of classes."""
        known = self._modules.get(file)
        for module, name in known.imports.values() if known else ():
            node = self._exported(module, name)
            if node is not None:
                yield node
            if name in self.classes:
                yield from self.public_methods(name)

    def public_methods(self, owner: str) -> Iterator[str]:
        """Yield the methods of a class that others may call."""
        for each in (owner, *self.bases(owner)):
            for name in self.classes[each].methods:
                if not name.startswith("_") or name == "__init__":
                    yield f"{self.classes[each].file}:{each}.{name}"


class _Reader:
    """Reads one function: which classes its expressions have, and what it calls."""

    def __init__(self, graph: CallGraph, node: Node) -> None:
        self._graph = graph
        self._node = node
        self._types: dict[str, set[str]] = {}
        self._values: dict[str, ast.expr] = {}
        self._asked: set[int] = set()
        if node.owner is not None:
            self._types |= {"self": {node.owner}, "cls": {node.owner}}
        for inner in ast.walk(node.body):
            self._learn(inner)

    def _learn(self, inner: ast.AST) -> None:
        if isinstance(inner, ast.arg) and inner.annotation is not None:
            self._note(inner.arg, self._annotated(inner.annotation))
        elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            self._note(inner.target.id, self._annotated(inner.annotation))
        elif isinstance(inner, ast.Assign):
            for target in inner.targets:
                self._bind(target, inner.value)
        elif isinstance(inner, ast.For | ast.AsyncFor | ast.comprehension):
            self._bind(inner.target, inner.iter)
        elif isinstance(inner, ast.NamedExpr):
            self._bind(inner.target, inner.value)
        elif isinstance(inner, ast.withitem) and inner.optional_vars is not None:
            self._bind(inner.optional_vars, inner.context_expr)

    def _note(self, name: str, classes: set[str]) -> None:
        self._types.setdefault(name, set()).update(classes)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
        for name in names:
            self._values.setdefault(name, value)

    def called(self) -> set[str]:
        """Return every function that is called or mentioned."""
        found: set[str] = set()
        for inner in _without_annotations(self._node.body):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                found |= self._named(inner.id)
            elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
                found |= self._attribute(inner)
        self._note_unknown()
        return found - {self._node.name}

    def _named(self, name: str) -> set[str]:
        if name in self._types or name in self._values:
            return set()
        if name in self._graph.classes:
            return self._constructors(name)
        node = self._graph.named(self._node.file, name)
        return {node} if node else set()

    def _constructors(self, name: str) -> set[str]:
        made = (self._graph.method(name, each) for each in ("__init__", "__post_init__"))
        itself = f"{self._graph.classes[name].file}:{name}"
        return {itself, *(each for each in made if each is not None)}

    def _attribute(self, inner: ast.Attribute) -> set[str]:
        found: set[str] = set()
        for owner in self.classes_of(inner.value):
            found |= self._graph.methods(owner, inner.attr)
        if isinstance(inner.value, ast.Name):
            file = self._graph.module(self._node.file, inner.value.id)
            if file is not None and f"{file}:{inner.attr}" in self._graph.nodes:
                found.add(f"{file}:{inner.attr}")
        return found

    def _note_unknown(self) -> None:
        for inner in ast.walk(self._node.body):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                receiver = inner.func.value
                if self._is_foreign(receiver) or self.classes_of(receiver):
                    continue
                self._graph.unknown.append(
                    Unknown(self._node.name, inner.func.attr, inner.func.lineno)
                )

    def _is_foreign(self, receiver: ast.expr) -> bool:
        """Whether a receiver is a literal or a module, which have no methods of ours."""
        literal = (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.ListComp)
        if isinstance(receiver, ast.Name):
            return self._graph.module(self._node.file, receiver.id) is not None
        return isinstance(receiver, literal)

    # -- which classes an expression may have ---------------------------------------------------------

    def classes_of(self, value: ast.expr) -> set[str]:
        """Return the classes of the package that a value, or an element of it, may have."""
        if id(value) in self._asked:
            return set()
        self._asked.add(id(value))
        try:
            return self._classes_of(value)
        finally:
            self._asked.discard(id(value))

    def _classes_of(self, value: ast.expr) -> set[str]:
        if isinstance(value, ast.Name):
            return self._classes_of_name(value.id)
        if isinstance(value, ast.Attribute):
            return self._classes_of_attribute(value)
        if isinstance(value, ast.Call):
            return self._classes_of_call(value)
        inner = (child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr))
        return {each for child in inner for each in self.classes_of(child)}

    def _classes_of_name(self, name: str) -> set[str]:
        if self._types.get(name):
            return self._types[name]
        if name in self._values:
            return self.classes_of(self._values[name])
        if name in self._graph.classes:
            return {name}
        node = self._graph.nodes.get(self._graph.named(self._node.file, name) or "")
        if node is not None and isinstance(node.body, ast.expr) and node is not self._node:
            return _Reader(self._graph, node).classes_of(node.body)
        return set()

    def _classes_of_attribute(self, value: ast.Attribute) -> set[str]:
        found: set[str] = set()
        for owner in self.classes_of(value.value):
            found |= self._classes_of_field(owner, value.attr)
        return found

    def _classes_of_field(self, owner: str, name: str) -> set[str]:
        for each in (owner, *self._graph.bases(owner)):
            known = self._graph.classes.get(each)
            if known is None:
                continue
            if name in known.attributes:
                return self._annotated(known.attributes[name])
            if name in known.methods:
                return self._annotated(known.methods[name].returns)
            if name in known.made:
                method, value = known.made[name]
                if method is self._node.body and id(value) in self._asked:
                    return set()
                node = self._graph.nodes[f"{known.file}:{each}.{method.name}"]
                return _Reader(self._graph, node).classes_of(value)
        return set()

    def _classes_of_call(self, call: ast.Call) -> set[str]:
        func = call.func
        if isinstance(func, ast.Name):
            if func.id in self._graph.classes:
                return {func.id}
            node = self._graph.nodes.get(self._graph.named(self._node.file, func.id) or "")
            if node is not None and isinstance(node.body, _DEFINITIONS):
                return self._annotated(node.body.returns)
            # `list(x)`, `map(f, x)`, `copy(x)`: the classes of what went in
            return {each for given in call.args for each in self.classes_of(given)}
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name):
                file = self._graph.module(self._node.file, func.value.id)
                node = self._graph.nodes.get(f"{file}:{func.attr}")
                if node is not None and isinstance(node.body, _DEFINITIONS):
                    return self._annotated(node.body.returns)
            own = self._classes_of_attribute(func)
            return own or self._classes_within(func)
        return set()

    def _classes_within(self, func: ast.Attribute) -> set[str]:
        """`known.get(x)`, `known.values()`: the classes of what a container holds."""
        held = self.classes_of(func.value)
        known = {each for each in held if self._graph.methods(each, func.attr)}
        return held - known if func.attr in _READS else set()

    def _annotated(self, annotation: ast.expr | None) -> set[str]:
        if annotation is None:
            return set()
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        names = (n.id for n in ast.walk(annotation) if isinstance(n, ast.Name))
        found = {name for name in names if name in self._graph.classes}
        if "Self" in {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}:
            found |= {self._node.owner} if self._node.owner else set()
        return found


_READS = frozenset({"get", "pop", "values", "items", "setdefault", "copy", "popleft"})


def _without_annotations(body: ast.AST) -> Iterator[ast.AST]:
    """Yield what is inside a function, without the annotations: a class that is named there is not made."""
    waiting = [body]
    while waiting:
        here = waiting.pop()
        yield here
        for name, value in ast.iter_fields(here):
            if name not in ("annotation", "returns"):
                inside = value if isinstance(value, list) else [value]
                waiting += [each for each in inside if isinstance(each, ast.AST)]


def _targets(statement: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _attributes_set(method: Definition) -> Iterator[tuple[str, ast.expr]]:
    for inner in ast.walk(method):
        if isinstance(inner, ast.Assign | ast.AnnAssign):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            value = inner.annotation if isinstance(inner, ast.AnnAssign) else inner.value
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                ):
                    yield target.attr, value


def _last_name(base: ast.expr) -> str:
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
