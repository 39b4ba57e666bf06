"""The manifest of what the seeds ask for, and the decorator that ties a test to it.

    @requirement("S1.roots.pinned")
    def test_a_pinned_segment_is_a_root() -> None: ...

The entries are in `tests/seeds/`, one module per seed. `tests/test_requirements.py` holds both
directions: each live entry has a test, and each test names an entry. `docs/development/seeds.md` is made from
both by `python -m tools.seeds_page`; `python -m tools.seeds_page --missing` lists what is unproven.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import chain

import pytest

from tests.seeds import Requirement, s0, s0_tools, s1, s2, s3, s4

_ENTRIES: tuple[Requirement, ...] = tuple(
    chain(s0.ENTRIES, s0_tools.ENTRIES, s1.ENTRIES, s2.ENTRIES, s3.ENTRIES, s4.ENTRIES)
)

REQUIREMENTS: dict[str, Requirement] = {entry.id: entry for entry in _ENTRIES}

if len(REQUIREMENTS) != len(_ENTRIES):
    twice = sorted({e.id for e in _ENTRIES if REQUIREMENTS[e.id] is not e})
    raise ValueError(f"listed twice in tests/seeds: {', '.join(twice)}")


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as the proof of these entries; an unknown id raises LookupError."""
    if not ids:
        raise LookupError("requirement() names no entry")
    for name in ids:
        if name not in REQUIREMENTS:
            near = ", ".join(get_close_matches(name, REQUIREMENTS, n=3)) or "none is near"
            raise LookupError(f"tests/seeds has no entry {name!r} (nearest: {near})")
    return pytest.mark.requirement(*ids)
