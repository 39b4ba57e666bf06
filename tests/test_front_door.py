"""The front door: what `import ctxgc` gives, and what it must not do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import ctxgc
from tests.requirements import requirement
from tools.requirement_scan import ROOT

HEAVY = {
    "anthropic",
    "asyncio",
    "click",
    "ctxgc.cli",
    "importlib.metadata",
    "mcp",
    "numpy",
    "openai",
    "psycopg",
    "pydantic",
    "rich",
    "scipy",
    "starlette",
    "tiktoken",
    "uvicorn",
}

# Runs in a fresh interpreter: records what the import does and prints it as JSON.
PROBE = """
import json, logging, os, sys, warnings

class Watched(dict):
    reads = []
    def _read(self, *key):
        self.reads.append(str(key[0]) if key else "all names")
    def __getitem__(self, key): self._read(key); return super().__getitem__(key)
    def __contains__(self, key): self._read(key); return super().__contains__(key)
    def __iter__(self): self._read(); return super().__iter__()
    def get(self, key, default=None): self._read(key); return super().get(key, default)
    def items(self): self._read(); return super().items()
    def keys(self): self._read(); return super().keys()
    def copy(self): self._read(); return super().copy()

acts = []
def audit(event, args):
    if event.startswith(("socket.", "subprocess.", "os.putenv", "os.mkdir", "shutil.")):
        acts.append(event)
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        acts.append(f"open {args[0]} for writing")

os.environ = Watched(os.environ)
filters = list(warnings.filters)
sys.addaudithook(audit)
import ctxgc
print(json.dumps({
    "modules": sorted(sys.modules),
    "environment": Watched.reads,
    "acts": acts,
    "handlers": [type(h).__name__ for h in logging.root.handlers],
    "levels": [logging.root.level, logging.getLogger("ctxgc").level],
    "own handlers": [
        type(h).__name__ for h in logging.getLogger("ctxgc").handlers
        if not isinstance(h, logging.NullHandler)
    ],
    "warnings changed": filters != list(warnings.filters),
}))
"""


def _probe(folder: Path = ROOT) -> dict[str, Any]:
    """Return what importing the `ctxgc` of this folder, or else the installed one, does."""
    command = [sys.executable, "-B", "-c", PROBE]
    done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8", cwd=folder)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_importing_does_nothing() -> None:
    found = _probe()
    assert HEAVY & set(found.pop("modules")) == set()
    assert found == {
        "environment": [],
        "acts": [],
        "handlers": [],
        "levels": [30, 0],
        "own handlers": [],
        "warnings changed": False,
    }


NOISY = """
import logging, os, warnings, asyncio
os.environ.get("CTXGC_STORE")
"HOME" in os.environ
logging.basicConfig(level=10)
logging.getLogger("ctxgc").addHandler(logging.StreamHandler())
warnings.simplefilter("ignore")
open("file", "w", encoding="utf-8").close()
"""


def test_the_probe_notices_a_noisy_import(tmp_path: Path) -> None:
    (tmp_path / "ctxgc").mkdir()
    (tmp_path / "ctxgc" / "__init__.py").write_text(NOISY, encoding="utf-8")
    found = _probe(tmp_path)
    assert HEAVY & set(found.pop("modules")) == {"asyncio"}
    assert {"CTXGC_STORE", "HOME"} <= set(found.pop("environment"))
    assert found == {
        "acts": ["open file for writing"],
        "handlers": ["StreamHandler"],
        "levels": [10, 0],
        "own handlers": ["StreamHandler"],
        "warnings changed": True,
    }


def test_all_is_exactly_what_is_exported() -> None:
    for name in ctxgc.__all__:
        assert getattr(ctxgc, name) is not None
    found = {
        name
        for name, value in vars(ctxgc).items()
        if not name.startswith("_") and name != "annotations" and not isinstance(value, ModuleType)
    }
    assert found | {"__version__"} == {*ctxgc.__all__, "__version__"}


def test_an_engine_user_finds_heap_options_state_and_counters_at_the_front_door() -> None:
    options = ctxgc.EngineOptions(context_limit=1000)
    heap = ctxgc.Heap(count=ctxgc.counter_for("gpt-4o").count)
    heap.add(ctxgc.ContextSegment(text="Traceback: out of memory", type="log"))
    state = ctxgc.GCState(heap=heap, now=datetime.now(UTC))
    plan = ctxgc.GCEngine(options).plan(state, free_tokens=1)
    assert (len(plan), plan.total_tokens_freed) == (1, 6)


def test_all_is_sorted_and_has_no_name_twice() -> None:
    assert list(ctxgc.__all__) == sorted(set(ctxgc.__all__), key=_order)


def _order(name: str) -> tuple[int, str]:
    """Return the order that the linter keeps: constants, then classes, then the rest."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_a_star_import_gives_all_names() -> None:
    namespace: dict[str, object] = {}
    exec("from ctxgc import *", namespace)  # the subject of the test
    assert set(ctxgc.__all__) <= namespace.keys()


def test_dir_lists_every_exported_name() -> None:
    assert set(ctxgc.__all__) <= set(dir(ctxgc))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ctxgc, "no_such_name")


def _core_dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[^\w-]", item)[0] for item in project["dependencies"]}


@requirement("S0.scope.light-core")
def test_the_core_depends_on_a_counter_and_a_schema_library_only() -> None:
    assert _core_dependencies() == {"msgspec", "tiktoken"}


@requirement(
    "S0.dependencies.no-vector-db", "S0.dependencies.no-embeddings", "S0.dependencies.no-sql"
)
def test_neither_vector_store_nor_embeddings_nor_sql_server_is_installed_by_the_core() -> None:
    installed = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    unwanted = [
        "faiss",
        "qdrant",
        "chromadb",
        "sentence-transformers",
        "torch",
        "transformers",
        "pymysql",
    ]
    assert [name for name in unwanted if re.search(rf"^{name}", installed, re.MULTILINE)] == []
    assert {"psycopg", "sqlalchemy", "asyncpg"} & _core_dependencies() == set()


FULL = """
from ctxgc import Session
session = Session(1_000, store="memory:")
session.append({"role": "user", "content": "one two three " * 260})
session.messages()
print(session.usage().zone)
"""


def test_a_program_without_logging_sees_no_warning_of_ours() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stderr == ""
    assert done.stdout.strip() in ("warning", "danger")
