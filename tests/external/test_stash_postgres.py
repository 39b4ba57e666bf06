"""The stash commands on a real Postgres server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ctxgc import Session
from ctxgc.cli import main
from tests.cli.stash_cases import KEY, STORE, make_session


def stash(*arguments: str) -> Any:
    done = CliRunner().invoke(main, ["stash", *arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_stash_moves_to_postgres_is_collected_there_and_comes_back(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with make_session() as session:
        view = session.view()
    monkeypatch.setenv("CTXGC_STORE", database)
    assert list(stash("migrate", STORE, database)["copied"]) == ["work"]
    assert stash("migrate", STORE, database)["present"] == ["work"]
    hit = stash("search", "function_3_30", "--session", "work")[0]
    assert "function_3_30" in stash("show", hit["handle"], "--pattern", "function_3_30")["text"]
    garbage = stash("gc", "--older-than", "1d")["segments"]
    assert stash("gc", "--older-than", "1d", "--apply")["segments"] == garbage != []
    stash("export", "back.jsonl", "--no-mask")
    assert KEY in Path("back.jsonl").read_text(encoding="utf-8")
    stash("import", "back.jsonl", "--store", "sqlite:back.db")
    with Session(store="sqlite:back.db", session_id="work") as again:
        assert again.view() == view
