"""Evidence: what counts as a path, a command, a number, a decision, an error and a constraint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.lab.evidence import EVIDENCE_KINDS, evidence_in, shown_in
from ctxgc.lab.facts import texts_of
from tests.lab.builders import Json, answer, runs, user

SYSTEM = {"role": "system", "content": "You must answer in French. Be kind."}
RESULT = {"role": "tool", "tool_call_id": "c"}

WORDS = st.sampled_from(
    ["src/app/main.py", "8080", "0.731", "120ms", "must", "never", "decided to use", "instead of",
     "ValueError: bad", "error: no such file", "FAIL: test_x", "  12→", "- ", "> ", "1. ", "$ ",
     "\n", ". ", "? ", '"', "**", "the gardener", "\t", "<system-reminder>", "</system-reminder>"]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=60)


def made(role: str, text: str, command: object = None) -> Json:
    message = {"role": role, "content": text}
    if command is not None:
        message["tool_calls"] = answer("x", command=command)["tool_calls"]
    return message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (user("Do not touch src/db/schema.sql. It is fine."),
         {("path", "src/db/schema.sql"), ("constraint", "Do not touch src/db/schema.sql")}),
        (user("<system-reminder>Never do it.</system-reminder>Go."), set()),
        (SYSTEM, {("constraint", "You must answer in French")}),
        (made("assistant", "- I decided to use port 8080, rather than 80. Next."),
         {("decision", "I decided to use port 8080, rather than 80"), ("number", "8080")}),
        (answer("", command="\n  make   test\nmake lint", limit=12),
         {("command", "make test")}),
        (answer("", commands=[{"keystrokes": "ls -la /var/log", "wait": 1.0}]),
         {("command", "ls -la /var/log"), ("path", "/var/log")}),
        ({**RESULT, "content": "ok\nmain.go:12: error: no such name\n   7→\treturn Error: one\ndone 99"},
         {("error", "main.go:12: error: no such name")}),
        ({**RESULT, "content": "took 120ms, p99 0.731 s, 73%, v1.24.3, id a812b"},
         {("number", "120"), ("number", "0.731")}),
        ({**RESULT, "content": "811:\tport = 8080\n  812-next\n12:30:15 began\n  814→\tend"},
         {("number", "8080"), ("number", "12:30:15")}),
        ({**RESULT, "content": "from errors import AmbiguityError, OtherError"}, set()),
    ],
)  # fmt: skip
def test_each_kind_is_what_people_call_it(message: Json, expected: set[tuple[str, str]]) -> None:
    assert evidence_in(message) == expected


@pytest.mark.parametrize(
    "text",
    ["- Never touch the schema.", '> "Never touch the schema"', "So. Never   touch the schema! Yes.",
     "  41→Never touch the schema", "1. **Never touch the schema**"],
)  # fmt: skip
def test_a_sentence_is_known_again_in_a_list_a_quotation_and_a_file_view(text: str) -> None:
    (found,) = evidence_in(user("Never touch the schema."))
    assert found == ("constraint", "Never touch the schema")
    assert "Never touch the schema" in shown_in([text])


def test_a_number_is_not_found_inside_another_and_whatever_its_unit() -> None:
    assert "812" in shown_in(["812 ms"]) & shown_in(["(812ms)"]) & shown_in(["812%"])
    assert "812" not in shown_in(["18123", "a812", "812/3", "0.8123", "/v/812"])


@given(st.sampled_from(["user", "assistant", "tool", "system"]), TEXTS, st.none() | TEXTS)
def test_a_message_shows_all_evidence_that_it_brings(
    role: str, text: str, command: str | None
) -> None:
    message = made(role, text, command)
    found = evidence_in(message)
    assert {said for _, said in found} <= shown_in(texts_of(message))
    assert {kind for kind, _ in found} <= set(EVIDENCE_KINDS)


@given(runs())
def test_what_a_text_shows_is_still_shown_in_a_longer_one(run: object) -> None:
    texts = [text for message in run.messages for text in texts_of(message)]  # type: ignore[attr-defined]
    assert frozenset().union(*(shown_in([t]) for t in texts)) == shown_in(texts)
    assert shown_in(texts) <= shown_in(["\n".join(["[cut]", *texts, "[cut]"])])
