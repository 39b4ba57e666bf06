"""The libraries that the lab measures: versions, settings, and an environment for each.

In COST a peer with a trigger of its own keeps its published defaults. In WINDOW, and if it has no
default, it gets the limit: it may use 80% of it, and if it takes a target, that is 60%.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.errors import PeerError
from ctxgc.files import FileLock
from ctxgc.lab.policies import RegimeKind

Settings = dict[str, Any]

START_SHARE = 0.8
TARGET_SHARE = 0.6


class Package(msgspec.Struct, frozen=True):
    """A package with the version that was measured."""

    name: str
    version: str
    env: dict[str, str] = {}

    @property
    def requirement(self) -> str:
        """The requirement for an installer."""
        return f"{self.name}=={self.version}"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One way to use one package: the worker that runs it, and its settings."""

    name: str
    package: Package
    worker: str
    choose: Callable[[RegimeKind, int], Settings]
    note: str = ""


_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1"}

_LANGCHAIN_CORE = Package("langchain-core", "1.7.2")
_LANGCHAIN = Package("langchain", "1.4.7")
_AGENT_FRAMEWORK = Package("agent-framework-core", "1.23.0")
_LITELLM = Package("litellm", "1.106.2", {**_OFFLINE, "LITELLM_LOCAL_MODEL_COST_MAP": "True"})
_HEADROOM = Package("headroom-ai", "0.42.0", {**_OFFLINE, "LITELLM_LOCAL_MODEL_COST_MAP": "True"})
_CONTEXTGC = Package("contextgc", "0.4.6")
_KOMPACT = Package("kompact", "0.4.0")
# It adds a system prompt of 21,000 tokens that it does not see; the runs of the lab have none.
_COZEMPIC = Package(
    "cozempic",
    "1.8.39",
    {
        "COZEMPIC_NO_GLOBAL_INIT": "1",
        "COZEMPIC_NO_AUTO_UPDATE": "1",
        "COZEMPIC_SYSTEM_OVERHEAD_TOKENS": "0",
    },
)


def _room(_: RegimeKind, limit: int) -> Settings:
    return {"max_tokens": int(START_SHARE * limit)}


def _room_and_target(_: RegimeKind, limit: int) -> Settings:
    return {"max_n": int(START_SHARE * limit), "compact_to": int(TARGET_SHARE * limit)}


def _clearing(regime: RegimeKind, limit: int) -> Settings:
    default = {"trigger": 100_000, "clear_at_least": 0, "keep": 3}
    return default if regime == "cost" else {**default, "trigger": int(START_SHARE * limit)}


def _litellm(regime: RegimeKind, limit: int) -> Settings:
    # In COST its own rule: 75% of what its table says the model takes.
    return {"model": "claude-sonnet-4-5"} if regime == "cost" else _room(regime, limit)


def _window(_: RegimeKind, limit: int) -> Settings:
    return {"context_window": limit}


def _model_limit(_: RegimeKind, limit: int) -> Settings:
    return {"model_limit": limit}


def _agent(_: RegimeKind, limit: int) -> Settings:
    return {"model_limit": limit, "mode": "agent"}


def _nothing(_: RegimeKind, __: int) -> Settings:
    return {}


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="langchain-trim",
            package=_LANGCHAIN_CORE,
            worker="run_langchain_trim",
            choose=_room,
            note="trim_messages as its guide for agents has it: strategy last, from a human message on",
        ),
        Peer(
            name="langchain-clear",
            package=_LANGCHAIN,
            worker="run_langchain_clear",
            choose=_clearing,
            note="ClearToolUsesEdit, applied to the whole history before each request",
        ),
        Peer(
            name="agent-framework",
            package=_AGENT_FRAMEWORK,
            worker="run_agent_framework",
            choose=_room_and_target,
            note="TruncationStrategy; it has no defaults",
        ),
        Peer(
            name="litellm-trim",
            package=_LITELLM,
            worker="run_litellm_trim",
            choose=_litellm,
            note="trim_messages; in COST with the limit that its table gives the model; where it must "
            "shorten a message without text, it gives up and returns all",
        ),
        Peer(
            name="headroom",
            package=_HEADROOM,
            worker="run_headroom",
            choose=_model_limit,
            note="compress() on the whole history before each request; its model cannot be loaded offline",
        ),
        Peer(
            name="headroom-agent",
            package=_HEADROOM,
            worker="run_headroom",
            choose=_agent,
            note="the same in the mode that it has for live agents, which removes nothing",
        ),
        Peer(
            name="contextgc",
            package=_CONTEXTGC,
            worker="run_contextgc",
            choose=_nothing,
            note="compile_messages with its schema for coding; it knows no limit",
        ),
        Peer(
            name="kompact",
            package=_KOMPACT,
            worker="run_kompact",
            choose=_nothing,
            note="the proxy's pipeline on its Anthropic route, one configuration per run; it knows no limit",
        ),
        Peer(
            name="cozempic",
            package=_COZEMPIC,
            worker="run_cozempic",
            choose=_window,
            note="what its guard does: prescription standard above 55% of the window, aggressive above 80%; "
            "without the tokens that it adds for a system prompt",
        ),
    )
}
"""Name in the table -> peer."""

PACKAGES: dict[str, Package] = {peer.package.name: peer.package for peer in PEERS.values()}
"""Name of a package -> package."""


# -- Environments: `out/peers/NAME` under the current folder, made once


_HOME_VARIABLE = "CTXGC_LAB_PEERS"
_DEFAULT_HOME = Path("out") / "peers"
PATIENCE_SECONDS = 600.0


def home() -> Path:
    """Return the folder of all environments."""
    return Path(os.environ.get(_HOME_VARIABLE) or _DEFAULT_HOME).absolute()


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
    """Return whether the environment of a package exists, with the right version."""
    mark = _mark(package)
    return mark.is_file() and mark.read_text(encoding="utf-8") == package.requirement


def install(package: Package) -> None:
    """Make the environment of a package, unless it exists or another process makes it.

    Raises:
        PeerError: the package cannot be installed; the incomplete environment is removed.
        StoreBusyError: another process took too long to make it.
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
    return next(
        (line for line in reversed(text.splitlines()) if line.strip()), "pip printed nothing"
    )
