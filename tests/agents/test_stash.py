"""The stash that an installed agent recalls from."""

from __future__ import annotations

from pathlib import Path

from ctxgc.agents import install
from ctxgc.agents.stash import stash_of


def test_the_project_goes_before_the_user(home: Path) -> None:
    project = home / "project"
    assert stash_of("codex", project) is None
    install("codex", store="sqlite:/srv/mine.sqlite")
    assert stash_of("codex", project) == "sqlite:/srv/mine.sqlite"
    install("codex", scope="project")
    assert stash_of("codex", project) == f"sqlite:{project}/.ctxgc/agents/stash.sqlite"
    assert stash_of("claude-code", project) is None
