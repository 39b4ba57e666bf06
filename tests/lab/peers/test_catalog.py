"""An environment for each peer, made once."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import PeerError
from ctxgc.files import FileLock
from ctxgc.lab import PACKAGES, install_all, is_ready
from ctxgc.lab.peers import catalog
from ctxgc.lab.peers.__main__ import main
from ctxgc.lab.peers.catalog import Package, home, install, interpreter


class Installer:
    """Stands for `venv` and for pip; notes what it was asked for."""

    def __init__(self, code: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.code = code

    def create(self, folder: Path, **_: Any) -> None:
        folder.mkdir(parents=True)

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        return subprocess.CompletedProcess(command, self.code, "", "first\nno such version\n\n")


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    made = Installer()
    monkeypatch.setenv("CTXGC_LAB_PEERS", str(tmp_path))
    monkeypatch.setattr(catalog.venv, "create", made.create)
    monkeypatch.setattr(catalog.subprocess, "run", made.run)
    return made


def test_a_package_is_installed_once_in_its_own_folder(
    installer: Installer, tmp_path: Path
) -> None:
    package = Package("peer", "1.2")
    install(package)
    install(package)
    assert [command[1:] for command in installer.asked] == [
        ["-m", "pip", "install", "--quiet", "peer==1.2"]
    ]
    assert interpreter(package).parts[:-2] == (tmp_path / "peer").parts


def test_what_another_process_has_installed_meanwhile_is_not_made_again(
    installer: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire = FileLock.acquire

    def after_the_other(lock: FileLock) -> None:
        monkeypatch.setattr(FileLock, "acquire", acquire)
        install(Package("peer", "1.2"))
        acquire(lock)

    monkeypatch.setattr(FileLock, "acquire", after_the_other)
    install(Package("peer", "1.2"))
    assert len(installer.asked) == 1


def test_another_version_is_another_installation(installer: Installer) -> None:
    install(Package("peer", "1.2"))
    assert not is_ready(Package("peer", "1.3"))


def test_what_cannot_be_had_leaves_nothing_behind(installer: Installer, tmp_path: Path) -> None:
    installer.code = 1
    with pytest.raises(PeerError, match=r"peer==1\.2 cannot be installed: no such version"):
        install(Package("peer", "1.2"))
    assert [path.name for path in tmp_path.iterdir()] == ["peer.lock"]


def test_without_a_variable_they_stand_under_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CTXGC_LAB_PEERS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert home() == tmp_path / "out" / "peers"


def test_one_that_fails_does_not_stop_the_others(installer: Installer) -> None:
    installer.code = 1
    said: list[str] = []
    failed = install_all([], said.append)
    assert [line.partition(":")[0] for line in failed] == list(PACKAGES)
    assert said == [f"{line}\n" for line in failed]


def test_the_module_installs_what_it_is_told(
    installer: Installer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "kompact"]) == 0
    assert capsys.readouterr().err == f"{PACKAGES['kompact'].requirement}: ready\n"
    assert main(["install", "unheard-of"]) == 2
    assert main([]) == 2
