"""A second judge, straight from the definitions and without an index: slow, and easy to verify."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ctxgc.economics import PriceSheet
from ctxgc.lab import Policy, PolicyTask, Regime, Run
from ctxgc.lab.facts import lines_in, message_weight, texts_of, tokens_in

Json = dict[str, Any]


def facts(message: Json) -> set[str]:
    return {f for text in texts_of(message) for (f, _), _ in tokens_in(text) if f}


def words(message: Json) -> set[str]:
    return {w for text in texts_of(message) for (_, ws), _ in tokens_in(text) for w in ws}


def lines(message: Json) -> set[str]:
    return {line for text in texts_of(message) for line in lines_in(text)}


def unnumbered(line: str) -> str:
    return re.sub(r"\A\s*\d+(→|\t)", "", line)


def surroundings(message: Json, fact: str, *, clipped: bool) -> Iterator[tuple[str, str]]:
    """Yield the 24 characters before and after each occurrence of a fact, without line numbers."""
    for text in texts_of(message):
        for (found, _), start in tokens_in(text):
            if found == fact:
                *above, left = map(unnumbered, text[:start].split("\n"))
                right, *below = text[start + len(fact) :].split("\n")
                before = left if clipped else "\n".join([*above, left])
                after = right if clipped else "\n".join([right, *map(unnumbered, below)])
                yield before[-24:], after[:24]


def is_resident(fact: str, view: list[Json], past: list[Json], *, clipped: bool) -> bool:
    now = {s for m in view for s in surroundings(m, fact, clipped=clipped)}
    once = {s for m in past for s in surroundings(m, fact, clipped=clipped)}
    return bool(now & once)


def judge(policy: Policy, run: Run, regime: Regime, sheet: PriceSheet) -> dict[str, float]:
    """Return the counts of a replay."""
    limit = regime.limit(run.messages)
    player = policy.open(PolicyTask(limit=limit, regime=regime.kind, sheet=sheet, run=run))
    found: Counter[str] = Counter()
    bill = 0.0
    before: list[Json] = []
    first = next(i for i, m in enumerate(run.messages) if m["role"] == "user")
    for t, said in enumerate(run.messages):
        if said["role"] != "assistant" or t < first:
            continue
        past = run.messages[:t]
        view = player.view(past)
        same = 0
        while same < min(len(before), len(view)) and before[same] == view[same]:
            same += 1
        sizes = [message_weight(m) for m in view]
        bill += sheet.read * sum(sizes[:same]) + sheet.write * sum(sizes[same:])
        found["breaks"] += same < len(before)
        before = view
        near = [m for i, m in enumerate(past) if m["role"] == "system" or i == first or i >= t - 2]
        states = []
        for fact in facts(said):
            if any(fact in facts(m) for m in past) and not any(fact in facts(m) for m in near):
                sources = [i for i, m in enumerate(past) if fact in facts(m)]
                if is_resident(fact, view, past, clipped=True):
                    states.append("resident")
                elif any(fact in facts(m) for m in view):
                    states.append("named")
                else:
                    states.append(
                        "recallable" if any(map(player.is_recallable, sources)) else "lost"
                    )
                found["wide"] += is_resident(fact, view, past, clipped=False)
        found.update(states)
        found["needs"] += len(states)
        found["steps"] += bool(states)
        found["strict"] += bool(states) and set(states) == {"resident"}
        found["clean"] += bool(states) and set(states) <= {"resident", "named"}
        again = [
            x for x in lines(said)
            if any(x in lines(m) for m in past) and not any(x in lines(m) for m in near)
        ]  # fmt: skip
        kept = [x for x in again if any(x in lines(m) for m in view)]
        found.update(lines=len(again), lines_kept=len(kept))
        found.update(line_steps=bool(again), line_steps_kept=bool(again) and again == kept)
        rare = [
            x for x in words(said)
            if 1 <= sum(x in words(m) for m in past) <= 3 and not any(x in words(m) for m in near)
        ]  # fmt: skip
        found.update(
            words=len(rare), words_kept=sum(any(x in words(m) for m in view) for x in rare)
        )
    return {**{key: count for key, count in found.items() if count}, "bill": bill}
