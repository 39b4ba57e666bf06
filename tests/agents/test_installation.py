"""An installation adds what is ours, changes nothing else, and goes without a trace."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from ctxgc.agents import AGENTS, FileEdit, install, uninstall
from ctxgc.errors import ConfigError, InputError, StoreError
from ctxgc.stores import add_to_inbox, open_store
from tests.agents.conftest import files_of

MINE: dict[str, dict[str, str]] = {
    "claude-code": {
        ".claude.json": '{"numStartups": 3, "mcpServers": {"mine": {"command": "x"}}}',
        ".claude/settings.json": '{\n    "model": "opus",\n    "hooks": {"PostToolUse": [{"matcher": "Edit", '
        '"hooks": [{"type": "command", "command": "true"}]}]},\n    "statusLine": {"type": "command", '
        '"command": "mine"}\n}\n',
    },
    "codex": {".codex/config.toml": '# mine\nmodel = "x"\n', ".codex/hooks.json": '{"hooks": {}}'},
    "cursor": {".cursor/mcp.json": '{"mcpServers": {}}\n'},
    "vscode": {".config/Code/User/mcp.json": '{\n\t// mine\n\t"servers": {},\n}\n'},
}


def write(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names(changes: list[FileEdit], home: Path) -> list[tuple[str, str]]:
    return [(c.verb, c.path.relative_to(home).as_posix()) for c in changes]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("settled", [False, True])
def test_uninstalling_leaves_everything_byte_for_byte(
    home: Path, agent: str, scope: Any, settled: bool
) -> None:
    if settled:
        write(home, MINE[agent])
        write(home / "project", {".mcp.json": "{}", ".claude/settings.json": '{"a": 1}'})
    before = files_of(home)
    assert install(agent, scope=scope)
    assert install(agent, scope=scope) == []
    assert files_of(home) != before
    assert uninstall(agent, scope=scope)
    assert files_of(home) == before
    assert uninstall(agent, scope=scope) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_dry_run_shows_the_changes_and_makes_none(home: Path, agent: str) -> None:
    write(home, MINE[agent])
    before = files_of(home)
    shown = install(agent, dry_run=True)
    assert files_of(home) == before
    assert [(c.path, c.after) for c in shown] == [(c.path, c.after) for c in install(agent)]
    assert all("+" in change.diff() for change in shown)
    installed = files_of(home)
    assert uninstall(agent, dry_run=True)
    assert files_of(home) == installed


def test_what_is_the_users_stays_in_claude_code(home: Path) -> None:
    write(home, MINE["claude-code"])
    install("claude-code")
    servers = json.loads((home / ".claude.json").read_text(encoding="utf-8"))
    settings = json.loads((home / ".claude/settings.json").read_text(encoding="utf-8"))
    assert servers["numStartups"] == 3
    assert list(servers["mcpServers"]) == ["mine", "ctxgc"]
    assert settings["statusLine"]["command"] == "mine"
    assert settings["hooks"]["PostToolUse"][0]["matcher"] == "Edit"
    assert list(settings["hooks"]) == ["PostToolUse", "PreCompact", "SessionStart"]
    assert "mcp__ctxgc__context_recall" in settings["permissions"]["allow"]


def test_codex_gets_its_server_and_its_hooks(home: Path) -> None:
    install("codex", store=f"json:{home}/mine.json")
    config = tomllib.loads((home / ".codex/config.toml").read_text(encoding="utf-8"))
    server = config["mcp_servers"]["ctxgc"]
    assert server["args"][-4:] == ["--store", f"json:{home}/mine.json", "--agent", "codex"]
    hooks = json.loads((home / ".codex/hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert list(hooks) == ["PostToolUse", "PreCompact", "SessionStart"]
    assert (
        f"--store {quote(f'json:{home}/mine.json')}"
        in hooks["PostToolUse"][0]["hooks"][0]["command"]
    )


def test_from_a_file_that_was_changed_since_only_ours_goes(home: Path) -> None:
    write(home, MINE["claude-code"])
    install("claude-code")
    for name in (".claude.json", ".claude/settings.json"):
        value = json.loads((home / name).read_text(encoding="utf-8"))
        value["added"] = {"later": True}
        (home / name).write_text(json.dumps(value), encoding="utf-8")
    uninstall("claude-code")
    for name, text in MINE["claude-code"].items():
        found = json.loads((home / name).read_text(encoding="utf-8"))
        assert found == {**json.loads(text), "added": {"later": True}}


def test_a_file_that_was_made_for_us_and_used_since_keeps_what_others_wrote(home: Path) -> None:
    install("claude-code")
    path = home / ".claude.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({"numStartups": 1, **value}), encoding="utf-8")
    uninstall("claude-code")
    assert json.loads(path.read_text(encoding="utf-8")) == {"numStartups": 1}


def test_another_store_takes_the_place_of_the_first(home: Path) -> None:
    write(home, MINE["claude-code"])
    before = files_of(home)
    install("claude-code")
    assert install("claude-code", store=f"sqlite:{home}/other.db")
    text = (home / ".claude/settings.json").read_text(encoding="utf-8")
    assert text.count("ctxgc.agents.hook post-tool-use") == 1
    assert text.count("other.db") == 3
    uninstall("claude-code")
    assert files_of(home) == before


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude-code", ".claude/settings.json", '{"hooks": '),
        ("claude-code", ".claude/settings.json", '{"hooks": {"PostToolUse": 7}}'),
        ("claude-code", ".claude.json", "[]"),
        ("codex", ".codex/config.toml", "model = "),
        ("cursor", ".cursor/mcp.json", "\x00"),
    ],
)
def test_a_damaged_file_is_refused_and_nothing_is_written(
    home: Path, agent: str, name: str, text: str
) -> None:
    write(home, {name: text})
    before = files_of(home)
    with pytest.raises(ConfigError) as caught:
        install(agent)
    assert str(home / name) in caught.value.message
    assert caught.value.hint
    assert files_of(home) == before


def test_text_that_is_no_utf8_is_refused(home: Path) -> None:
    write(home, {".cursor/mcp.json": ""})
    (home / ".cursor/mcp.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match="not UTF-8"):
        install("cursor")


def test_an_unknown_agent_gets_the_nearest_name(home: Path) -> None:
    with pytest.raises(ConfigError, match="claude-code"):
        install("claude-kode")


def test_a_store_that_hooks_cannot_use_is_refused(home: Path) -> None:
    with pytest.raises(InputError, match="has no inbox"):
        install("claude-code", store="memory:")
    assert files_of(home) == {"project": b"/"}


def test_links_and_permissions_stay(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    real.chmod(0o640)
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").symlink_to(real)
    install("claude-code")
    assert (home / ".claude/settings.json").is_symlink()
    assert "PostToolUse" in real.read_text(encoding="utf-8")
    assert real.stat().st_mode & 0o777 == 0o640
    uninstall("claude-code")
    assert real.read_text(encoding="utf-8") == "{}"


def test_if_one_file_cannot_be_written_the_others_are_as_they_were(home: Path) -> None:
    write(home, {".claude.json": "{}", ".claude": ""})
    with pytest.raises(StoreError):
        install("claude-code")
    assert (home / ".claude.json").read_text(encoding="utf-8") == "{}"


def test_the_stash_stays_until_the_last_agent_is_gone(home: Path) -> None:
    before = files_of(home)
    install("claude-code")
    install("codex")
    url = f"sqlite:{home}/.local/state/ctxgc/agents/stash.sqlite"
    add_to_inbox(url, "s", "h-aaaabbbbccccdddd", {"segment_id": "a", "text": "t", "type": "log"})
    open_store(url).close()
    uninstall("claude-code")
    assert Path(url.removeprefix("sqlite:")).is_file()
    uninstall("codex", delete_stash=True)
    assert files_of(home) == before


def test_what_was_stashed_stays_unless_it_is_to_be_deleted(home: Path) -> None:
    """A hook stashes into an inbox, and `prune` stashes without an installation: both stay."""
    ours = home / ".local/state/ctxgc/agents"
    url = f"sqlite:{ours}/stash.sqlite"
    install("claude-code")
    add_to_inbox(url, "s", "h-aaaabbbbccccdddd", {"segment_id": "a", "text": "t", "type": "log"})
    uninstall("claude-code")
    store = open_store(url)
    assert [info.session_id for info in store.sessions()] == ["s"]
    store.close()
    uninstall("claude-code")
    assert (ours / "stash.sqlite").is_file()
    uninstall("claude-code", delete_stash=True)
    assert not ours.exists()


def test_a_damaged_receipt_is_named(home: Path) -> None:
    install("cursor")
    receipt = home / ".local/state/ctxgc/agents/installs/cursor.json"
    receipt.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="receipt"):
        uninstall("cursor")
    receipt.unlink()
    uninstall("cursor")
    assert (home / ".cursor/mcp.json").read_text(encoding="utf-8").strip() == "{}"
