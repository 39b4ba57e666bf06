"""The main story of the dashboard: Claude Code works through `ctxgc serve`, a browser looks at it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tools import browser
from tools.real_agents import acts
from tools.real_agents.claude_code import ClaudeCode

if TYPE_CHECKING:
    from playwright.sync_api import Page

STEPS = 24
ROWS = 300
_PATIENCE = 120_000
_WINDOW = 40_000
_SERVED = re.compile(r"ctxgc serves (\S+)")


class ServedClaude(ClaudeCode):
    """Claude Code that speaks to a proxy which is there already."""

    proxy: str | None = None

    def environment(self) -> dict[str, str]:
        """Return where the proxy is, once it is there."""
        there = {} if self.proxy is None else {"ANTHROPIC_BASE_URL": self.proxy}
        return {**super().environment(), **there}


def looked_at(stage: ServedClaude) -> str:
    """A session appears while it goes on, tells what left and why, and gets an output back."""
    stage.script.extend(
        stage.shell(f"sleep 0.2; seq -f 'row %.0f of the table' {n} {n + ROWS - 1}")
        for n in range(0, STEPS * ROWS, ROWS)
    )
    with _serving(stage), browser.opened() as started, ThreadPoolExecutor(1) as pool:
        page = started.new_page()
        page.set_default_timeout(_PATIENCE)
        page.goto(f"{stage.proxy}/dashboard/?token={_token(stage)}")
        page.get_by_text("No session is here yet").wait_for()
        working = pool.submit(stage.say, acts.TASK)
        page.locator(".sessions tr", has_text="proxy").locator("a").first.click()
        live = _requests(page)
        working.result()
        page.wait_for_selector(f".slider:not([max='{live}'])", state="attached")
        seen = _past(page)
    return f"seen live from request {live} on; {seen}"


def _requests(page: Page) -> int:
    return int(page.locator(".slider").get_attribute("max") or 0)


def _past(page: Page) -> str:
    """What left is told with its reason, and an output that is gone comes back."""
    page.get_by_role("button", name="The collection before").click()
    line, told = page.locator(".request-line").inner_text(), page.locator(".changes").inner_text()
    acts.must("left or shrank" in told, f"the page does not say what left: {told[:300]}")
    page.get_by_role("slider", name="Request").press("Home")
    acts.must(page.locator(".request-line").inner_text() != line, "the slider does not move")
    page.get_by_role("slider", name="Request").press("End")
    page.get_by_label("Where").select_option("what has left it")
    page.get_by_label("Order", exact=True).select_option("tokens")
    page.locator(".list .line").first.click()
    page.get_by_role("button", name="Bring it back").click()
    said = page.locator(".toast").first
    said.wait_for()
    acts.must("is back in the window" in said.inner_text(), said.inner_text())
    return f"{told.splitlines()[0]}; {said.locator('p').inner_text()}"


def _token(stage: ServedClaude) -> str:
    return next(stage.home.rglob("dashboard.token")).read_text(encoding="utf-8").split()[-1]


@contextmanager
def _serving(stage: ServedClaude) -> Iterator[None]:
    """Run `ctxgc serve` between the agent and the model."""
    command: list[Any] = [sys.executable, "-m", "ctxgc.cli", "serve", "--port", "0"]
    to = f"anthropic={stage.server.base_url}"
    command += ["--upstream", to, "--context-limit", str(_WINDOW)]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, env=stage.environment(), stderr=subprocess.PIPE, encoding="utf-8"
    ) as server:
        first = server.stderr.readline() if server.stderr else ""
        found = _SERVED.search(first)
        acts.must(found, f"ctxgc serve said {first!r}")
        stage.proxy = found[1] if found else None
        try:
            yield
        finally:
            server.terminate()
            server.communicate(timeout=60)
