"""The summarizer without a model: verbatim lines, in order, within its limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import ConfigError
from ctxgc.summarizers import ExtractiveSummarizer
from ctxgc.summarizers.extractive import weighted_lines


class Words:
    """Counts words."""

    def count(self, text: str) -> int:
        return len(text.split())


CONVERSATION = """user: Please fix the login page, and never touch the billing code.
It must work offline.
assistant: Sure, let me have a look around first.
Okay.
tool: listing
src/app/login.py
the weather is nice today and so on and on and on and on
the weather is nice today and so on and on and on and on
$ pytest tests/test_login.py
E   ValueError: token expired
assistant: I decided to use refresh tokens because sessions lapse.
Nothing else to say about that here really, nothing at all, as far as I can see.
3 passed"""


def test_what_matters_stays_and_chatter_goes() -> None:
    summary = ExtractiveSummarizer(max_tokens=60, counter=Words())(CONVERSATION)
    assert summary.split("\n") == [
        "user: Please fix the login page, and never touch the billing code.",
        "It must work offline.",
        "src/app/login.py",
        "$ pytest tests/test_login.py",
        "E   ValueError: token expired",
        "assistant: I decided to use refresh tokens because sessions lapse.",
        "3 passed",
    ]


def test_the_user_comes_first_when_little_fits() -> None:
    summary = ExtractiveSummarizer(max_tokens=30, counter=Words())(CONVERSATION)
    assert summary.startswith("user: Please fix the login page")


def test_one_long_paste_does_not_take_it_all() -> None:
    paste = "\n".join(f"pasted line number {number}" for number in range(500))
    conversation = f"user: look\n{paste}\nassistant: I decided to wait.\nE   KeyError: 'x'"
    summary = ExtractiveSummarizer(max_tokens=100, counter=Words())(conversation)
    assert summary.endswith("assistant: I decided to wait.\nE   KeyError: 'x'")
    assert Words().count(summary) > 60


lines = st.lists(
    st.one_of(
        st.text(max_size=60),
        st.sampled_from(
            ["user: do it", "error: x", "src/a.py:3", "$ ls -la", "we decided", "", " "]
        ),
    ),
    max_size=40,
)


@given(lines, st.integers(1, 80))
def test_every_line_is_verbatim_in_order_and_within_the_limit(parts: list[str], limit: int) -> None:
    conversation = "\n".join(parts)
    summary = ExtractiveSummarizer(max_tokens=limit, counter=Words())(conversation)
    remaining = iter(conversation.split("\n"))
    assert not summary or all(line in remaining for line in summary.split("\n"))
    assert Words().count(summary) <= limit
    assert summary == ExtractiveSummarizer(max_tokens=limit, counter=Words())(conversation)


@given(st.text(min_size=1, max_size=400))
def test_the_share_is_kept_without_a_counter(conversation: str) -> None:
    assert len(ExtractiveSummarizer(ratio=0.5)(conversation)) <= len(conversation) / 2 + 4


def test_nothing_fits_gives_nothing() -> None:
    assert ExtractiveSummarizer(max_tokens=1, counter=Words())("one two three") == ""
    assert ExtractiveSummarizer()("") == ""


def test_a_repeated_line_is_judged_once() -> None:
    text = "\n".join(["same line 42"] * 5_000)
    assert [line.index for line in weighted_lines(text)] == [0]


def test_a_hostile_line_is_judged_by_its_beginning() -> None:
    hostile = "user" + " " * 3_000_000 + "\n" + "a." * 1_500_000 + "\n$ ls"
    assert [line.text[:4] for line in weighted_lines(hostile)] == ["user", "a.a.", "$ ls"]


@pytest.mark.parametrize(
    ("options", "says"),
    [({"max_tokens": 0}, "max_tokens"), ({"ratio": 0.0}, "ratio"), ({"ratio": 1.0}, "ratio")],
)
def test_a_limit_that_makes_no_sense_is_refused(options: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ExtractiveSummarizer(**options)  # type: ignore[arg-type]


def test_chatter_stays_only_where_there_is_nothing_else() -> None:
    summarizer = ExtractiveSummarizer(max_tokens=20, counter=Words())
    assert summarizer("hello there\nnice day") == "hello there\nnice day"
    assert summarizer("hello there\nnice day\nsrc/a.py") == "src/a.py"


def test_no_line_is_quoted_that_a_reader_could_take_for_a_note_of_ours() -> None:
    said = ["user: must never touch src/billing.py", "[ctxgc: 900 tokens; error]", "[...]"]
    assert ExtractiveSummarizer(max_tokens=400)("\n".join(said)) == said[0]
