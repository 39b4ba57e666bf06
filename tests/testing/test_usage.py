"""Usage tells the SDKs what was read from the prompt cache, as their providers do."""

from __future__ import annotations

from typing import Any

import anthropic
import openai

from ctxgc.testing import ScriptedModel, StrictServer
from ctxgc.testing.model import default_count
from tests.testing.builders import asked, assistant, text, user

LONG = "alpha beta gamma delta " * 60
FOREVER = "ok"


def _kept(words: str) -> dict[str, Any]:
    return {**text(words), "cache_control": {"type": "ephemeral"}}


def test_chat_reports_the_cached_prefix(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([FOREVER] * 3)

    def read(*messages: Any) -> tuple[int, int]:
        answer = chat.chat.completions.create(model="m", messages=list(messages))
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        return answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens or 0

    total, cached = read(user(LONG))
    assert cached == 0
    assert read(user(LONG), assistant(), user("more"))[1] == total - total % 128
    assert read(user("x" + LONG), assistant(), user("more"))[1] == 0


def test_responses_reports_the_cached_prefix(model: ScriptedModel, chat: openai.OpenAI) -> None:
    model.extend([FOREVER] * 2)
    for expected in (False, True):
        usage = chat.responses.create(model="m", input=LONG).usage
        assert usage is not None
        assert (usage.input_tokens_details.cached_tokens > 0) is expected


def test_messages_splits_its_input_into_fresh_written_and_read(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    model.extend([FOREVER] * 2)

    def usage(*messages: Any) -> tuple[int, int | None, int | None]:
        answer = claude.messages.create(
            model="m", max_tokens=9, system=[_kept(LONG)], messages=list(messages)
        )
        found = answer.usage
        return found.input_tokens, found.cache_creation_input_tokens, found.cache_read_input_tokens

    system = 4 + default_count(LONG)
    assert usage(user("hi")) == (6, system, 0)
    assert usage(user([_kept("hi")])) == (0, 6, system)


def test_an_expired_cache_is_written_again(
    model: ScriptedModel, server: StrictServer, claude: anthropic.Anthropic
) -> None:
    model.extend([FOREVER] * 2)
    seen = []
    for _ in range(2):
        answer = claude.messages.create(
            model="m",
            max_tokens=9,
            messages=asked([_kept(LONG)]),
        )
        seen.append(answer.usage.cache_read_input_tokens)
        server.expire_cache()
    assert seen == [0, 0]


def test_counting_gives_the_input_that_the_answer_is_billed_for(
    model: ScriptedModel, claude: anthropic.Anthropic
) -> None:
    model.extend([FOREVER])
    history: Any = [user(LONG), assistant(), user("more")]
    counted = claude.messages.count_tokens(model="m", system="brief", messages=history)
    answer = claude.messages.create(model="m", max_tokens=9, system="brief", messages=history)
    assert counted.input_tokens == answer.usage.input_tokens


def test_a_counter_of_ones_own_is_used(model: ScriptedModel) -> None:
    model.extend(["four"])
    with (
        StrictServer(model, count=len) as server,
        openai.OpenAI(base_url=server.openai_base_url, api_key="any") as chat,
    ):
        usage = chat.responses.create(model="m", input="seven77").usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (4 + len("user") + len("seven77"), 4)
