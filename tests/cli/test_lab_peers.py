"""`ctxgc lab peers`: what is installed, and how it gets there."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ctxgc.cli.lab import peers
from ctxgc.errors import PeerError
from ctxgc.lab import PACKAGES, PEERS
from ctxgc.lab.peers import catalog
from ctxgc.lab.peers.catalog import Package


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXGC_LAB_PEERS", str(tmp_path))


def test_the_list_names_every_peer_and_whether_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kompact = PACKAGES["kompact"]
    (tmp_path / kompact.name).mkdir()
    (tmp_path / kompact.name / ".ready").write_text(kompact.requirement, encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "160")
    lines = CliRunner().invoke(peers, ["list"]).output.splitlines()[1:]
    first = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert first == list(PEERS)
    assert [line.split()[0] for line in lines if "  ready  " in line] == ["kompact"]


def test_all_are_installed_and_one_that_cannot_be_had_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def install(package: Package) -> None:
        if package.name == "litellm":
            raise PeerError("no such version")

    monkeypatch.setattr(catalog, "install", install)
    done = CliRunner().invoke(peers, ["install"])
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "litellm: no such version" if name == "litellm" else f"{package.requirement}: ready"
        for name, package in PACKAGES.items()
    ]
    assert CliRunner().invoke(peers, ["install", "kompact"]).exit_code == 0


def test_a_wrong_name_is_told_with_the_known_ones() -> None:
    done = CliRunner().invoke(peers, ["install", "unheard-of"])
    assert done.exit_code == 2
    assert f"unknown: unheard-of; known: {', '.join(PACKAGES)}" in done.output
