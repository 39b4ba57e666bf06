"""Tasks: scripted sessions with a known answer, made from a plan and a seed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import msgspec

from ctxgc.core import Format
from ctxgc.lab.gather.families import FAMILIES, Family
from ctxgc.lab.gather.stage import Need, ScriptStep, Stage
from ctxgc.lab.gather.things import CONTENTS, Content
from ctxgc.lab.gather.tools import TOOLS, ToolKind
from ctxgc.testing import AnthropicRendering, Chance, ChatRendering

WINDOWS = (16_000, 64_000, 200_000)
FORMATS: tuple[Format, ...] = ("openai", "anthropic")
SYSTEM = "You look after services. Fetch what you need with your tools, and quote figures exactly."
_EARLIER = 0.3
_RENDERINGS = {"openai": ChatRendering, "anthropic": AnthropicRendering}


class Mix(NamedTuple):
    """How much comes in, and how much of it is gathered for the answer, as shares of the window."""

    fill: float
    gathered: float


MIXES = (
    Mix(0.01, 0.006),
    Mix(0.1, 0.06),
    Mix(0.5, 0.3),
    Mix(0.9, 0.45),
    Mix(1.5, 0.35),
    Mix(3.0, 0.3),
    Mix(3.0, 1.8),
)


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which task to make; the same plan always makes the same one."""

    family: Family
    tool: ToolKind
    content: Content
    format: Format
    window: int
    fill: float
    gathered: float
    seed: int = 0

    @property
    def id(self) -> str:
        """A name that no other plan has."""
        return f"{self.story}-{self.format}"

    @property
    def story(self) -> str:
        """What happens in it, in whatever format."""
        size = f"{self.window // 1_000}k-{self.fill:.0%}-{self.gathered:.1%}"
        return f"{self.family}-{self.tool}-{self.content}-{size}-{self.seed}"


class TaskUse(msgspec.Struct, frozen=True):
    """What message `index` needs: the request that it answers must show it."""

    index: int
    needs: tuple[Need, ...]


class GatherTask(msgspec.Struct, frozen=True, kw_only=True):
    """A scripted session: its messages, where it uses what, and its answer."""

    plan: TaskPlan
    messages: list[dict[str, Any]]
    uses: tuple[TaskUse, ...]
    answer: str


def make_task(plan: TaskPlan, form: Format | None = None) -> GatherTask:
    """Return the task of a plan, in the format of the plan or in another one."""
    chance = Chance(f"gather {plan.story}")
    gathered = int(plan.gathered * plan.window)
    stage = Stage(
        chance,
        plan.tool,
        plan.content,
        window=plan.window,
        gathered=gathered,
        noise=int(plan.fill * plan.window) - gathered,
    )
    if chance.happens(0.5):
        stage.begin_elsewhere(_EARLIER)
    answer = FAMILIES[plan.family](stage)
    messages, uses = _rendered(stage.steps, form or plan.format)
    return GatherTask(plan=plan, messages=messages, uses=uses, answer=answer)


def _rendered(
    steps: list[ScriptStep], form: Format
) -> tuple[list[dict[str, Any]], tuple[TaskUse, ...]]:
    rendering = _RENDERINGS[form]()
    messages: list[dict[str, Any]] = []
    if form == "openai":
        messages.append({"role": "system", "content": SYSTEM})
    uses: list[TaskUse] = []
    for step, needs in steps:
        if needs:
            uses.append(TaskUse(len(messages), needs))
        messages += rendering.messages(step)
    return messages, tuple(uses)


def plans(
    *,
    windows: Sequence[int] = WINDOWS,
    families: Collection[str] = FAMILIES,
    tools: Collection[str] = TOOLS,
    seed: int = 0,
) -> Iterator[TaskPlan]:
    """Yield the plans of the suite: each family with each tool in each window at each fill.

    Contents and formats take turns, so that each meets every family and every tool. A plan does not
    depend on which others are chosen.
    """
    for window in windows:
        for number, (mix, family, tool) in enumerate(product(MIXES, FAMILIES, TOOLS)):
            turn = number // len(TOOLS)
            if family in families and tool in tools:
                yield TaskPlan(
                    family=family,
                    tool=tool,
                    content=CONTENTS[(number + turn + window // 8_000) % len(CONTENTS)],
                    format=FORMATS[turn % len(FORMATS)],
                    window=window,
                    fill=mix.fill,
                    gathered=mix.gathered,
                    seed=seed,
                )
