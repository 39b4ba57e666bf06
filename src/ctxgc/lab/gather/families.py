"""The families of tasks: each is a script that gathers something, does other work, and then uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from ctxgc.lab.gather.stage import Need, Stage, needs_of, quoted
from ctxgc.lab.gather.things import Thing, make_thing, names

Family = Literal["compare", "compute", "edit", "plan", "error", "refer", "chat"]

_STEPS_BETWEEN = 20
_ORDINALS = ("first", "second")


def compare(stage: Stage) -> str:
    """Fetch things and compare three values of all of them."""
    keys = stage.keys(3)
    things = stage.things(keys)
    stage.ask(
        f"Fetch the settings of {_listed(things)}. Then compare {', '.join(keys)} of all of them, "
        f"and name the one with the largest {keys[0]}."
    )
    _fetch_all(stage, things, 0.5)
    stage.distract(0.5)
    largest = max(things, key=lambda thing: thing.values[keys[0]])
    answer = f"{quoted(things, keys)}\nThe largest {keys[0]}: {largest.values[keys[0]]}"
    stage.say(answer, needs_of(things, keys))
    return answer


def compute(stage: Stage) -> str:
    """Collect one value of each thing; say a subtotal on the way and the sum at the end."""
    keys = stage.keys(1)
    key, things = keys[0], stage.things(keys)
    stage.ask(f"Collect the {key} of {_listed(things)}, and add them up. Say a subtotal halfway.")
    half = len(things) // 2
    _fetch_all(stage, things[:half], 0.3)
    subtotal = sum(thing.values[key] for thing in things[:half])
    call = stage.tools.fetch(things[half].name, things[half].text)
    stage.call(f"Subtotal: {subtotal}", call, needs_of(things[:half], keys))
    _fetch_all(stage, things[half + 1 :], 0.3)
    stage.distract(0.4)
    answer = f"The sum of {key}: {sum(thing.values[key] for thing in things)}"
    stage.say(answer, needs_of(things, keys))
    return answer


def edit(stage: Stage) -> str:
    """Read things, do other work for twenty steps, and change lines of one of them."""
    keys = stage.keys(2)
    things = stage.things(keys)
    target = stage.chance.choice(things)
    stage.ask(
        f"Read {_listed(things)}. When all the rest is done, double {keys[0]} of {target.name}."
    )
    _fetch_all(stage, things, 0.0)
    stage.distract(1.0, _STEPS_BETWEEN)
    line, old = target.lines[keys[0]], target.values[keys[0]]
    before = _line_before(target, line)
    answer = line.replace(str(old), str(2 * old))
    change = stage.tools.change(target.name, f"{before}\n{line}", f"{before}\n{answer}")
    wanted = [Need(each, target.name) for each in (before, line) if each]
    stage.call("Now the change.", change, wanted)
    stage.say("All of it is done.")
    return answer


def plan(stage: Stage) -> str:
    """Make a plan early, and follow it step by step."""
    chance, keys = stage.chance, stage.keys(2)
    things = stage.things(keys)
    count = chance.randrange(4, 9)
    steps = [_plan_step(stage, things, keys, number) for number in range(1, count + 1)]
    stage.ask(f"Read {_listed(things)}, make a plan for moving them, and follow it to the end.")
    _fetch_all(stage, things, 0.0)
    text = "\n".join(steps)
    if chance.happens(0.5):
        stage.call("There is a runbook.", stage.tools.fetch(f"runbook-{chance.hexes(4)}", text))
    else:
        stage.call(f"My plan:\n{text}", stage.tools.fetch(f"lock-{chance.hexes(4)}", "taken"))
    for number, step in enumerate(steps, start=1):
        stage.distract(1 / count)
        _, _, what = step.partition(": ")
        call = stage.tools.fetch(f"move-{chance.hexes(4)}", "done")
        stage.call(f"Step {number}.", call, [Need(what)])
    answer = "The plan is done."
    stage.say(answer)
    return answer


def error(stage: Stage) -> str:
    """Run into an error, put it off, and come back to it."""
    chance, keys = stage.chance, stage.keys(2)
    things = stage.things(keys)
    bad = chance.choice(things)
    code, line = f"E{chance.randrange(1_000, 9_999)}", chance.randrange(10, 400)
    said = (
        f"ERROR {code}: {keys[0]} of {bad.name} exceeds what the host allows",
        f"  in stage {chance.choice(('verify', 'rollout', 'drain'))}, line {line}, attempt 1",
    )
    stage.ask(f"Apply {_listed(things)}. If one fails, put it off, and mend it at the end.")
    for thing in things:
        failed = thing is bad
        text = f"{thing.text}\n" + "\n".join(said) if failed else thing.text
        stage.call("", stage.tools.fetch(thing.name, text, failed=failed))
    stage.distract(1.0, 8)
    answer = f"Back to {bad.name}: {code} in line {line}."
    lines = [Need(each.strip(), bad.name) for each in said] + needs_of([bad], keys[:1])
    new = bad.lines[keys[0]].replace(str(bad.values[keys[0]]), "10")
    stage.call(answer, stage.tools.change(bad.name, bad.lines[keys[0]], new), lines)
    stage.say("All of them are applied.")
    return answer


def refer(stage: Stage) -> str:
    """Let the user come back to something three turns later, by its name or by its place."""
    chance, keys = stage.chance, stage.keys(2)
    things = stage.things(keys)
    stage.ask(f"Have a look at {_listed(things)}. I will ask about them later.")
    _fetch_all(stage, things, 0.0)
    stage.say("I have read all of them.")
    for _ in range(3):
        stage.side_request(1 / 3)
    asked = things[:2]
    by_place = chance.happens(0.5)
    which = [f"the {word} one" for word in _ORDINALS] if by_place else [t.name for t in asked]
    stage.ask(f"Back to the beginning: what are {' and '.join(keys)} of {' and '.join(which)}?")
    answer = quoted(asked, keys)
    stage.say(answer, needs_of(asked, keys))
    return answer


def chat(stage: Stage) -> str:
    """Talk for long; facts that the user mentioned are asked for at the end."""
    chance, keys = stage.chance, stage.keys(3)
    people = names(chance, 3)
    facts = [make_thing(chance, "prose", name, keys[:2], 0) for name in people]
    size = stage.gathered // (2 * len(facts))
    stage.ask("Hello! I will tell you about our plans, and we think them over together.")
    stage.say("Gladly. Go ahead.")
    for fact in facts:
        stage.ask(f"{stage.prose(size)} {' '.join(fact.lines.values())} {stage.prose(size)}")
        stage.say(stage.prose(30))
        stage.talk(0.1)
    stage.talk(0.7)
    stage.ask(f"Remind me: what did I tell you about {' and '.join(keys[:2])}?")
    answer = quoted(facts, keys[:2])
    stage.say(answer, needs_of(facts, keys[:2]))
    return answer


FAMILIES: dict[Family, Callable[[Stage], str]] = {
    "compare": compare,
    "compute": compute,
    "edit": edit,
    "plan": plan,
    "error": error,
    "refer": refer,
    "chat": chat,
}
"""Name -> the script; it plays on a stage and returns its answer."""


def _listed(things: Sequence[Thing]) -> str:
    return ", ".join(thing.name for thing in things)


def _fetch_all(stage: Stage, things: Sequence[Thing], noise: float) -> None:
    """Fetch things one by one, with this share of the noise in between."""
    for thing in things:
        stage.fetch(thing)
        if noise:
            stage.distract(noise / len(things), steps=0)


def _line_before(thing: Thing, line: str) -> str:
    """Return the whole line before another one; empty for prose and for a first line."""
    rows = [row.strip() for row in thing.text.split("\n")]
    place = next((n for n, row in enumerate(rows) if row.rstrip(",") == line), 0)
    return rows[place - 1].rstrip(",") if place else ""


def _plan_step(stage: Stage, things: Sequence[Thing], keys: Sequence[str], number: int) -> str:
    chance = stage.chance
    thing, key = chance.choice(things), chance.choice(keys)
    wait = chance.randrange(11, 600)
    return f"{number}: set {key} of {thing.name} to {chance.randrange(11, 9_999)}, wait {wait} seconds."
