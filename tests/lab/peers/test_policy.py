"""A peer as a policy: one worker after another, and what the lab makes of its failures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxgc.economics import price_sheet
from ctxgc.errors import PeerError
from ctxgc.lab import PACKAGES, PEERS, POLICIES, is_ready, parse_regime, policy, replay_run
from ctxgc.lab.peers import policy as peers
from ctxgc.lab.peers.catalog import Package, Peer
from ctxgc.lab.peers.policy import PeerPolicy, WorkerPool
from tests.lab.builders import run_of, user
from tests.lab.long_runs import dialogue, task_of, views

SHEET = price_sheet("anthropic-5m")
SHARED = peers.WORKERS / "shared.py"

FAKE = f"""
import sys, os
sys.path.insert(0, {str(SHARED.parent)!r})
from shared import serve

def begin(settings):
    print("a library that talks", flush=True)
    def edit(history):
        if len(history) > settings["most"]:
            os._exit(7)
        first = {{**history[0], "content": str(os.getpid())}}
        return [first, *range(1, len(history))]
    return edit

serve(begin)
"""


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool()
    yield made
    made.close()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Peer:
    """A peer whose worker is in a folder of the test and runs in our own interpreter."""
    (tmp_path / "run_fake.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.setattr(peers, "WORKERS", tmp_path)
    monkeypatch.setattr(peers, "interpreter", lambda _: Path(sys.executable))
    package = Package("fake-package", "1.0")
    return Peer(
        name="fake",
        package=package,
        worker="run_fake",
        choose=lambda regime, limit: {"most": 100 if regime == "cost" else limit},
    )


def test_a_view_is_made_of_the_peers_messages_and_of_the_runs_own(
    fake: Peer, pool: WorkerPool
) -> None:
    run = dialogue(3)
    player = PeerPolicy(fake, pool).open(task_of(run))
    played = list(views(player, run))
    assert [view[1:] for _, view in played] == [history[1:] for history, _ in played]
    assert {view[0]["content"].isdigit() for _, view in played} == {True}
    assert (player.counts(), player.is_recallable(0)) == ({}, False)


def test_a_worker_plays_run_after_run_but_never_two_at_once(fake: Peer, pool: WorkerPool) -> None:
    run, made = dialogue(1), PeerPolicy(fake, pool)
    one, two = made.open(task_of(run)), made.open(task_of(run))
    first, second = (player.view(run.messages[:1])[0]["content"] for player in (one, two))
    assert first != second
    del one, two
    third = made.open(task_of(run)).view(run.messages[:1])[0]["content"]
    assert third in {first, second}


def test_a_crash_in_the_middle_is_a_row_that_says_so_and_the_next_run_is_played(
    fake: Peer, pool: WorkerPool
) -> None:
    made = PeerPolicy(fake, pool)
    failed = replay_run(made, dialogue(6), parse_regime("window:8"), SHEET)
    assert failed.error == "PeerError: ended with code 7 (its last line: a library that talks)"
    assert (failed.bill, failed.steps) == (0.0, 0)
    assert replay_run(made, dialogue(2), parse_regime("cost"), SHEET).error == ""


@pytest.mark.parametrize(
    ("answer", "reason"),
    [('{"no": 1}', "without a view"), ('{"view": [9]}', "answered 9"), ('{"view": ["x"]}', "'x'")],
)
def test_an_answer_that_is_no_view_is_an_error(
    fake: Peer, pool: WorkerPool, tmp_path: Path, answer: str, reason: str
) -> None:
    script = (
        f"input()\nprint('{{}}', flush=True)\ninput()\nprint({answer!r}, flush=True)\ninput()\n"
    )
    (tmp_path / "run_fake.py").write_text(script, encoding="utf-8")
    player = PeerPolicy(fake, pool).open(task_of(run_of(user("go"))))
    with pytest.raises(PeerError, match=reason):
        player.view([user("go")])


def test_a_peer_that_is_not_installed_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: WorkerPool
) -> None:
    monkeypatch.setenv("CTXGC_LAB_PEERS", str(tmp_path))
    with pytest.raises(PeerError) as caught:
        PeerPolicy(PEERS["kompact"], pool).open(task_of(dialogue(1)))
    assert str(caught.value) == (
        f"{PACKAGES['kompact'].requirement} is not installed (run `ctxgc lab peers install`)"
    )


def test_every_peer_is_in_the_registry_and_says_its_version_and_settings() -> None:
    listed = {n for n, where in POLICIES.items() if where.startswith("ctxgc.lab.peers.policy:")}
    assert listed == set(PEERS)
    for name in listed:
        made = policy(name)
        assert (made.name, made.kind) == (name, "peer")
        assert made.version == PEERS[name].package.requirement.replace("==", " ")
        assert made.settings["note"]
        assert (peers.WORKERS / f"{PEERS[name].worker}.py").is_file()


@pytest.mark.parametrize("name", sorted(PEERS))
@pytest.mark.parametrize("regime", ["cost", "window:50%"])
def test_a_real_peer_plays_a_run(name: str, regime: str) -> None:
    package = PEERS[name].package
    if not is_ready(package):
        pytest.skip(f"{package.requirement} is not installed: `ctxgc lab peers install`")
    found = replay_run(policy(name), dialogue(12), parse_regime(regime), SHEET)
    assert (found.error, found.requests) == ("", 13)
    assert found.bill > 0
