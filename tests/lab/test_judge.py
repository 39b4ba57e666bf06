"""A language model as judge: which texts it is given, what it must foresee, and what is made of that."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ctxgc.errors import InputError
from ctxgc.lab import Experiment, JudgeMemory, JudgeSettings, judge_markdown, run_judge
from ctxgc.lab.judge import BARE, BASE, bare_excerpt, excerpt_of, targets_of
from ctxgc.lab.judge_model import ForcedText
from ctxgc.lab.needs import Needs
from tests.lab.builders import Json, answer, result, run_of, user

NEED = "src/store/ledger_writer.py"
FILLER = "\n".join(f"line {n} says nothing of interest" for n in range(40))


class Reader:
    """A strict model: it is surprised by each letter unless it has read the text; it takes no empty text."""

    name = "reader"

    def __init__(self) -> None:
        self.read: list[tuple[str, str]] = []

    def force(self, prompt: str, text: str) -> ForcedText:
        assert text
        assert (prompt, text) not in self.read, "nothing is asked twice"
        self.read.append((prompt, text))
        return ForcedText(nats=1.0 if text in prompt else float(len(text)), tokens=len(text))


def call(name: str, **arguments: str) -> Json:
    made = answer(name, **arguments)
    made["tool_calls"][0]["id"] = f"call-{name}"
    return made


def conversation(need: str = NEED, steps: int = 3) -> list[Json]:
    """A result tells a path, others follow, and then a call names it."""
    found, messages = call("look", query="where"), [user("Mend the ledger.")]
    messages += [found, result(found, f"{FILLER}\nfound {need} there\n{FILLER}")]
    for n in range(steps):
        asked = call(f"more{n}", query=f"part {n}")
        messages += [asked, result(asked, f"nothing in part {n}")]
    return [*messages, call("open", file_path=f"at {need}", mode="read")]


def needs(messages: list[Json]) -> Needs:
    return Needs(run_of(*messages))


def test_a_target_is_what_a_call_names_and_only_a_result_told() -> None:
    (target,) = targets_of(needs(conversation()), 3)
    assert msgspec.to_builtins(target) == {
        "index": 9, "source": 2, "need": NEED, "text": NEED,
        "prefix": "[assistant calls work]\nfile_path: at ",
    }  # fmt: skip


def test_the_whole_line_of_an_argument_can_be_the_target() -> None:
    messages = conversation()
    messages[-1] = call("open", command=f"cd /tmp\ncat -n {NEED} | head\nls")
    (target,) = targets_of(needs(messages), 3, "argument")
    assert (target.text, target.prefix) == (
        f"cat -n {NEED} | head", "[assistant calls work]\ncommand: cd /tmp\n",
    )  # fmt: skip


def test_what_the_user_or_the_agent_said_is_no_target() -> None:
    told = conversation()
    told[0] = user(f"Mend {NEED}.")
    assert targets_of(needs(told), 3) == []
    repeated = conversation()
    repeated[3] = call("again", query=NEED)
    assert targets_of(needs(repeated), 3) == []


def test_targets_are_spread_over_the_run() -> None:
    messages = conversation("src/first/part_number_0.py")
    for n in range(1, 9):
        messages += [user("go on"), *conversation(f"src/first/part_number_{n}.py")[1:]]
    every = targets_of(needs(messages), 9)
    assert [target.need[-4] for target in every] == list("012345678")
    assert [target.need[-4] for target in targets_of(needs(messages), 3)] == ["1", "4", "7"]


def excerpt(view: list[Json], room: int = 80) -> list[str]:
    read = needs(conversation())
    (target,) = targets_of(read, 1)
    return excerpt_of(view, target, conversation()[2], room).split("\n")


def test_the_model_reads_what_is_around_the_need_and_the_newest_lines() -> None:
    lines = excerpt(conversation()[:9])
    gap = lines.index("[...]")
    assert f"found {NEED} there" in lines[:gap]
    assert lines[gap + 1 :] == ["query: part 2", "[tool]", "nothing in part 2"]
    assert len(lines[:gap]) < 12


def test_where_the_need_is_gone_it_reads_what_replaces_the_result() -> None:
    view = conversation()[:9]
    view[2] = {**view[2], "content": "[result omitted]"}
    lines = excerpt(view)
    assert "[result omitted]" in lines
    assert NEED not in "\n".join(lines)


def test_where_the_result_left_with_its_call_it_reads_the_lines_before_the_newest() -> None:
    view = [conversation()[0], *conversation()[3:9]]
    lines = excerpt(view)
    assert lines[: lines.index("[...]")][-2:] == ["[tool]", "nothing in part 1"]


def test_long_lines_are_cut_around_the_need() -> None:
    view = conversation()[:9]
    view[2] = {**view[2], "content": "x" * 5_000 + NEED + "y" * 5_000}
    found = "\n".join(excerpt(view, room=400))
    assert NEED in found
    assert len(found) < 1_500


def test_the_bare_excerpt_is_the_end_of_the_last_two_messages() -> None:
    assert bare_excerpt(conversation()[:9], 80).split("\n") == [
        "[...]", "query: part 2", "[tool]", "nothing in part 2",
    ]  # fmt: skip


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    runs = [
        {"id": name, "messages": conversation(f"src/{name}/ledger.py", steps)}
        for name, steps in (("one", 2), ("two", 4))
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("\n".join(map(json.dumps, runs)), "utf-8")
    return Experiment(policies=("mask-keep-3", "never"), data=file, least_tokens=0)


def test_the_excess_is_what_a_policy_costs_over_the_whole_history(experiment: Experiment) -> None:
    """Masking all but three results hides the path in the longer run only."""
    reader, done = Reader(), list[int]()
    report = run_judge(experiment, JudgeMemory(reader), JudgeSettings(), lambda: done.append(1))
    long = float(len("src/two/ledger.py"))
    assert [(r.run, r.policy, r.nats, r.base, r.changed) for r in report.results] == [
        ("one", BASE, 1.0, 1.0, False),
        ("one", "mask-keep-3", 1.0, 1.0, False),
        ("one", BARE, long, 1.0, True),
        ("two", BASE, 1.0, 1.0, False),
        ("two", "mask-keep-3", long, 1.0, True),
        ("two", BARE, long, 1.0, True),
    ]
    rows = {row.policy: row for row in report.rows}
    assert list(rows) == [BASE, "mask-keep-3", BARE]
    assert (rows[BASE].excess.value, rows[BARE].excess.value) == (0.0, long - 1)
    assert rows["mask-keep-3"].excess.value == (long - 1) / 2
    assert (rows["mask-keep-3"].changed.value, rows["mask-keep-3"].worse.value) == (0.5, 0.5)
    assert (report.runs, report.targets, report.model, len(done)) == (2, 2, "reader", 2)
    assert len(reader.read) == 5, "the same excerpt is read once"
    assert "| mask-keep-3 | 2 | 9.0 | +8.00 [+0.00, +16.00] | 50 | 50 |" in judge_markdown(report)


def test_what_the_model_said_is_kept_and_not_asked_again(
    experiment: Experiment, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    first = run_judge(experiment, JudgeMemory(Reader(), file))
    known = file.read_bytes()
    file.write_bytes(known + b'{"key":"half a li')
    again = Reader()
    assert run_judge(experiment, JudgeMemory(again, file)) == first
    assert (again.read, file.read_bytes()) == ([], known)

    class Other(Reader):
        name = "other"

    other = Other()
    run_judge(experiment, JudgeMemory(other, file))
    assert len(other.read) == 5


def test_a_memory_that_is_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    for text in ("dear diary\nand more", "dear diary"):
        file.write_text(text, "utf-8")
        with pytest.raises(InputError, match=r"notes.txt, line 1.*a file that this command wrote"):
            JudgeMemory(Reader(), file)
        assert file.read_text("utf-8") == text


def test_runs_without_a_target_are_told(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"id": "a", "messages": [user("hi"), answer("ho")]}), "utf-8")
    with pytest.raises(InputError, match="nothing to judge"):
        run_judge(Experiment(policies=("never",), data=file, least_tokens=0), JudgeMemory(Reader()))
