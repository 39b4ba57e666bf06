"""`ctxgc stash export`, `import` and `migrate`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ctxgc import Session
from ctxgc.stores import open_store, session_digest
from tests.cli.stash_cases import KEY, STORE, make_session

Run = Callable[..., Result]


def digest(url: str, name: str = "work") -> str:
    store = open_store(url)
    try:
        return session_digest(store, name)
    finally:
        store.close()


def data(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", ["lines", "json"])
def test_a_session_goes_on_from_an_export(run: Run, project: Path, form: str) -> None:
    with make_session() as session:
        view = session.view()
    done = run("stash", "export", "out", "--no-mask", "--format", form)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("ok: 1 session, ")
    assert (project / "out").stat().st_mode & 0o777 == 0o600
    done = run("stash", "import", "out", "--store", "sqlite:new.db")
    assert done.stdout.startswith("ok: 1 session: ")
    assert digest("sqlite:new.db") == digest(STORE)
    with Session(store="sqlite:new.db", session_id="work") as again:
        assert again.view() == view


def test_exports_are_masked_unless_told_otherwise(run: Run, project: Path) -> None:
    with make_session() as session:
        view = session.view()
    done = run("stash", "export", "out", "--json")
    assert data(done)["masked"] is True
    assert data(done)["checkpoints_left"] == 1
    assert done.stderr.startswith("warning: 1 checkpoint left out")
    assert KEY not in (project / "out").read_text(encoding="utf-8")
    assert data(run("stash", "import", "out", "--store", "sqlite:b.db", "--json"))["masked"]
    with Session(store="sqlite:b.db", session_id="work") as shared:
        assert json.dumps(shared.view()) == json.dumps(view).replace(KEY, "[secret:github-token]")


def test_an_import_twice_is_an_import_once(run: Run) -> None:
    make_session().close()
    run("stash", "export", "out", "--no-mask")
    counts = [data(run("stash", "import", "out", "--store", "sqlite:b.db", "--json")) for _ in "ab"]
    assert counts[0]["added"] == counts[1]["present"] > 0
    assert counts[0]["present"] == counts[1]["added"] == counts[1]["kept"] == 0


def test_an_import_never_writes_over_another_text(run: Run) -> None:
    make_session().close()
    run("stash", "export", "out")
    before = digest(STORE)
    done = run("stash", "import", "out")
    assert done.exit_code == 1
    assert "session 'work' holds another text under 's-1' (next: " in done.stderr
    assert digest(STORE) == before
    assert data(run("stash", "import", "out", "--into", "masked", "--json"))["sessions"] == [
        "masked"
    ]
    assert digest(STORE) == before


def test_one_session_of_many(run: Run, project: Path) -> None:
    make_session().close()
    make_session(name="other").close()
    run("stash", "export", "one", "--session", "other", "--no-mask")
    assert b'"session_id":"work"' not in (project / "one").read_bytes()
    run("stash", "export", "two", "--no-mask")
    run("stash", "import", "two", "--session", "work", "--store", "sqlite:b.db")
    listed = data(run("stash", "list", "--store", "sqlite:b.db", "--json"))
    assert [each["session"] for each in listed] == ["work"]
    done = run("stash", "import", "two", "--session", "none")
    assert (done.exit_code, done.stderr) == (
        1, "error: two has no session 'none' (next: leave --session out)\n",
    )  # fmt: skip


def test_a_file_that_is_there_is_kept_unless_forced(run: Run, project: Path) -> None:
    make_session().close()
    (project / "out").write_text("mine", encoding="utf-8")
    done = run("stash", "export", "out")
    assert done.exit_code == 1
    assert done.stderr == "error: out already exists (next: add --force, or name another file)\n"
    assert (project / "out").read_text(encoding="utf-8") == "mine"
    assert run("stash", "export", "out", "--force", "--quiet").stdout == ""
    assert (project / "out").read_bytes().startswith(b'{"ctxgc_export":1')


def test_cut_changed_newer_and_missing_files_are_refused(run: Run, project: Path) -> None:
    make_session().close()
    run("stash", "export", "out", "--no-mask")
    whole = (project / "out").read_bytes()
    (project / "cut").write_bytes(whole[: len(whole) // 2])
    (project / "changed").write_bytes(whole.replace(b"function_1_1", b"function_1_2", 1))
    (project / "newer").write_bytes(whole.replace(b'"ctxgc_export":1', b'"ctxgc_export":7'))
    says = {
        "cut": "without its last line (next: export again",
        "changed": "its digest does not match",
        "newer": "version 7, this ctxgc reads 1 (next: import it with a newer ctxgc",
        "missing": "cannot read missing",
    }
    for name, said in says.items():
        done = run("stash", "import", name, "--store", "sqlite:new.db")
        assert (done.exit_code, done.stdout) == (1, "")
        assert said in done.stderr
    assert not (project / "new.db").exists()


def test_an_export_goes_through_a_pipe(run: Run, project: Path) -> None:
    make_session().close()

    def python(*arguments: str, stdin: bytes = b"") -> bytes:
        command = [sys.executable, "-m", "ctxgc.cli", "stash", *arguments]
        done = subprocess.run(command, cwd=project, input=stdin, capture_output=True, check=True)
        assert done.stderr == b""
        return done.stdout

    exported = python("export", "-", "--no-mask")
    python("import", "-", "--store", "sqlite:new.db", stdin=exported)
    assert digest("sqlite:new.db") == digest(STORE)


def test_a_migration_is_whole_verified_and_resumed(run: Run) -> None:
    make_session().close()
    make_session(name="other").close()
    first = data(run("stash", "migrate", STORE, "sqlite:b.db", "--session", "work", "--json"))
    assert (list(first["copied"]), first["digests"]) == (["work"], {"work": digest(STORE)})
    done = run("stash", "migrate", STORE, "sqlite:b.db")
    assert done.stdout.startswith("ok: 1 session copied, 1 present, all verified (")
    for name in ("work", "other"):
        assert digest("sqlite:b.db", name) == digest(STORE, name)
    assert run("stash", "migrate", STORE, "sqlite:b.db", "--quiet").output == ""


def test_a_migration_replaces_only_on_purpose(run: Run) -> None:
    make_session().close()
    run("stash", "migrate", STORE, "sqlite:b.db")
    with Session(store="sqlite:b.db", session_id="work") as session:
        session.append({"role": "user", "content": "Go on here."})
    done = run("stash", "migrate", STORE, "sqlite:b.db")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the target has another session 'work' (next: " in done.stderr
    assert run("stash", "migrate", STORE, "sqlite:b.db", "--replace").exit_code == 0
    assert digest("sqlite:b.db") == digest(STORE)


def test_a_store_cannot_be_migrated_to_itself(run: Run) -> None:
    make_session().close()
    done = run("stash", "migrate", STORE, STORE)
    assert (
        done.stderr == "error: FROM and TO are the same store (next: name two different stores)\n"
    )
