from __future__ import annotations

from ctxgc.invariants import ResultsFollowTheirBatch, for_format
from tests.wire.talk import calls, parsed, results, says, user

BATCH = ResultsFollowTheirBatch()


def test_nothing_may_stand_between_a_batch_and_its_results() -> None:
    history = parsed(
        "openai", user(), calls("openai", "a", "b"), results("openai", "a"), user("wait"),
        results("openai", "b"),
    )  # fmt: skip
    (found,) = BATCH.check(history)
    assert (found.index, found.call_id, found.message_id) == (4, "b", "m4")
    assert found.text == "the result 'b' does not directly follow its call in message 1"


def test_results_of_a_batch_come_in_any_order() -> None:
    history = parsed("openai", user(), calls("openai", "a", "b"), results("openai", "b", "a"))
    assert BATCH.check(history) == []


def test_a_result_behind_a_later_batch_is_out_of_place() -> None:
    history = parsed(
        "openai", calls("openai", "a"), calls("openai", "b"), results("openai", "a", "b")
    )
    assert [(each.index, each.call_id) for each in BATCH.check(history)] == [(2, "a")]


def test_anthropic_wants_results_in_front_of_the_users_text() -> None:
    (message,) = results("anthropic", "a")
    late = {"role": "user", "content": [{"type": "text", "text": "x"}, *message["content"]]}
    early = {"role": "user", "content": [*message["content"], {"type": "text", "text": "x"}]}
    before = [*user(), *calls("anthropic", "a")]
    assert [each.index for each in BATCH.check(parsed("anthropic", before, [late]))] == [2]
    assert BATCH.check(parsed("anthropic", before, [early])) == []


def test_anthropic_reads_messages_of_one_role_as_one() -> None:
    history = parsed(
        "anthropic", user(), calls("anthropic", "a"), calls("anthropic", "b"),
        results("anthropic", "a"), results("anthropic", "b"), user("and?"),
    )  # fmt: skip
    assert BATCH.check(history) == []


def test_a_system_entry_between_anthropic_messages_does_not_count() -> None:
    reminder = [{"role": "system", "content": "be brief"}]
    history = parsed(
        "anthropic", user(), calls("anthropic", "a"), reminder, results("anthropic", "a")
    )
    assert BATCH.check(history) == []


def test_an_answer_between_call_and_result_is_refused_by_anthropic() -> None:
    history = parsed(
        "anthropic", user(), calls("anthropic", "a"), user("hm"), says(), results("anthropic", "a")
    )
    assert [(each.index, each.call_id) for each in BATCH.check(history)] == [(4, "a")]


def test_responses_pairs_by_id_alone() -> None:
    history = parsed(
        "responses", calls("responses", "a"), user("meanwhile"), results("responses", "a")
    )
    assert BATCH not in for_format("responses")
    assert BATCH.check(history) == []


def test_a_history_of_two_formats_is_judged_by_its_first_message() -> None:
    history = [
        *parsed("openai", user()),
        *parsed("responses", calls("responses", "a"), user("wait"), results("responses", "a")),
    ]
    (found,) = BATCH.check(history)
    assert (found.index, found.provider_error.startswith("An assistant message")) == (3, True)
