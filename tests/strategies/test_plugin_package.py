"""Plugins in fresh processes: one that pip installed, and ours where ctxgc itself is not installed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest

from ctxgc.strategies import BUILT_IN
from tests.requirements import requirement
from tools.requirement_scan import ROOT

# S3's sample, with the parts that it leaves open filled in.
PLUGIN = dedent("""
    from ctxgc import GCConfig, GCPlugin, GCResult, GCTriggerReason

    class MyCustomGCPlugin:
        @property
        def name(self) -> str:
            return "gc_custom"

        def initialize(self, config=None):
            self._config = config or {}

        def shutdown(self):
            pass

        def should_collect(self, context_usage, config):
            percent = context_usage.get('percent_used', 0)
            if percent >= config.threshold_percent:
                return True, GCTriggerReason.THRESHOLD
            return False, None

        def collect(self, history, context_usage, config, reason):
            keep = self._config["keep"]
            new_history = [history[0], *history[-keep:]]
            result = GCResult(
                success=True,
                items_collected=len(history) - len(new_history),
                tokens_before=0,
                tokens_after=0,
                plugin_name=self.name,
                trigger_reason=reason
            )
            return new_history, result

    def create_plugin():
        return MyCustomGCPlugin()
""")

PROGRAM = dedent("""
    import json
    from ctxgc import GCConfig, Session, discover_gc_plugins

    config = GCConfig(plugin_config={"keep": 4}, threshold_percent=50.0, target_percent=40.0)
    with Session(600, plugin="gc_custom", config=config, store="memory:") as session:
        for number in range(10):
            session.append({"role": "user", "content": f"request {number} " + "word " * 20})
            session.append({"role": "assistant", "content": f"answer {number} " + "word " * 20})
        view = session.messages()
        result = session.gc_history[0]
        print(json.dumps({
            "found": "gc_custom" in discover_gc_plugins(),
            "view": [message["content"].split(" word")[0] for message in view],
            "result": [result.plugin_name, result.items_collected, result.trigger_reason],
            "agrees": result.tokens_after == session.budget.total_tokens(),
        }))
""")

BARE = dedent("""
    import json
    from importlib.metadata import distributions
    from ctxgc import Session, discover_gc_plugins

    left = {}
    for name in sorted(discover_gc_plugins()):
        with Session(600, plugin=name, store="memory:") as session:
            for number in range(10):
                session.append({"role": "user", "content": f"request {number} " + "word " * 20})
                session.append({"role": "assistant", "content": f"answer {number} " + "word " * 20})
            session.collect(300)
            left[name] = session.usage().total_tokens
    print(json.dumps({
        "installed": [each.name for each in distributions() if each.name == "ctxgc"],
        "left": left,
    }))
""")


def write_wheel(folder: Path, group: str) -> Path:
    """Write a wheel of one module and one entry point, and return its path."""
    files = {
        "my_package.py": PLUGIN,
        "my_package-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n",
        "my_package-1.0.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: ctxgc tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        "my_package-1.0.dist-info/entry_points.txt": (
            f"[{group}]\ngc_custom = my_package:create_plugin\n"
        ),
    }
    record = "".join(f"{name},{_digest(text)},{len(text)}\n" for name, text in files.items())
    files["my_package-1.0.dist-info/RECORD"] = record + "my_package-1.0.dist-info/RECORD,,\n"
    path = folder / "my_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def run(*arguments: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@requirement(
    "S3.custom.entry-point",
    "S3.custom.create-plugin",
    "S3.custom.collect-four-arguments",
    "S3.discovery.load",
)
@pytest.mark.parametrize("group", ["ctxgc.plugins", "jaato.gc_plugins"])
def test_a_package_with_an_entry_point_collects_in_a_session(tmp_path: Path, group: str) -> None:
    wheel, site = write_wheel(tmp_path, group), tmp_path / "site"
    run("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check",
        "--target", str(site), str(wheel))  # fmt: skip
    said = json.loads(run("-c", PROGRAM, PYTHONPATH=str(site)))
    assert said == {
        "found": True,
        "view": ["request 0", "request 8", "answer 8", "request 9", "answer 9"],
        "result": ["gc_custom", 15, "threshold"],
        "agrees": True,
    }


def test_the_built_in_strategies_work_in_a_source_tree_that_is_not_installed(
    tmp_path: Path,
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.startswith(("ctxgc", "_ctxgc")):
            (packages / each.name).symlink_to(each)
    path = os.pathsep.join([str(ROOT / "src"), str(packages)])
    said = json.loads(run("-S", "-c", BARE, PYTHONPATH=path))  # without `site` no .pth file is read
    assert said["installed"] == []
    none = said["left"].pop("gc_none")
    assert set(BUILT_IN) - {"gc_none"} == {
        name for name, tokens in said["left"].items() if tokens < none
    }
