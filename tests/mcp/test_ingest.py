"""Segments and messages come in, each once."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.config import GCConfig
from ctxgc.errors import CtxgcError, InputError, MessageError, SegmentError
from ctxgc.mcp import NewSegment, ingest
from ctxgc.session import Session
from ctxgc.stores import Store
from ctxgc.testing import check_history
from tests.fakes import WordCounter
from tests.mcp.contexts import QUIET, everything, filled, log, make, opened, put

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "read it"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "src/a.py"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "def parse(): ..."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "read it"},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "src/a.py"}}
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "def parse(): ..."}],
    },
]
RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "read it"},
    {
        "type": "function_call",
        "call_id": "c1",
        "name": "read_file",
        "arguments": '{"path": "src/a.py"}',
    },
    {"type": "function_call_output", "call_id": "c1", "output": "def parse(): ..."},
]


def test_only_the_text_is_needed() -> None:
    service = make()
    done = service.ingest([NewSegment(text="remember this")], ())
    (segment_id,) = done["segment_ids"]
    assert done["ingested"] == 1
    assert service.segment(segment_id)["type"] == "note"


def test_the_type_follows_from_what_is_said() -> None:
    service = make()
    ids = put(
        service,
        NewSegment(text="a", role="user"),
        NewSegment(text="b", file_path="x.py"),
        NewSegment(text="c", type="decision"),
    )
    assert [service.segment(i)["type"] for i in ids] == ["message", "code", "decision"]


def test_the_same_batch_three_times_is_there_once() -> None:
    store = opened()
    service = make(store)
    batch = [log(n) for n in range(5)]
    service.ingest(batch, OPENAI)
    before = everything(store), store.revision("mcp")
    for _ in range(2):
        done = service.ingest(batch, OPENAI)
        assert (done["ingested"], done["already_known"]) == (0, 9)
    assert (everything(store), store.revision("mcp")) == before


@pytest.mark.parametrize("messages", [OPENAI, ANTHROPIC, RESPONSES])
def test_messages_of_every_format_become_bonded_segments(messages: list[dict[str, Any]]) -> None:
    service = make()
    ids = service.ingest((), messages)["segment_ids"]
    result = service.segment(ids[-1])
    assert result["text"] == "def parse(): ..."
    assert (result["type"], result["file_path"]) == ("code", "src/a.py")
    assert result["origin"]["trust"] == "tool"


def test_a_result_finds_its_call_in_an_earlier_batch_and_after_a_restart() -> None:
    store = opened()
    make(store).ingest((), ANTHROPIC[:2])
    service = make(store)
    ids = service.ingest((), ANTHROPIC[2:])["segment_ids"]
    assert service.segment(ids[0])["file_path"] == "src/a.py"
    filled(service, 20)
    assert len(service.prune([ids[0]])["stashed"]) == 2


def test_two_equal_messages_of_one_history_are_two() -> None:
    service = make()
    said = {"role": "user", "content": "yes"}
    assert service.ingest((), [said, {"role": "assistant", "content": "ok"}, said])["ingested"] == 3


def test_an_image_is_kept_as_its_own_json() -> None:
    service = make()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    (only,) = service.ingest((), [{"role": "user", "content": [image]}])["segment_ids"]
    assert "AAAA" in service.segment(only)["text"]


def test_references_may_be_names_of_the_same_batch() -> None:
    service = make()
    first, second = put(
        service, log(1, name="b", references=("a",)), log(2, name="a", references=("b",))
    )
    assert service.segment(first)["references"] == [second]
    assert service.segment(second)["references"] == [first]


@pytest.mark.parametrize(
    ("segments", "messages", "kind"),
    [
        ([], [], InputError),
        ([NewSegment(text="  ")], [], SegmentError),
        ([log(1), NewSegment(text="x", type="poem")], [], SegmentError),
        ([NewSegment(text="x", line_range=(9, 3))], [], SegmentError),
        ([NewSegment(text="x", references=("nobody",))], [], CtxgcError),
        ([log(1)], [{"role": "user"}, {"nonsense": 1}], MessageError),
        ([NewSegment(text="x" * (ingest.MOST_TEXT + 1))], [], InputError),
    ],
)
def test_a_wrong_batch_changes_nothing(
    segments: list[NewSegment], messages: list[dict[str, Any]], kind: type[CtxgcError]
) -> None:
    store = opened()
    service = make(store)
    filled(service, 5)
    before = everything(store)
    with pytest.raises(kind):
        service.ingest(segments, messages)
    assert everything(store) == before
    assert service.usage()["segments"]["working"]["segments"] == 5


def test_two_texts_never_share_an_id() -> None:
    service = make()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "segment_id_for", lambda _: "seg-1")
        put(service, log(1))
        # The second finds its id taken and is told from the first by nobody: it is not let in.
        assert service.ingest([log(2)], ())["ingested"] == 0
    assert service.segment("seg-1")["text"] == log(1).text


def test_a_context_has_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MOST_SEGMENTS", 10)
    service = make()
    put(service, *[log(n) for n in range(10)])
    with pytest.raises(InputError, match="at most 10 segments"):
        put(service, log(11))


def test_a_likely_secret_is_told() -> None:
    service = make()
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3gH5"
    done = service.ingest([NewSegment(text=f"token = {key}")], ())
    assert "seems to hold a secret" in done["warnings"][0]
    assert key not in done["warnings"][0]


def test_above_the_soft_limit_a_small_step_follows_and_at_the_hard_one_a_full_collection() -> None:
    service = make(limit=1_000, config=GCConfig.from_dict({}))
    for start in range(0, 60, 10):
        service.ingest([log(n) for n in range(start, start + 10)], ())
    step = service.ingest([log(n) for n in range(60, 75)], ())
    assert step["collected"]["trigger"] == "soft limit"
    assert 0 < len(step["collected"]["stashed"]) <= 20
    full = service.ingest([log(n) for n in range(100, 160)], ())
    assert full["collected"]["trigger"] == "hard limit"
    assert full["usage"]["after"] <= 600


def test_entering_a_fuller_zone_is_told_once() -> None:
    service = make(limit=1_000)
    assert "alert" not in service.ingest([log(n) for n in range(60)], ())
    told = service.ingest([log(n) for n in range(60, 72)], ())
    assert told["alert"]["level"] == "WARNING"
    assert told["usage"]["zone"] == "warning"
    assert told["next"] == "context_gc_analyze()"
    assert "alert" not in service.ingest([log(73)], ())
    assert service.ingest([log(n) for n in range(80, 95)], ())["alert"]["level"] == "DANGER"


def test_a_newer_version_of_a_file_supersedes_the_older_ones_and_stays() -> None:
    service = make(limit=100_000, config=QUIET.replace(recent_messages=0, recent_files=0))
    versions = [
        NewSegment(
            text=f"version{n} " + " ".join(f"def fn_{n % 5}_{k}" for k in range(20)),
            file_path=f"src/f{n % 5}.py",
            name=f"v{n}",
        )
        for n in range(40)
    ]
    put(service, *versions)
    plan = service.analyze(100, target_tokens=service.usage()["usage"]["tokens"] // 8)
    left = [candidate["name"] for candidate in plan["candidates"]]
    assert sorted(left) == sorted(f"v{n}" for n in range(35))
    assert all("superseded (read again)" in c["reason"] for c in plan["candidates"])


def test_other_lines_of_a_file_are_not_superseded() -> None:
    service = make(config=QUIET.replace(recent_messages=0, recent_files=0))
    put(
        service,
        NewSegment(text="def one(): ...", file_path="a.py", line_range=(1, 9), name="one"),
        NewSegment(text="def two(): ...", file_path="a.py", line_range=(10, 19), name="two"),
        NewSegment(text="a.py was hard to read", type="note", file_path="a.py", name="note"),
        NewSegment(text="def two(): return 2", file_path="a.py", line_range=(10, 30), name="new"),
    )
    reasons = {c["name"]: c["reason"] for c in service.analyze(10, target_tokens=0)["candidates"]}
    assert [name for name, reason in reasons.items() if "superseded" in reason] == ["two"]


def _view(store: Store) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the format of a stored session and what it would send."""
    session = Session(store=store, session_id="mcp", counter=WordCounter())
    return session.inspect().view.format, session.messages()


def test_plain_text_after_a_restart_leaves_the_format_alone_when_all_calls_left() -> None:
    store = opened()
    service = make(store)
    service.ingest([], [*ANTHROPIC, {"role": "assistant", "content": "read"}])
    call = service.segments(9, 0)["segments"][1]["segment_id"]
    assert len(service.prune([call])["stashed"]) == 2
    again = make(store)
    again.ingest([], [{"role": "user", "content": "and now?"}])
    again.recall(call)
    form, messages = _view(store)
    assert form == "anthropic"
    assert messages == [
        *ANTHROPIC,
        {"role": "assistant", "content": "read"},
        {"role": "user", "content": "and now?"},
    ]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_note_comes_before_reasoning_that_waits_for_its_call(role: str) -> None:
    store = opened()
    service = make(store)
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    service.ingest([], [RESPONSES[0], reasoning])
    service.ingest([NewSegment(text="a note", role=role)], [])
    service.ingest([], RESPONSES[1:])
    form, messages = _view(store)
    assert form == "responses"
    assert [messages[0], *messages[2:]] == [RESPONSES[0], reasoning, *RESPONSES[1:]]
    assert messages[1]["content"][0]["text"] == "a note"
    assert check_history(messages, "responses") == []


@pytest.mark.parametrize("as_message", [False, True])
def test_words_of_the_assistant_that_open_a_session_become_the_users(as_message: bool) -> None:
    store = opened()
    service = make(store)
    if as_message:
        service.ingest([], [{"role": "assistant", "content": "I will look"}])
    else:
        service.ingest([NewSegment(text="I will look", role="assistant")], [])
    service.ingest([NewSegment(text="It is there", role="assistant")], [])
    service.ingest([], ANTHROPIC)
    form, messages = _view(store)
    assert form == "anthropic"
    assert [m["role"] for m in messages[:2]] == ["user", "assistant"]
    assert messages[2:] == ANTHROPIC
    assert check_history(messages, "anthropic") == []


REFUSING = GCConfig(auto_trigger=False, secrets="refuse")
KEY = "ghp_" + "Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4"


def test_a_message_with_a_key_is_refused_with_all_that_came_with_it() -> None:
    service = make(config=REFUSING)
    said = {"role": "user", "content": f"the key is {KEY}"}
    with pytest.raises(MessageError, match="looks like a key of the kind 'github-token'") as error:
        service.ingest([NewSegment(text="a note")], [OPENAI[0], said])
    assert KEY not in str(error.value)
    assert service.segments(9, 0)["segments"] == []


def test_a_summary_with_a_key_is_refused() -> None:
    service = make(config=REFUSING)
    ids = put(service, log(0, 40), log(1, 40), log(2, 40))
    before = service.segments(9, 0)
    draft = service.draft(ids[:2], None)
    summary = service.summarise(draft, f"use {KEY}")
    with pytest.raises(MessageError, match="looks like a key of the kind 'github-token'"):
        service.compress(draft, summary)
    assert service.segments(9, 0) == before


def test_a_guessed_format_is_mended_in_what_was_edited_and_what_an_undo_shows() -> None:
    store = opened()
    service = make(store)
    ids = put(service, log(0, 40), log(1, 40), log(2, 40))
    for segment_id in ids[:2]:
        draft = service.draft([segment_id], None)
        service.compress(draft, service.summarise(draft, "in short"))
    service.ingest([], ANTHROPIC)
    session = Session(store=store, session_id="mcp", counter=WordCounter())
    assert {message.format for message in session.history} == {"anthropic"}
    shown = [message.text() for message in session.history][:3]
    session.undo()
    assert {message.format for message in session.history} == {"anthropic"}
    undone = [message.text() for message in session.history][:3]
    assert [now == before for now, before in zip(undone, shown, strict=True)] == [True, False, True]
    session.undo()
    assert {message.format for message in session.history} == {"anthropic"}
    assert check_history(session.messages(), "anthropic") == []
