"""Plugins, through real distribution metadata on the import path."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ctxgc.config import GCConfig
from ctxgc.errors import ConfigError, PluginError
from ctxgc.strategies import (
    GCPlugin,
    PluginFailure,
    discover_gc_plugins,
    gc_from_inline,
    load_gc_from_file,
    load_gc_plugin,
)
from tests.requirements import requirement

PLUGIN = dedent("""
    class Plugin:
        name = "gc_custom"
        def initialize(self, config=None): self.options = config
        def shutdown(self): pass
        def should_collect(self, context_usage, config): return False, None
        def collect(self, history, context_usage, config, reason): return history, None

    def create_plugin():
        return Plugin()

    class Sour(Plugin):
        def initialize(self, config=None): raise KeyError("model")

    def no_plugin():
        return object()

    def explodes():
        raise RuntimeError("boom")

    not_callable = 3
""")

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a package with entry points on the import path."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def add(package: str, group: str = "ctxgc.plugins", **points: str) -> None:
        (tmp_path / f"{package}.py").write_text(PLUGIN, encoding="utf-8")
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = {value}" for name, value in points.items())
        (folder / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")

    return add


@requirement("S3.custom.create-plugin", "S3.custom.entry-point", "S3.discovery.load")
@pytest.mark.parametrize("group", ["ctxgc.plugins", "jaato.gc_plugins"])
def test_a_third_party_plugin_is_found_and_initialized(install: Install, group: str) -> None:
    install("my_package", group, gc_custom="my_package:create_plugin")
    plugin = load_gc_plugin("gc_custom", {"preserve_recent_turns": 10})
    assert isinstance(plugin, GCPlugin)
    assert (plugin.name, plugin.options) == ("gc_custom", {"preserve_recent_turns": 10})
    assert "gc_custom" in discover_gc_plugins()


def test_the_prefix_may_be_left_out_and_no_options_are_an_empty_dict(install: Install) -> None:
    install("my_package", gc_custom="my_package:create_plugin")
    assert load_gc_plugin("custom").options == {}  # type: ignore[attr-defined]


@requirement("S3.discovery.discover")
def test_a_broken_entry_point_is_listed_and_the_others_work(install: Install) -> None:
    install(
        "broken",
        gc_absent="broken:absent",
        gc_lost="no_such_module:x",
        gc_three="broken:not_callable",
    )
    install("my_package", gc_custom="my_package:create_plugin")
    table = discover_gc_plugins()
    assert callable(table["gc_custom"])
    assert [
        (failure.name, failure.package) for failure in table.failures if failure.package == "broken"
    ] == [
        ("gc_absent", "broken"),
        ("gc_lost", "broken"),
        ("gc_three", "broken"),
    ]
    with pytest.raises(PluginError, match=r'"gc_absent" cannot be imported: AttributeError'):
        load_gc_plugin("gc_absent")
    with pytest.raises(PluginError, match="ModuleNotFoundError"):
        load_gc_plugin("lost")
    with pytest.raises(PluginError, match="not callable"):
        load_gc_plugin("three")


def test_what_a_factory_returns_is_checked(install: Install) -> None:
    install("odd", gc_hollow="odd:no_plugin", gc_boom="odd:explodes", gc_sour="odd:Sour")
    with pytest.raises(PluginError, match=r'"gc_hollow" lacks name, initialize, shutdown'):
        load_gc_plugin("gc_hollow")
    with pytest.raises(PluginError, match=r'"gc_boom" cannot be made: RuntimeError: boom'):
        load_gc_plugin("gc_boom")
    with pytest.raises(PluginError, match=r"\"gc_sour\" cannot be initialized: KeyError: 'model'"):
        load_gc_plugin("gc_sour")


@pytest.mark.parametrize("name", [5, None])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="the plugin's name is"):
        load_gc_plugin(name)


def test_an_unknown_name_gets_the_nearest_known_one(install: Install) -> None:
    install("my_package", gc_custom="my_package:create_plugin")
    with pytest.raises(ConfigError, match=r'unknown GC plugin "gc_cutsom" .*"gc_custom"'):
        load_gc_plugin("gc_cutsom")


def test_two_packages_of_one_name_do_not_fight_silently(install: Install) -> None:
    install("aaa", gc_custom="aaa:create_plugin")
    install("bbb", gc_custom="bbb:create_plugin")
    table = discover_gc_plugins()
    assert (
        PluginFailure(name="gc_custom", package="bbb", error='"gc_custom" is taken by aaa')
        in table.failures
    )
    assert type(load_gc_plugin("gc_custom")).__module__ == "aaa"


def test_one_plugin_under_both_groups_is_no_clash(install: Install, tmp_path: Path) -> None:
    install("my_package", gc_custom="my_package:create_plugin")
    points = tmp_path / "my_package-1.0.dist-info" / "entry_points.txt"
    points.write_text(
        points.read_text() + "[jaato.gc_plugins]\ngc_custom = my_package:create_plugin\n"
    )
    assert [f for f in discover_gc_plugins().failures if f.name == "gc_custom"] == []


def test_the_allow_list_keeps_strangers_out(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("my_package", gc_custom="my_package:create_plugin")
    install("other", gc_other="other:create_plugin")
    assert "gc_other" not in discover_gc_plugins(allow=["gc_custom"])
    monkeypatch.setenv("CTXGC_PLUGINS_ALLOW", "my_package, nobody")
    assert load_gc_plugin("gc_custom").name == "gc_custom"
    with pytest.raises(ConfigError, match='"gc_other" is not on the allow list'):
        load_gc_plugin("gc_other")


def test_no_stranger_replaces_a_built_in(install: Install) -> None:
    install("evil", gc_truncate="evil:create_plugin")
    table = discover_gc_plugins()
    assert (
        PluginFailure(name="gc_truncate", package="evil", error='"gc_truncate" is taken by ctxgc')
        in table.failures
    )
    assert getattr(table.get("gc_truncate"), "__module__", "") != "evil"


@requirement("S3.file.absent")
def test_without_a_file_there_is_nothing_to_load(install: Install, tmp_path: Path) -> None:
    assert load_gc_from_file() is None
    assert load_gc_from_file(tmp_path / "nowhere.json") is None


@requirement("S3.file.default-path", "S3.file.returns-pair")
@pytest.mark.parametrize("folder", [".jaato", ".ctxgc"])
def test_a_file_gives_its_plugin_and_configuration(
    install: Install, tmp_path: Path, folder: str
) -> None:
    install("my_package", gc_custom="my_package:create_plugin")
    path = tmp_path / folder / "gc.json"
    path.parent.mkdir()
    options = {"model": "x"}
    path.write_text(json.dumps({"type": "custom", "max_turns": 4, "plugin_config": options}))
    loaded = load_gc_from_file()
    assert loaded is not None
    plugin, config = loaded
    assert (plugin.name, plugin.options) == ("gc_custom", options)  # type: ignore[attr-defined]
    assert config == GCConfig(max_turns=4, plugin_config=options)


def test_inline_configuration_wins_over_the_environment(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("my_package", gc_custom="my_package:create_plugin")
    monkeypatch.setenv("CTXGC_MAX_TURNS", "3")
    monkeypatch.setenv("CTXGC_BATCH", "6")
    loaded = gc_from_inline({"gc": {"type": "custom", "max_turns": 4}})
    assert loaded is not None
    assert loaded[1] == GCConfig(max_turns=4, batch=6, summarize_middle_turns=None)
    assert gc_from_inline({}) is None


@requirement("S3.discovery.built-ins")
def test_the_built_ins_are_found() -> None:
    assert {
        "gc_none",
        "gc_truncate",
        "gc_summarize",
        "gc_hybrid",
        "gc_budget",
        "gc_mark_sweep",
    } <= set(discover_gc_plugins())
