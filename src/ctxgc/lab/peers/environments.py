"""An environment for each peer, made once: `out/peers/NAME` under the current folder.

Peers are never dependencies of ctxgc. Set `CTXGC_LAB_PEERS` to keep them elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from ctxgc.errors import PeerError
from ctxgc.lab.peers.catalog import PACKAGES, Package
from ctxgc.stores.files import FileLock

HOME_VARIABLE = "CTXGC_LAB_PEERS"
DEFAULT_HOME = Path("out") / "peers"
PATIENCE_SECONDS = 600.0


def home() -> Path:
    """Return the folder of all environments."""
    return Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME).absolute()


def interpreter(package: Package) -> Path:
    """Return the interpreter that has this package, in this version.

    Raises:
        PeerError: it is not installed.
    """
    if not is_ready(package):
        raise PeerError(
            f"{package.requirement} is not installed", hint="run `ctxgc lab peers install`"
        )
    return _python(package)


def is_ready(package: Package) -> bool:
    """Tell whether the environment of a package stands, with the version that is asked for."""
    mark = _mark(package)
    return mark.is_file() and mark.read_text(encoding="utf-8") == package.requirement


def install(package: Package) -> None:
    """Make the environment of a package, unless it stands already or another process makes it.

    Raises:
        PeerError: the package cannot be had here; what was begun is removed.
        StoreBusyError: another process is not done with it in time.
    """
    with FileLock(home() / f"{package.name}.lock", PATIENCE_SECONDS):
        if not is_ready(package):
            _make(package)


def install_all(names: Sequence[str], tell: Callable[[str], object]) -> list[str]:
    """Install these packages, or all; return what failed, each with its reason."""
    failed = []
    for name in names or list(PACKAGES):
        try:
            install(PACKAGES[name])
            tell(f"{PACKAGES[name].requirement}: ready\n")
        except PeerError as error:
            failed.append(f"{name}: {error.message}")
            tell(f"{failed[-1]}\n")
    return failed


def _make(package: Package) -> None:
    folder = home() / package.name
    venv.create(folder, with_pip=True, clear=True)
    command = [str(_python(package)), "-m", "pip", "install", "--quiet", package.requirement]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)  # noqa: S603 - our own
    if done.returncode:
        shutil.rmtree(folder)
        raise PeerError(f"{package.requirement} cannot be installed: {_last_line(done.stderr)}")
    _mark(package).write_text(package.requirement, encoding="utf-8")


def _python(package: Package) -> Path:
    return home() / package.name / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def _mark(package: Package) -> Path:
    return home() / package.name / ".ready"


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "pip says nothing")
