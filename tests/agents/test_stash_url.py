"""The stash that an installed agent recalls from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxgc.agents import absolute_url, install, stash_url_of, write_plugin_folder
from ctxgc.places import user_store


def test_the_project_goes_before_the_user(home: Path) -> None:
    project = home / "project"
    assert stash_url_of("codex", project) is None
    install("codex", store="sqlite:/srv/mine.sqlite")
    assert stash_url_of("codex", project) == "sqlite:/srv/mine.sqlite"
    install("codex", scope="project")
    assert stash_url_of("codex", project) == user_store()
    assert stash_url_of("claude-code", project) is None


def test_every_installation_has_the_one_store_of_the_user(home: Path) -> None:
    url = f"sqlite:{home}/.local/state/ctxgc/agents/stash.sqlite"
    install("claude-code")
    install("codex", scope="project")
    assert stash_url_of("claude-code", home) == stash_url_of("codex", home / "project") == url
    hooks = (home / "project/.codex/hooks.json").read_text(encoding="utf-8")
    assert f"--home {home}/project/.ctxgc/agents --store {url}" in hooks


def test_a_server_that_was_put_in_by_hand_is_known(home: Path) -> None:
    by_hand = {"mcpServers": {"ctxgc": {"command": "ctxgc", "args": ["mcp"]}}}
    project = home / "project"
    (home / ".claude.json").write_text(json.dumps({"projects": {str(project): by_hand}}))
    assert stash_url_of("claude-code", project) == user_store()
    assert stash_url_of("claude-code", home) is None
    (project / ".codex").mkdir()
    (project / ".codex/config.toml").write_text(
        '[mcp_servers.ctxgc]\ncommand = "ctxgc"\nargs = ["mcp", "--store", "json:mine.json"]\n'
    )
    assert stash_url_of("codex", project) == "json:mine.json"


def test_an_installation_of_an_earlier_version_serves_the_store_of_its_project(home: Path) -> None:
    old = f"sqlite:{home}/project/.ctxgc/agents/stash.sqlite"
    entry = {"command": "python", "args": ["-m", "ctxgc.cli", "mcp", "--store", old]}
    written = json.dumps({"mcpServers": {"ctxgc": entry}})
    (home / "project/.mcp.json").write_text(written, encoding="utf-8")
    assert stash_url_of("claude-code", home / "project") == old


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
