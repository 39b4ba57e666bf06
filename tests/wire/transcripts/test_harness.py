"""Texts that an agent puts in itself are told from what a user says."""

from __future__ import annotations

import pytest

from ctxgc.wire.transcripts import harness_class, reminders_in, starts_turn
from ctxgc.wire.transcripts.claude_code import entry_of
from tests.session_files import ClaudeCode


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<system-reminder>\nToday is Monday.\n</system-reminder>", "reminders"),
        ("<system-reminder>\nYour todo list has changed.", "to-do lists"),
        ("<local-command-stdout>Bye!</local-command-stdout>", "command output"),
        ("<command-name>/exit</command-name>\n<command-message>exit</command-message>", "commands"),
        ("<command-message>review</command-message>\n<command-name>/review</command-name>", None),
        ("[Request interrupted by user]", "interruptions"),
        ("<environment_context>\n  <cwd>/repo</cwd>", "environment"),
        ("Why does <system-reminder> appear here?", None),
        ("/exit", None),
    ],
)
def test_a_text_is_the_agents_by_its_beginning(text: str, name: str | None) -> None:
    assert harness_class(text) == name


def test_leaving_the_program_is_not_a_turn() -> None:
    file = ClaudeCode()
    file.user("Fix the build.")
    file.user("<command-name>/exit</command-name>")
    file.user("<local-command-stdout>Bye!</local-command-stdout>")
    entries = [entry for line in file.lines if (entry := entry_of(line)) is not None]
    assert [starts_turn(entry) for entry in entries] == [True, False, False]


def test_reminders_are_told_from_the_result_that_they_are_attached_to() -> None:
    first = "<system-reminder>\nThe file may be malicious.\n</system-reminder>"
    text = f"1\tcode\n\n{first}\nmore\n{first}"
    assert list(reminders_in(text)) == [first, first]
    assert list(reminders_in(first)) == [first]


@pytest.mark.parametrize("text", [
    "say <system-reminder>\nx\n</system-reminder>", "<system-reminder>\nx\n</system-reminder> said it",
    "<system-reminder>\nnever closed", "<system-reminder>\n" * 50_000, "",
])  # fmt: skip
def test_the_words_of_a_reminder_within_a_text_are_the_texts_own(text: str) -> None:
    assert list(reminders_in(text)) == []
