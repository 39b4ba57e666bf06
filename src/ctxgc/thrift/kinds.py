"""What kind of tool result a text is: kinds die at different times and leave different things behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxgc.thrift.todos import is_todo_list
from ctxgc.wire.tools import strings_of, understand

Kind = Literal["view", "shell_view", "shell", "search", "paths", "edit", "todo", "other"]

_PATHS_SHARE = 0.6
_SEARCH = re.compile(r"grep|search|glob|find|list|\bls\b", re.IGNORECASE)
_SHELL_VIEW = re.compile(r"\b(?:cat|nl|sed\s+-n|head|tail|bat|less)\b")
_SHELL_EDIT = re.compile(r"sed -i|apply_patch|cat >|\btee |<<|write_text")
_CHECK = re.compile(
    r"\b(?:tests?|pytest|jest|vitest|build|make|lint|tsc|vet|check|cargo|mvn|gradle)\b"
)
_LOOK = re.compile(
    r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?"
    r"(?:ls|find|grep|rg|git|cat|sed|nl|head|tail|echo|wc|mkdir|cp|mv|rm)\b"
)
_PATH = re.compile(r"[\w./\-]+\.\w+")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool call does to files: those it names, those it edits, and whether it checks the work.

    `tool` is the name of the tool where calls of the same one replace each other.
    """

    kind: Kind
    tool: str = ""
    path: str = ""
    named: frozenset[str] = frozenset()
    edited: frozenset[str] = frozenset()
    checks: bool = False


def read_call(name: str, arguments: str) -> Call:
    """Return what a call with this name and these JSON arguments does."""
    if is_todo_list(name, arguments):
        return Call(kind="todo", tool=name, named=_argument_paths(arguments))
    use = understand(name, arguments)
    path = base_name(use.path or "")
    own = frozenset([path]) if path else frozenset[str]()
    if use.access == "edit":
        return Call(kind="edit", path=path, named=own, edited=own)
    command = use.command or ""
    is_shell = use.access == "run" and not command.startswith(f"{name} ")
    if is_shell or (use.access == "read" and _is_command(arguments)):
        return _shell_call(command, path, own, arguments)
    if use.access == "read":
        return Call(kind="view", path=path, named=own)
    return Call(
        kind="search" if _SEARCH.search(name) else "other", named=_argument_paths(arguments)
    )


def kind_of_result(call: Call, lines: Sequence[str]) -> Kind:
    """Return the kind of a call's result: a search may have found nothing but paths."""
    if call.kind != "search":
        return "other" if call.kind == "todo" else call.kind
    said = [line.strip() for line in lines if line.strip()]
    paths = sum(1 for line in said if _is_path(line))
    return "paths" if paths >= _PATHS_SHARE * len(said) else "search"


def base_name(path: str) -> str:
    """Return the last part of a path: shells name files by it."""
    return path.rsplit("/", 1)[-1]


def _shell_call(command: str, path: str, own: frozenset[str], arguments: str) -> Call:
    command = command or strings_of(arguments)
    named = own | frozenset(map(base_name, _PATH.findall(command)))
    edits = named if _SHELL_EDIT.search(command) else frozenset[str]()
    checks = bool(_CHECK.search(command)) and not _LOOK.match(command)
    # Agents that look at files through a shell look often and quote little of what they saw.
    kind: Kind = "shell_view" if path or _SHELL_VIEW.search(command) else "shell"
    return Call(kind=kind, path=path, named=named, edited=edits, checks=checks)


def _is_command(arguments: str) -> bool:
    return '"command"' in arguments or '"cmd"' in arguments


def _is_path(line: str) -> bool:
    return " " not in line and ":" not in line and ("/" in line or "." in line)


def _argument_paths(arguments: str) -> frozenset[str]:
    return frozenset(base_name(s) for s in strings_of(arguments).split("\n") if _is_path(s))
