"""One table of ours comes into a TOML file, and goes again."""

from __future__ import annotations

import tomllib

import pytest

from ctxgc.agents.toml_config import drop_table, put_table
from ctxgc.errors import ConfigError

TABLE = ("mcp_servers", "ctxgc")
VALUES = {"command": 'C:\\py "x"', "args": ["-m", "ctxgc ü"], "startup_timeout_sec": 20}
FILES = (
    "",
    'model = "x" # mine\n',
    'model = "x"',
    '[mcp_servers.other]\ncommand = "a"\n',
    '\n\n[a]\nb = """\n[no.header]\n"""\n',
)


@pytest.mark.parametrize("text", FILES)
def test_the_table_comes_last_and_goes_without_a_trace(text: str) -> None:
    new = put_table(text, TABLE, VALUES, "config.toml")
    found = tomllib.loads(new)
    assert found["mcp_servers"]["ctxgc"] == VALUES
    assert new.startswith(text)
    assert drop_table(new, TABLE, "config.toml").rstrip("\n") == text.rstrip("\n")


def test_a_table_of_an_earlier_version_is_replaced() -> None:
    old = '[mcp_servers.ctxgc]\ncommand = "old"\n\n[mcp_servers.ctxgc.env]\nA = "1"\n\n[z]\nb = 1\n'
    new = put_table(old, TABLE, VALUES, "config.toml")
    assert tomllib.loads(new) == {"z": {"b": 1}, "mcp_servers": {"ctxgc": VALUES}}


def test_a_table_between_others_leaves_them_alone() -> None:
    text = 'a = 1\n\n["mcp_servers".ctxgc]\ncommand = "x"\n\n[z]\nb = 1\n'
    assert drop_table(text, TABLE, "f") == "a = 1\n\n[z]\nb = 1\n"


@pytest.mark.parametrize("text", ["[", "a = ", 'mcp_servers = {other = {command = "a"}}\n'])
def test_what_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml is not TOML"):
        put_table(text, TABLE, VALUES, "config.toml")
