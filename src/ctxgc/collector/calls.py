"""What kind of tool result a text is: kinds die at different times and leave different things behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from ctxgc.collector.presets import Shares
from ctxgc.core import HANDLE, OPENING, RECALL_TOOL, Message, Part, Text, note
from ctxgc.wire import strings_of, understand

# -- Calls: the old text of an edit, which need not be sent once the edit is made


OLD_TEXT = frozenset(
    {"old_string", "old_str", "old_text", "old_content", "oldString", "oldText", "old_source"}
)
LEAST_CHARS = 60
LEAST_SAVING = 0.1
_ERROR_HEAD = 160

Unique = Callable[[str], bool]


def was_made(message: Message, part: int) -> bool:
    """Tell whether a result does not read like the failure of an edit."""
    result = message.parts[part]
    return not result.is_error and "error" not in result.text[:_ERROR_HEAD].lower()


def may_change(message: Message) -> bool:
    """Tell whether a call may be shortened: thinking signs what stands beside it."""
    return not any(part.kind == "thinking" or part.signed for part in message.parts)


def without_old_text(arguments: str, is_unique: Unique) -> str | None:
    """Return the JSON arguments of an edit with less of its old text; None when that saves too little.

    `is_unique` tells whether no other text of the view holds a name.
    """
    try:
        given = json.loads(arguments)
        others = Text(strings_of(json.dumps(_shorter(given, lambda _: "")))).names
        short = _shorter(given, lambda old: _cut(old, lambda n: is_unique(n) and n not in others))
        text = json.dumps(short, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= (1 - LEAST_SAVING) * len(arguments) else None


def _shorter(value: Any, shorten: Callable[[str], str]) -> Any:
    """Return a JSON value in which every long old text is another one."""
    if isinstance(value, list):
        return [_shorter(each, shorten) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: shorten(each)
        if key in OLD_TEXT and isinstance(each, str) and len(each) >= LEAST_CHARS
        else _shorter(each, shorten)
        for key, each in value.items()
    }


def _cut(old: str, is_unique: Unique) -> str:
    """Return a mark and the lines of an old text that hold a name for the first time."""
    text = Text(old)
    held: set[str] = set()
    kept: list[str] = []
    for line, names in zip(text.lines, text.line_names, strict=True):
        wanted = {name for name in names - held if is_unique(name)}
        if wanted:
            held |= wanted
            kept.append(line)
    gone = len(text.lines) - len(kept)
    return "\n".join([note(f"{gone} lines that this edit replaced"), *kept]) if gone else old


# -- To-do lists: one that a newer list of the same tool has replaced says nothing any more


SHARES = Shares(lines=1.0, names=0.0)
"""Every line that is worth its room stays; lists are short."""

_LIST_TOOL = re.compile(
    r"(?:.*(?:__|\.))?(?:todo_?write|(?:write|set|update|manage)_?(?:todos?|todo_?list|plan))",
    re.IGNORECASE,
)


def is_todo_list(name: str, arguments: str) -> bool:
    """Tell whether a call writes a whole to-do list; one that only adds to a list replaces nothing."""
    if not _LIST_TOOL.fullmatch(name):
        return False
    given = _object(arguments)
    return bool(given) and not given.get("merge")


def may_leave(message: Message, part: Part) -> bool:
    """Tell whether the list of a call may be taken out of it, and was not yet."""
    return not part.server_side and may_change(message) and OPENING not in part.text


def without_entries(arguments: str, stub: str) -> str:
    """Return the arguments of a list's call with the lines of a stub in place of what it had."""
    key = next(iter(_object(arguments)), "todos")
    given = {key: stub.split("\n")}
    return json.dumps(given, ensure_ascii=False)


def _object(arguments: str) -> dict[str, object]:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


# -- What kind of tool result a text is


Kind = Literal["view", "shell_view", "shell", "search", "paths", "edit", "todo", "other"]

_PATHS_SHARE = 0.6
_SEARCH = re.compile(
    r"grep|glob|\bls\b|(?:search|find|list)_?(?:in_?)?(?:files?|dir|director|code|path|symbol|workspace)"
    r"|(?:files?|code|codebase|symbol|workspace|text)_?search",
    re.IGNORECASE,
)
_CODE_SUFFIXES = """
asm bash bat c cc clj cmake cpp cs css cu cxx dart erl ex exs go gradle h hpp hs html java jl js jsx kt
less lua m make mjs ml mm nim php pl po proto ps1 py pyi r rb rs s scala scss sh sql svelte swift ts tsx v
vb vue zig zsh
"""
_CODE = frozenset(_CODE_SUFFIXES.split())
"""Files of these kinds are read to be changed; others are read for what they say."""
_PROGRAM = re.compile(
    r"(?:cd\s+\S+|export\s+\S+|source\s+\S+|set\s+-\S+|\w+=\S*|sudo|time|timeout\s+\S+|env|nohup|\(|#[^\n]*"
    r"|\\)(?:\s*(?:&&|;|\n))*\s*"
)
_PROGRAMS = """
awk basename black bundle cargo cat chmod cmake composer cp cut date diff dirname dotnet du echo eslint fd
file find flake8 for gcc g++ git go golangci-lint gradle grep head jest kill ln ls make mkdir mkdocs mv
mvn mypy nl npm nvcc pip pip3 pnpm prettier printf ps pwd pylint pytest rake readlink rg rm rsync ruff
rustc sed sleep sort sphinx-build tail tar tee test touch tox tr tree tsc uniq vitest wc which while xargs
yarn
"""
_KNOWN = frozenset(_PROGRAMS.split())
"""Programs of which it is known what they print: about files and about the work; of others it is not."""
_SHELL_VIEW = re.compile(r"\b(?:cat|nl|sed\s+-n|head|tail|bat|less)\b")
_RANGE = re.compile(r"\bsed\s+-n\b|\b(?:head|tail)\s+-")
_SHELL_EDIT = re.compile(r"sed -i|apply_patch|cat >|\btee |<<|write_text")
_CHECK = re.compile(
    r"\b(?:tests?|pytest|jest|vitest|build|make|lint|tsc|vet|check|cargo|mvn|gradle)\b"
)
_LOOK = re.compile(
    r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?"
    r"(?:ls|find|grep|rg|git|cat|sed|nl|head|tail|echo|wc|mkdir|cp|mv|rm)\b"
)
_PATH = re.compile(r"[\w./\-]+\.\w+")
_GIVEN_HANDLE = re.compile(rf'"handle"\s*:\s*"(?:s-\d+|{HANDLE.pattern})"')


class CallEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool call does to files: those it names, those it edits, and whether it checks the work.

    `tool` is the name of the tool where calls of the same one replace each other. Files are named by the last
    part of their path, as shells do; `file` is the whole path of the one that a tool for files was given.
    `gathers` says that it fetches something for what it says: data, or what nobody knows anything about.
    `recalls` says that it asks for what had left the view, `asks_range` that it asks for lines by number.
    """

    kind: Kind
    tool: str = ""
    path: str = ""
    file: str = ""
    named: frozenset[str] = frozenset()
    edited: frozenset[str] = frozenset()
    checks: bool = False
    gathers: bool = False
    recalls: bool = False
    asks_range: bool = False


def is_recall(name: str, arguments: str) -> bool:
    """Return whether a call recalls something: by its name, or by the handle that it is given."""
    return name.endswith(RECALL_TOOL) or _GIVEN_HANDLE.search(arguments) is not None


def unread_recalls(history: Sequence[Message]) -> set[str]:
    """Return the ids of the calls in the model's last answer that recall something.

    Whoever asked for a text by its handle gets all of it: a part would have to be asked for again.
    """
    last = next((m for m in reversed(history) if m.role == "assistant"), None)
    parts = () if last is None else last.parts
    return {
        part.call_id
        for part in parts
        if part.kind == "tool_call" and part.call_id and is_recall(part.name or "", part.text)
    }


def read_call(name: str, arguments: str) -> CallEffect:
    """Return what a call with this name and these JSON arguments does."""
    if is_todo_list(name, arguments):
        return CallEffect(kind="todo", tool=name, named=_argument_paths(arguments))
    use = understand(name, arguments)
    path = base_name(use.path or "")
    own = frozenset([path]) if path else frozenset[str]()
    if use.access == "edit":
        return CallEffect(kind="edit", path=path, file=use.path or "", named=own, edited=own)
    command = use.command or ""
    is_shell = use.access == "run" and not command.startswith(f"{name} ")
    if is_shell or (use.access == "read" and _is_command(arguments)):
        return _shell_call(command, path, own, arguments)
    if use.access == "read":
        return CallEffect(
            kind="view",
            path=path,
            file=use.path or "",
            named=own,
            gathers=_are_data(own),
            asks_range=use.line_range is not None,
        )
    is_search = _SEARCH.search(name) is not None
    return CallEffect(
        kind="search" if is_search else "other",
        named=_argument_paths(arguments),
        gathers=not is_search,
        recalls=is_recall(name, arguments),
    )


def kind_of_result(call: CallEffect, lines: Sequence[str]) -> Kind:
    """Return the kind of a call's result: a search may have found nothing but paths."""
    if call.kind != "search":
        return "other" if call.kind == "todo" else call.kind
    said = [line.strip() for line in lines if line.strip()]
    paths = sum(1 for line in said if _is_path(line))
    return "paths" if paths >= _PATHS_SHARE * len(said) else "search"


def base_name(path: str) -> str:
    """Return the last part of a path: shells name files by it."""
    return path.rsplit("/", 1)[-1]


def _shell_call(command: str, path: str, own: frozenset[str], arguments: str) -> CallEffect:
    command = command or strings_of(arguments)
    named = own | frozenset(map(base_name, _PATH.findall(command)))
    edits = named if _SHELL_EDIT.search(command) else frozenset[str]()
    checks = bool(_CHECK.search(command)) and not _LOOK.match(command)
    is_view = bool(path) or (_SHELL_VIEW.search(command) is not None and not edits)
    # Several files are looked at as one only together.
    path = next(iter(named)) if is_view and len(named) == 1 else ""
    return CallEffect(
        kind="shell_view" if is_view else "shell",
        path=path,
        named=named,
        edited=edits,
        checks=checks,
        gathers=not edits and not checks and (_are_data(named) or not _is_known(command)),
        asks_range=_RANGE.search(command) is not None,
    )


def _are_data(names: frozenset[str]) -> bool:
    """Tell whether all of these are files that are read for what they say; there must be one."""
    return bool(names) and not any(is_code(name) for name in names)


def is_code(name: str) -> bool:
    """Tell whether a file of this name is read to be changed rather than for what it says."""
    return "." not in name or name.rpartition(".")[2].lower() in _CODE


def _is_known(command: str) -> bool:
    """Tell whether it is known what the program prints that a command runs."""
    start = 0
    while found := _PROGRAM.match(command, start):
        start = found.end()
    words = command[start:].split(None, 1)
    program = base_name(words[0]).rstrip(";") if words else ""
    return program in _KNOWN


def _is_command(arguments: str) -> bool:
    return '"command"' in arguments or '"cmd"' in arguments


def _is_path(line: str) -> bool:
    return " " not in line and ":" not in line and ("/" in line or "." in line)


def _argument_paths(arguments: str) -> frozenset[str]:
    return frozenset(base_name(s) for s in strings_of(arguments).split("\n") if _is_path(s))
