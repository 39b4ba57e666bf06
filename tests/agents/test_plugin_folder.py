"""The plugin folder holds what an installation sets up, in the words of a plugin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxgc.agents import write_plugin_folder
from ctxgc.errors import ConfigError


def test_the_folder_holds_manifest_server_hooks_and_commands(home: Path) -> None:
    folder = home / "plugin"
    written = [path.relative_to(folder).as_posix() for path in write_plugin_folder(folder)]
    assert written == [
        ".claude-plugin/plugin.json", ".mcp.json", "hooks/hooks.json", "commands/context.md",
        "commands/recall.md", "README.md",
    ]  # fmt: skip
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text("utf-8"))["name"] == "ctxgc"
    assert list(json.loads((folder / ".mcp.json").read_text("utf-8"))["mcpServers"]) == ["ctxgc"]
    hooks = json.loads((folder / "hooks/hooks.json").read_text("utf-8"))["hooks"]
    assert list(hooks) == ["PostToolUse", "PreCompact", "SessionStart"]
    assert (
        "--recall mcp__plugin_ctxgc_ctxgc__context_recall"
        in (hooks["PostToolUse"][0]["hooks"][0]["command"])
    )
    assert write_plugin_folder(folder)


def test_a_folder_of_others_is_left_alone(home: Path) -> None:
    (home / "other").mkdir()
    (home / "other/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"already holds notes\.txt"):
        write_plugin_folder(home / "other")
    assert [path.name for path in (home / "other").iterdir()] == ["notes.txt"]
