"""Scripted tasks: the same for a seed, valid for their provider, with an answer that is in their texts."""

from __future__ import annotations

import re

import msgspec
import pytest

from ctxgc.lab import FAMILIES, TOOLS, GatherTask, make_task, plans
from ctxgc.lab.facts import texts_of, total_weight
from ctxgc.lab.gather.tasks import FORMATS, MIXES
from ctxgc.lab.gather.things import CONTENTS
from ctxgc.testing import check_history
from tests.lab.gather.plan_cases import a_plan

SMALL = [plan for plan in plans(windows=(16_000,)) if plan.fill <= 0.1]


def said(task: GatherTask, role: str = "") -> str:
    messages = [m for m in task.messages if role in ("", m["role"])]
    return "\n".join(text for message in messages for text in texts_of(message))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_plan_makes_the_same_bytes_and_another_seed_makes_others(family: str) -> None:
    one, same, other = (make_task(a_plan(family=family, seed=seed)) for seed in (1, 1, 2))
    assert msgspec.json.encode(one) == msgspec.json.encode(same)
    assert one.messages != other.messages


@pytest.mark.parametrize("form", FORMATS)
def test_every_session_is_valid_for_its_provider(form: str) -> None:
    for plan in SMALL:
        task = make_task(msgspec.structs.replace(plan, format=form))
        assert check_history(task.messages, form, complete=False) == [], plan.id


def test_what_an_answer_needs_was_said_before_it_and_names_its_thing() -> None:
    for plan in SMALL:
        task = make_task(plan)
        assert task.uses, plan.id
        for use in task.uses:
            assert task.messages[use.index]["role"] == "assistant"
            before = "\n".join(t for m in task.messages[: use.index] for t in texts_of(m))
            assert [n for n in use.needs if n.line not in before or n.subject not in before] == []


def test_the_suite_has_every_family_with_every_tool_and_all_contents_and_formats() -> None:
    found = list(plans())
    assert {(p.family, p.tool) for p in found} == {(f, t) for f in FAMILIES for t in TOOLS}
    assert {(p.tool, p.content) for p in found} == {(t, c) for t in TOOLS for c in CONTENTS}
    assert {(p.family, p.format) for p in found} == {
        (f, form) for f in FAMILIES for form in FORMATS
    }
    assert {(p.window, p.fill, p.gathered) for p in found} == {
        (window, *mix) for window in (16_000, 64_000, 200_000) for mix in MIXES
    }
    assert len({p.id for p in found}) == len(found)


def test_a_plan_does_not_depend_on_which_others_are_chosen() -> None:
    every = set(plans(windows=(16_000, 64_000)))
    assert set(plans(windows=(64_000,), families=("edit",), tools=("sql",))) <= every


@pytest.mark.parametrize("mix", [mix for mix in MIXES if mix.fill >= 0.5])
def test_about_as_much_comes_in_as_the_plan_says(mix: tuple[float, float]) -> None:
    for content in CONTENTS:
        plan = a_plan(content=content, fill=mix[0], gathered=mix[1])
        share = total_weight(make_task(plan).messages) / plan.window
        assert 0.7 * mix[0] <= share <= 1.2 * mix[0], content


# -- The answer, worked out again from the texts alone


def value(text: str, content: str, name: str, key: str) -> int:
    """The value of a key of a thing, found by a pattern that knows nothing of the generator."""
    between = {
        "yaml": rf"name: {name}\b(?:\n.*)*?\n *(?:\d+\t)? *{key}: (\d+)",
        "json": rf'"name": "{name}"(?:.*\n)*?.*"{key}": (\d+)',
        "log": rf" {name} applied {key}=(\d+)",
        "prose": rf"For {name} we agreed on a {key} of (\d+) ",
        "table": rf"{name}\s*[,|]\s*{key}\s*[,|]\s*(\d+)",
    }
    found = re.search(between[content], text)
    assert found is not None, (content, name, key)
    return int(found[1])


def asked_names(text: str) -> list[str]:
    return re.findall(r"[a-z]+-(?:eu|us|apac|sa|mea|nordics|iberia|alps)\b", text)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_sum_of_the_collected_values_is_the_answer(content: str, tool: str) -> None:
    task = make_task(a_plan(family="compute", content=content, tool=tool))
    asked = next(line for line in said(task, "user").split("\n") if line.startswith("Collect the"))
    key = asked.split()[2]
    read = said(task, "tool")
    total = sum(value(read, content, name, key) for name in asked_names(asked))
    assert task.answer == f"The sum of {key}: {total}"


@pytest.mark.parametrize("content", CONTENTS)
def test_the_largest_of_the_compared_values_is_the_answer(content: str) -> None:
    task = make_task(a_plan(family="compare", content=content))
    asked = next(line for line in said(task, "user").split("\n") if line.startswith("Fetch the"))
    keys = re.findall(r"[a-z]+_[a-z]+", asked)[:3]
    read = said(task, "tool")
    values = {n: [value(read, content, n, key) for key in keys] for n in asked_names(asked)}
    rows = [
        f"{name}: " + ", ".join(f"{key} {each}" for key, each in zip(keys, own, strict=True))
        for name, own in values.items()
    ]
    largest = max(own[0] for own in values.values())
    assert task.answer.split("\n") == [*rows, f"The largest {keys[0]}: {largest}"]


def test_a_user_who_refers_back_does_so_after_three_other_requests() -> None:
    task = make_task(a_plan(family="refer"))
    asked = [line for line in said(task, "user").split("\n") if line]
    start = next(n for n, line in enumerate(asked) if line.startswith("Have a look"))
    assert [line.split(":")[0] for line in asked[start + 1 :]] == [
        "Something else, please", "Something else, please", "Something else, please",
        "Back to the beginning",
    ]  # fmt: skip


def test_a_change_is_made_at_least_twenty_steps_after_its_file_was_read() -> None:
    task = make_task(a_plan(family="edit", fill=0.01, gathered=0.006))
    (use,) = task.uses
    subject = use.needs[0].subject
    read = max(
        n for n, m in enumerate(task.messages[: use.index])
        if m["role"] == "tool" and any(use.needs[-1].line in text for text in texts_of(m))
    )  # fmt: skip
    steps = [m for m in task.messages[read : use.index] if m["role"] == "assistant"]
    assert len(steps) >= 20
    assert any(subject in text for text in texts_of(task.messages[use.index]))
