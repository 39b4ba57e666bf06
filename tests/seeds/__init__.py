"""What the five seed documents ask for, as data: one module per seed, one entry per named part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

SEEDS: dict[str, str] = {
    "S0": "GC-inspired heuristic pruning",
    "S1": "GC engine implementation",
    "S2": "GC plugins and budget integration",
    "S3": "Context GC plugins",
    "S4": "Context management strategy",
}

ISSUES: dict[int, str] = {
    2: "Engine",
    3: "Sessions",
    4: "Stores and guard",
    5: "MCP server",
}

# Every entry of a delivered issue must be proven. Those of an issue under way may be proven one by
# one; those of later issues may not be, so that no deferral goes stale.
DELIVERED: frozenset[int] = frozenset({2, 3, 4, 5})
UNDER_WAY: frozenset[int] = frozenset()


DOORS: tuple[str, ...] = ("engine", "Session", "MCP", "CLI")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing a seed asks for, the issue that delivers it, and the file it lives in.

    `deferred` names the issue that will deliver it; None means that it must be proven now.
    `code` is a path below `src/ctxgc`, or empty while the code does not exist. `differs` says where
    ours is not as the seed writes it, and why; empty means that it is. `doors` says, by door, how it is
    reached there or what is not there, where the doors differ.
    """

    id: str
    says: str
    seed: str
    section: str
    issue: int
    code: str = ""
    deferred: str | None = None
    differs: str = ""
    doors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a seed writes that cannot be right, and what ours does; `entry` is the part it belongs to."""

    entry: str
    written: str
    mended: str


def section(
    prefix: str,
    title: str,
    parts: Mapping[str, str],
    *,
    issue: int,
    code: str = "",
    differs: Mapping[str, str] = MappingProxyType({}),
    doors: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Iterator[Requirement]:
    """Yield one requirement per part of a seed's section, with ids `prefix.part`.

    Raises:
        ValueError: `differs` or `doors` names a part that the section does not have, or no known door.
    """
    if unknown := (differs.keys() | doors.keys()) - parts.keys():
        raise ValueError(f"{prefix} has no part {', '.join(sorted(unknown))}")
    if unknown := {door for each in doors.values() for door in each} - set(DOORS):
        raise ValueError(f"{prefix} names no door: {', '.join(sorted(unknown))}")
    deferred = None if issue in DELIVERED else f"issue {issue}: {ISSUES[issue]}"
    for name, says in parts.items():
        yield Requirement(
            id=f"{prefix}.{name}",
            says=says,
            seed=prefix.partition(".")[0],
            section=title,
            issue=issue,
            code=code,
            deferred=deferred,
            differs=differs.get(name, ""),
            doors=doors.get(name, {}),
        )
