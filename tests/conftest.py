"""What every test shares: Hypothesis profiles and a clean environment."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.stores.server import fresh_database, running_server

HIDDEN = {
    *("lines", "no_color", "force_color", "http_proxy", "https_proxy", "all_proxy"),
    *("claude_config_dir", "codex_home", "xdg_state_home", "xdg_config_home"),
}

settings.register_profile("quick", deadline=None, max_examples=100, print_blob=True)
settings.register_profile("ci", parent=settings.get_profile("quick"), derandomize=True)
settings.register_profile(
    "deep",
    parent=settings.get_profile("quick"),
    max_examples=5_000,
    suppress_health_check=[HealthCheck.too_slow],
)


def _profile() -> str:
    """Return the profile that was asked for: by name, else `ci` on a CI machine, else `quick`."""
    return os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "quick")


def pytest_configure() -> None:
    """Load the Hypothesis profile."""
    settings.load_profile(_profile())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what it takes to run the same tests in the same order on the same examples."""
    seed = config.getoption("randomly_seed", default="off")
    terminalreporter.write_line(
        f"to repeat: HYPOTHESIS_PROFILE={_profile()} pytest --randomly-seed={seed}"
    )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a Postgres server that the tests of one process share."""
    with running_server() as url:
        yield url


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    """The address of an empty database on it."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def _empty_home(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, _empty_home: str) -> None:
    """Hide the developer's own settings, home, agents, terminal and proxy from every test."""
    for name in list(os.environ):
        if name.startswith(("CTXGC_", "JAATO_")) or name.lower() in HIDDEN:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", _empty_home)
    monkeypatch.setenv("COLUMNS", "80")
