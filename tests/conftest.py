"""What every test shares: Hypothesis profiles and a clean environment."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quick", deadline=None, max_examples=100)
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


def pytest_configure(config: pytest.Config) -> None:
    """Load the Hypothesis profile; a failing example prints its seed and how to replay it."""
    settings.load_profile(_profile())


def pytest_report_header() -> str:
    """Return the line that says which Hypothesis profile runs (pytest-randomly prints its seed)."""
    return f"hypothesis profile: {_profile()} (HYPOTHESIS_PROFILE=quick|ci|deep)"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the developer's own settings from every test."""
    for name in list(os.environ):
        if name.startswith(("CTXGC_", "JAATO_")):
            monkeypatch.delenv(name)
