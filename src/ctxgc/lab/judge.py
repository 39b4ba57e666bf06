"""A language model as judge: how much harder is the recorded next call to foresee after a pruned view?

For a call that names something which only a tool result could have told, the model is given a part of the
view that each policy sent, and forced to write what the agent wrote. The excess over the same part of the
whole history is what the pruning cost, whatever anybody believes a need to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from ctxgc._version import __version__
from ctxgc.economics import PriceSheet
from ctxgc.errors import InputError
from ctxgc.lab.experiment import Experiment
from ctxgc.lab.facts import decoded, texts_of
from ctxgc.lab.judge_model import JudgeMemory
from ctxgc.lab.markdown import grid
from ctxgc.lab.needs import Needs, RequestNeeds
from ctxgc.lab.policies import PolicyTask, policy
from ctxgc.lab.pool import quiet_log
from ctxgc.lab.regimes import Regime
from ctxgc.lab.results import Bootstrap, Figure
from ctxgc.tokens import counter_for

Json = dict[str, Any]
TargetKind = Literal["identifier", "argument"]
BASE = "never"
BARE = "the last two messages"
_GAP = "[...]"
_LEAST_NEED = 8
_MOST_LINE = 400
_MOST_PREFIX = 200
_MOST_ARGUMENT = 160
_NEWEST = 2
_TAIL_SHARE = 0.25


# -- What the agent wrote next


class JudgeTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a recorded call names: `text`, which follows `prefix` in the call.

    `need` is the identifier in it that came from the tool result number `source`; `index` is the number of
    the message with the call.
    """

    index: int
    source: int
    need: str
    prefix: str
    text: str


def targets_of(needs: Needs, most: int, kind: TargetKind = "identifier") -> list[JudgeTarget]:
    """Return at most so many targets, spread over a run: of each step the longest need, each need once."""
    found: dict[str, JudgeTarget] = {}
    for step in needs.steps:
        longest = max(
            _targets(needs, step, kind), key=lambda target: len(target.need), default=None
        )
        if longest is not None:
            found.setdefault(longest.need, longest)
    every = list(found.values())
    chosen = min(most, len(every))
    return [every[(2 * n + 1) * len(every) // (2 * chosen)] for n in range(chosen)]


def _targets(needs: Needs, step: RequestNeeds, kind: TargetKind) -> Iterator[JudgeTarget]:
    """Yield the needs of a step that are in its calls and that only tool results told before."""
    answer = needs.entries[step.index].message
    for name, key, value in _arguments(answer):
        for need in step.needs:
            if len(need) < _LEAST_NEED or need not in value:
                continue
            sources = needs.facts.before(need, step.index)
            roles = {needs.entries[source].message.get("role") for source in sources}
            if roles == {"tool"}:
                before, text = _cut(value, need, kind)
                prefix = f"[assistant calls {name}]\n{key}: {before}"
                yield JudgeTarget(
                    index=step.index, source=sources[-1], need=need, prefix=prefix, text=text
                )


def _cut(value: str, need: str, kind: TargetKind) -> tuple[str, str]:
    """Return what is given of an argument, and what is to be foreseen: the need, or the line that has it."""
    start = value.find(need)
    if kind == "identifier":
        return value[:start][-_MOST_PREFIX:], need
    begin = max(value.rfind("\n", 0, start) + 1, start - _MOST_ARGUMENT // 2)
    return value[:begin][-_MOST_PREFIX:], value[begin:].partition("\n")[0][:_MOST_ARGUMENT]


def _arguments(message: Json) -> Iterator[tuple[str, str, str]]:
    """Yield the arguments of a message's calls that are texts: tool, name and value."""
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        given = decoded(function.get("arguments"))
        if isinstance(given, dict):
            for key, value in given.items():
                if isinstance(value, str):
                    yield str(function.get("name")), key, value


# -- The part of a view that the model reads


def excerpt_of(view: Sequence[Json], target: JudgeTarget, source: Json, room: int) -> str:
    """Return so many tokens of a view: around what is left of the source, and the newest.

    What is left of it is the last line with the need before the last two messages, else what replaces the
    result, else nothing: then the lines before the last two messages are read.
    """
    last = max(0, len(view) - _NEWEST)
    lines = [_short(line, target.need) for message in view[:last] for line in _lines(message)]
    tail = _tail(view, room)
    if not lines:
        return "\n".join(tail)
    around = _around(lines, _centre(view[:last], target, source, lines), room - _size(tail))
    return "\n".join([*around, _GAP, *tail])


def bare_excerpt(view: Sequence[Json], room: int) -> str:
    """Return the end of the last two messages alone."""
    return "\n".join([_GAP, *_tail(view, room)])


def _tail(view: Sequence[Json], room: int) -> Sequence[str]:
    lines = [_short(line, "") for message in view[-_NEWEST:] for line in _lines(message)]
    return _around(lines, len(lines) - 1, int(_TAIL_SHARE * room)) if lines else []


def _lines(message: Json) -> list[str]:
    """Return a message as lines, under its role."""
    text = "\n".join(texts_of({"content": message.get("content")}))
    lines = [f"[{message.get('role')}]", *text.split("\n")] if text else []
    for name, key, value in _arguments(message):
        lines += [f"[assistant calls {name}]", *f"{key}: {value}".split("\n")]
    return lines


def _short(line: str, need: str) -> str:
    """Return a long line cut around the need, or after its beginning."""
    if len(line) <= _MOST_LINE:
        return line
    middle = line.find(need) if need and need in line else 0
    start = max(0, middle - _MOST_LINE // 2)
    return line[start : start + _MOST_LINE]


def _centre(view: Sequence[Json], target: JudgeTarget, source: Json, lines: Sequence[str]) -> int:
    """Return the number of the line around which to cut."""
    named = [n for n, line in enumerate(lines) if target.need in line]
    if named:
        return named[-1]
    at = 0
    for message in view:
        call = message.get("tool_call_id")
        if call is not None and call == source.get("tool_call_id"):
            return at
        at += len(_lines(message))
    return len(lines) - 1


def _around(lines: Sequence[str], centre: int, room: int) -> Sequence[str]:
    """Return the lines around one, as many as there is room for, on both sides alike."""
    first = last = centre
    left = room - _size(lines[centre : centre + 1])
    while True:
        sides = [n for n in (first - 1, last + 1) if 0 <= n < len(lines)]
        costs = {n: _size([lines[n]]) for n in sides}
        fitting = [n for n in sides if costs[n] <= left]
        if not fitting:
            return lines[first : last + 1]
        nearest = min(fitting, key=lambda n: (abs(n - centre), n))
        left -= costs[nearest]
        first, last = min(first, nearest), max(last, nearest)


def _size(lines: Iterable[str]) -> int:
    count = counter_for().count
    return sum(count(line) + 1 for line in lines)


# -- The judge


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a view the model reads, in tokens; how many targets a run has, and of which kind."""

    view_tokens: int = 600
    per_run: int = 1
    kind: TargetKind = "identifier"


class JudgeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One target under one policy: how surprising it was, in nats.

    `base` is the same after the whole history; `changed` if the model read something else than that.
    """

    run: str
    group: str
    policy: str
    index: int
    text: str
    nats: float
    base: float
    tokens: int
    changed: bool


class JudgeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One policy over all targets, in nats for each; `worse` is the share that it made harder to foresee."""

    policy: str
    targets: int
    nats: Figure
    excess: Figure
    changed: Figure
    worse: Figure


class JudgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a model found, and of what."""

    judge: int = 1
    version: str
    model: str
    source: str
    regime: str
    settings: JudgeSettings
    runs: int
    targets: int
    rows: list[JudgeRow]
    results: list[JudgeResult]


def run_judge(
    experiment: Experiment,
    memory: JudgeMemory,
    settings: JudgeSettings | None = None,
    done: Callable[[], None] | None = None,
) -> JudgeReport:
    """Let a model judge the policies of an experiment; `done` is called after each run.

    Raises:
        ConfigError: a policy, the regime or the price sheet does not exist.
        InputError: there is no run, or none with a target.
        JudgeModelError: the model failed.
    """
    asked, order = settings or JudgeSettings(), experiment.order()
    results: list[JudgeResult] = []
    for run in experiment.runs():
        results += _judged(Needs(run), order.policies, (order.regime, order.sheet), memory, asked)
        if done is not None:
            done()
    if not results:
        experiment.all_runs()
        raise InputError(
            f"nothing to judge in {experiment.source}",
            hint="runs need calls that name what only a tool result told",
            field="data",
        )
    names = [name for name in order.policies if name != BASE]
    return JudgeReport(
        version=__version__,
        model=memory.model,
        source=experiment.source,
        regime=order.regime.name,
        settings=asked,
        runs=len({result.run for result in results}),
        targets=sum(result.policy == BASE for result in results),
        rows=[_row(name, results) for name in (BASE, *names, BARE)],
        results=results,
    )


def _judged(
    needs: Needs,
    policies: Iterable[str],
    terms: tuple[Regime, PriceSheet],
    memory: JudgeMemory,
    settings: JudgeSettings,
) -> Iterator[JudgeResult]:
    targets = targets_of(needs, settings.per_run, settings.kind)
    if not targets:
        return
    wanted = {target.index for target in targets}
    views = {name: _views(name, needs, terms, wanted) for name in dict.fromkeys((BASE, *policies))}
    for target in targets:
        source, room = needs.entries[target.source].message, settings.view_tokens
        read = {
            name: excerpt_of(shown[target.index], target, source, room)
            for name, shown in views.items()
        }
        read[BARE] = bare_excerpt(views[BASE][target.index], room)
        base = memory.force(_prompt(read[BASE], target), target.text)
        for name, excerpt in read.items():
            forced = memory.force(_prompt(excerpt, target), target.text)
            yield JudgeResult(
                run=needs.run.id,
                group=needs.run.group,
                policy=name,
                index=target.index,
                text=target.text,
                nats=forced.nats,
                base=base.nats,
                tokens=forced.tokens,
                changed=excerpt != read[BASE],
            )


def _prompt(excerpt: str, target: JudgeTarget) -> str:
    return f"{excerpt}\n{target.prefix}"


def _views(
    name: str, needs: Needs, terms: tuple[Regime, PriceSheet], wanted: set[int]
) -> dict[int, list[Json]]:
    """Return the views that a policy sends at some requests, all others before them played too."""
    regime, sheet = terms
    run = needs.run
    limit = regime.limit(run.messages)
    task = PolicyTask(limit=limit, regime=regime.kind, sheet=sheet, run=run)
    found: dict[int, list[Json]] = {}
    with quiet_log():
        player = policy(name).open(task)
        for step in needs.steps:
            if step.index > max(wanted):
                break
            view = player.view(run.messages[: step.index])
            if step.index in wanted:
                found[step.index] = msgspec.json.decode(msgspec.json.encode(view))
    return found


def _row(name: str, results: Sequence[JudgeResult]) -> JudgeRow:
    own = [result for result in results if result.policy == name]
    draws = Bootstrap([result.group for result in own])

    def mean(values: Iterable[float]) -> Figure:
        return draws.share(values, [1] * len(own), 0.0)

    return JudgeRow(
        policy=name,
        targets=len(own),
        nats=mean(result.nats for result in own),
        excess=mean(result.nats - result.base for result in own),
        changed=mean(result.changed for result in own),
        worse=mean(result.nats > result.base for result in own),
    )


# -- As a table


JUDGE_COLUMNS = ("policy", "targets", "nats", "excess [95% CI]", "view changed %", "harder %")


def judge_cells(row: JudgeRow) -> tuple[str, ...]:
    """Return the figures of a row."""
    excess = row.excess
    return (
        row.policy,
        f"{row.targets:,}",
        f"{row.nats.value:.1f}",
        f"{excess.value:+.2f} [{excess.low:+.2f}, {excess.high:+.2f}]",
        f"{100 * row.changed.value:.0f}",
        f"{100 * row.worse.value:.0f}",
    )


def judge_headline(report: JudgeReport) -> str:
    """Return what was judged, in one sentence."""
    settings = report.settings
    return (
        f"{report.targets:,} targets ({settings.kind}) of {report.runs:,} runs "
        f"({report.source}; {report.regime}), {settings.view_tokens:,} tokens of each view, "
        f"read by {report.model}."
    )


def judge_markdown(report: JudgeReport) -> str:
    """Return the report as a Markdown table."""
    return f"{judge_headline(report)}\n\n{grid(JUDGE_COLUMNS, map(judge_cells, report.rows))}\n"
