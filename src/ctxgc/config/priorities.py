"""S4's priority matrix as data: which content always stays, may stay, always goes.

A rule names kinds of content and conditions on them. In a file it is one of S4's names, with S4's note in
brackets or another number in it (`"recent_feedback (last 8 items)"`), or an object with the fields of
`PriorityRule`. `ctxgc.collector` ranks content by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from ctxgc.config.keys import in_words, unknown_key
from ctxgc.errors import ConfigError

KEY = "priorities"


class PriorityRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the matrix. It holds for content that meets all its conditions.

    Args:
        name: S4's name of the entry; content of that kind is always meant.
        kinds: further kinds of content that are meant.
        active_file: the file being worked on is meant too, unless superseded.
        superseded: superseded content is meant too.
        resolved: only content whose error is (not) resolved.
        tasks_ago: only content of tasks from so many to so many ago (None: no end); the current
            task is 0 ago. Content of no known task is outside every span.
        current_task: not content of another task than the current one.
        newest: only so many of the newest messages that meet the other conditions.
    """

    name: str
    kinds: tuple[str, ...] = ()
    active_file: bool = False
    superseded: bool = False
    resolved: bool | None = None
    tasks_ago: tuple[int, int | None] | None = None
    current_task: bool = False
    newest: int | None = None


def _rules(*rules: PriorityRule) -> tuple[PriorityRule, ...]:
    return rules


_R = PriorityRule
ALWAYS_KEEP = _rules(
    _R(name="current_task_description", kinds=("current_task",), current_task=True),
    _R(name="current_task_acceptance_criteria", kinds=("acceptance_criteria",), current_task=True),
    _R(name="system_role_prompt", kinds=("system_prompt",)),
    _R(name="active_file_being_edited", kinds=("active_file",), active_file=True),
    _R(name="last_3_user_messages", kinds=("user_message",), newest=3),
    _R(name="critical_error_context", kinds=("error",), resolved=False, newest=5),
)
KEEP_IF_RELEVANT = _rules(
    _R(name="recent_task_history", kinds=("task_history",), tasks_ago=(1, 3)),
    _R(name="active_pr_context"),
    _R(name="dependency_information"),
    _R(name="current_file_structure"),
    _R(name="recent_feedback", kinds=("feedback",), newest=5),
)
KEEP_IF_SPACE = _rules(
    _R(name="old_task_history", kinds=("task_history",)),
    _R(name="success_metrics"),
    _R(name="project_guidelines"),
    _R(name="example_code_snippets"),
    _R(name="documentation_links"),
)
ALWAYS_PRUNE = _rules(
    _R(name="completed_task_details", kinds=("task_history",), tasks_ago=(6, None)),
    _R(name="old_error_messages", kinds=("error",), resolved=True),
    _R(name="deprecated_context", kinds=("deprecated",)),
    _R(name="temporary_debug_info", kinds=("debug",)),
    _R(name="redundant_information", kinds=("redundant",), superseded=True),
)

KNOWN = {
    rule.name: rule for rule in (*ALWAYS_KEEP, *KEEP_IF_RELEVANT, *KEEP_IF_SPACE, *ALWAYS_PRUNE)
}
"""The rules of S4's matrix by their names."""


class PriorityMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """The four lists of the matrix; each may be replaced.

    A list takes rules, their names as S4 writes them, and objects with the fields of a rule.

    Raises:
        ConfigError: a name or a field is not known, or a value is of the wrong kind.
    """

    always_keep: tuple[PriorityRule, ...] = ALWAYS_KEEP
    keep_if_relevant: tuple[PriorityRule, ...] = KEEP_IF_RELEVANT
    keep_if_space: tuple[PriorityRule, ...] = KEEP_IF_SPACE
    always_prune: tuple[PriorityRule, ...] = ALWAYS_PRUNE

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            force_setattr(self, field, _listed(field, getattr(self, field)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PriorityMatrix:
        """Return the matrix that JSON values describe; lists that are left out are S4's.

        Raises:
            ConfigError: a list, a name or a field is not known, or a value is of the wrong kind.
        """
        given: object = data
        if not isinstance(given, Mapping):
            raise _wrong(f"must be an object with lists, got {type(given).__name__}")
        _check_names(data, cls.__struct_fields__, "list of priorities")
        return cls(**data)

    def own_always_keep(self) -> tuple[PriorityRule, ...]:
        """Return the rules of `always_keep` that are not S4's: they hold in every zone, as roots do."""
        return tuple(rule for rule in self.always_keep if rule not in ALWAYS_KEEP)

    def to_dict(self) -> dict[str, Any]:
        """Return the lists that are not S4's as JSON values; S4's own rules are in them by name."""
        return {
            field: [_written(rule) for rule in getattr(self, field)]
            for field in self.__struct_fields__
            if getattr(self, field) != getattr(_S4, field)
        }


def _written(rule: PriorityRule) -> Any:
    return rule.name if KNOWN.get(rule.name) == rule else msgspec.to_builtins(rule)


def _listed(field: str, value: object) -> tuple[PriorityRule, ...]:
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        raise _wrong(f"{field} must be a list of rules, got {type(value).__name__}")
    return tuple(map(_rule, value))


def _rule(given: object) -> PriorityRule:
    if isinstance(given, PriorityRule):
        return given
    if isinstance(given, str):
        return _named(given)
    if not isinstance(given, Mapping):
        raise _wrong(f"a rule is a name or an object, got {type(given).__name__}")
    _check_names(given, PriorityRule.__struct_fields__, "field of a priority rule")
    try:
        return msgspec.convert(dict(given), PriorityRule)
    except msgspec.ValidationError as error:
        raise _wrong(f"rule {given.get('name', '?')!r} {in_words(str(error))}") from None


_ENTRY = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.ASCII)
_NUMBER = re.compile(r"(?<=_)\d+(?=_)", re.ASCII)
_NOTES: tuple[tuple[re.Pattern[str], Callable[[int], dict[str, Any]]], ...] = (
    (re.compile(r"last (\d+) tasks?"), lambda n: {"tasks_ago": (1, n)}),
    (re.compile(r"> ?(\d+) tasks? ago"), lambda n: {"tasks_ago": (n + 1, None)}),
    (re.compile(r"last (\d+)(?: \w+)?"), lambda n: {"newest": n}),
    (re.compile(r"resolved()"), lambda _: {"resolved": True}),
)


def _named(entry: str) -> PriorityRule:
    """Return S4's rule of a name, changed as the number in the name and the note in brackets say."""
    found = _ENTRY.fullmatch(entry)
    name, note = (entry, None) if found is None else found.groups()
    counted = _NUMBER.search(name)
    plain = _NUMBER.sub("3", name)
    _check_names((plain,), KNOWN, "priority rule")
    rule = KNOWN[plain]
    if counted is not None:
        rule = replace(rule, name=name, newest=int(counted[0]))
    return rule if note is None else replace(rule, **_conditions(entry, note.strip()))


def _conditions(entry: str, note: str) -> dict[str, Any]:
    for pattern, fields in _NOTES:
        found = pattern.fullmatch(note)
        if found is not None:
            return fields(int(found[1] or 0))
    raise _wrong(f"the note of {entry!r} is not known", "write such as (last 5 items)")


def _check_names(names: Iterable[Any], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            error = unknown_key(str(name), known, what)
            error.details["key"] = KEY
            raise error


def _wrong(what: str, hint: str = "a rule is one of S4's names, or an object") -> ConfigError:
    return ConfigError(f"{KEY}: {what}", hint=hint, key=KEY)


_S4 = PriorityMatrix()

LAST_RESORT = PriorityMatrix(
    always_keep=_rules(
        _R(name="system_prompt", kinds=("system_role_prompt",)),
        _R(name="current_task", kinds=("current_task_description",), current_task=True),
        _R(
            name="current_file", kinds=("active_file", "active_file_being_edited"), active_file=True
        ),
        _R(name="last_user_message", kinds=("user_message",), newest=1),
        _R(
            name="error_context", kinds=("error", "critical_error_context"),
            resolved=False, newest=1,
        ),
    ),
    keep_if_relevant=(),
    keep_if_space=(),
    always_prune=(),
)  # fmt: skip
"""What S4's aggressive pruning keeps; of these, what is not there is not missed."""
