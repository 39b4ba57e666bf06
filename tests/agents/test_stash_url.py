"""The stash that an installed agent recalls from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc.agents import absolute_url, install, stash_url_of, write_plugin_folder


def test_the_project_goes_before_the_user(home: Path) -> None:
    project = home / "project"
    assert stash_url_of("codex", project) is None
    install("codex", store="sqlite:/srv/mine.sqlite")
    assert stash_url_of("codex", project) == "sqlite:/srv/mine.sqlite"
    install("codex", scope="project")
    assert stash_url_of("codex", project) == f"sqlite:{project}/.ctxgc/agents/stash.sqlite"
    assert stash_url_of("claude-code", project) is None


def test_a_store_that_is_named_from_here_is_found_from_everywhere(home: Path) -> None:
    project = home / "project"
    install("codex", store="sqlite:mine.db")
    assert stash_url_of("codex", project) == f"sqlite:{project}/mine.db"
    written = write_plugin_folder(project / "plugin", store="sqlite:mine.db")
    (server,) = (path for path in written if path.name == ".mcp.json")
    assert f'"sqlite:{project}/mine.db"' in server.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("url", "becomes"),
    [
        ("json:~/a.json", "json:{home}/a.json"),
        ("sqlite:///srv/a.db", "sqlite:/srv/a.db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("memory:", "memory:"),
    ],
)
def test_only_files_have_a_place_of_their_own(home: Path, url: str, becomes: str) -> None:
    assert absolute_url(url) == becomes.format(home=home)
