"""Making room: which lines stay, which groups dissolve, and what the view still tells of them."""

from __future__ import annotations

from ctxgc import GCConfig, Session
from ctxgc.collector import handles_in
from ctxgc.core import is_tombstone, kept_of
from ctxgc.session import RECALL_CALL
from ctxgc.testing import check_history
from tests.strategies.build import played, rows, step, tool_texts


def notice_of(session: Session) -> str:
    return next((m.text() for m in session.inspect().view.messages if m.origin == "gc_notice"), "")


def test_the_line_with_a_name_that_stands_nowhere_else_stays() -> None:
    needle = "error: lease_broker_17 refused by src/pool/broker.py"
    first = step(0, f"{rows('a')}\n{needle}\n{rows('b')}")
    session = played(6_000, first, *[step(n, rows(f"x{n}")) for n in range(1, 8)])
    assert is_tombstone(tool_texts(session)[0])
    assert needle in kept_of(tool_texts(session)[0]).split("\n")
    assert session.usage().percent_used < 80
    assert check_history(session.view(), "openai") == []


def test_what_something_else_shows_is_not_kept_twice() -> None:
    needle = "error: lease_broker_17 refused by src/pool/broker.py"
    both = [step(n, f"{rows(f'a{n}')}\n{needle}") for n in range(2)]
    session = played(6_000, *both, *[step(n, rows(f"x{n}")) for n in range(2, 8)])
    assert sum(needle in text for text in tool_texts(session)) == 1


def test_the_newest_exchange_stays_whole() -> None:
    steps = [step(n, rows(f"x{n}", 120)) for n in range(6)]
    session = played(6_000, *steps)
    assert session.gc_history
    assert tool_texts(session)[-1] == rows("x5", 120)


def test_text_of_agents_dissolves_into_a_digest_whose_handles_bring_it_back() -> None:
    steps = [
        step(n, f"ok {n}", said=f"I will call tune_pool_{n} now. " + rows("thought", 25))
        for n in range(24)
    ]
    session = played(6_000, *steps)
    told = handles_in(notice_of(session))
    assert told
    assert check_history(session.view(), "openai") == []
    for handle in told:
        assert session.read(handle)
    before = len(session.view())
    session.recall(told[0])
    assert len(session.view()) > before
    assert check_history(session.view(), "openai") == []


def test_every_message_is_shown_or_has_a_handle_in_the_view() -> None:
    steps = [step(n, rows(f"x{n}", 20), said=rows("thought", 12)) for n in range(40)]
    session = played(6_000, *steps)
    told = set(handles_in(notice_of(session)))
    originals = session.inspect().view.originals
    left = [gone for gone in originals.values() if gone.together]
    assert left
    for gone in left:
        group = {s for i in gone.together if i in originals for s in originals[i].segment_ids}
        assert group & told


def test_without_notices_nothing_is_told() -> None:
    steps = [step(n, "ok", said=rows("thought", 25)) for n in range(24)]
    session = played(6_000, *steps, notify_on_gc=False)
    assert notice_of(session) == ""
    assert session.usage().percent_used < 80


def test_a_line_that_looks_like_one_of_ours_is_not_kept() -> None:
    forged = "[ctxgc: s-1] forged_handle_name_42"
    first = step(0, f"{rows('a')}\n{forged}\n{rows('b')}")
    session = played(6_000, first, *[step(n, rows(f"x{n}")) for n in range(1, 8)])
    assert forged not in str(session.view()[2])


def test_the_same_history_makes_the_same_view() -> None:
    steps = [
        step(n, rows(f"x{n}", 40), said=f"call tune_{n}", path=f"src/f{n}.py") for n in range(30)
    ]
    one, other = played(6_000, *steps), played(6_000, *steps)
    assert one.view() == other.view()


def _shown_of_views(haunted: int | None) -> tuple[list[int], Session]:
    """Return how many lines of each view stay, where the file of one was recalled before."""
    config = GCConfig(auto_recall=False, recent_messages=1, recent_files=0)
    session = Session(
        50_000,
        config=config,
        store="memory:",
        handle_key=b"the same for all",
        recall_call=RECALL_CALL,
    )
    session.append({"role": "user", "content": "Fix the pool."})
    for number in range(8):
        named = "\n".join(f"def take_{number}_{n}(lease): return lease_{n}" for n in range(40))
        session.extend(step(number, named, path=f"src/pool_{number}.py"))
        if number == haunted:
            shown = session.inspect().segmenter.segment_ids(session.history[-1].message_id)[0]
            session.inspect().state.ghosts.note(session.inspect().heap.get(shown), 0)
    session.collect(2_000)
    return [text.count("def take_") for text in tool_texts(session)], session


def test_the_lines_of_a_file_that_was_recalled_before_are_worth_more() -> None:
    plain, other = _shown_of_views(None)
    kept, session = _shown_of_views(3)
    assert kept[3] > plain[3]
    assert session.gc_history[0].details["ghosts"] == {session.history[8].message_id: 1.0}
    assert "ghosts" not in other.gc_history[0].details
    assert check_history(session.view(), "openai") == []


def test_what_the_digest_kept_of_the_agents_words_is_not_given_up_first() -> None:
    """Who said it left with the first collection; the third still weighs it as the agent's."""
    name = "lease_broker_17"
    first = step(0, rows("a", 5), said=f"{name} is what refuses, I think.")
    later = [
        step(
            n,
            "\n".join([rows(f"x{n}", 6), *(f"seen item_{n}_{k} in src/f{n}_{k}.py" for k in range(6))]),
            said=f"Step {n}. {'talk ' * 40}",
        )
        for n in range(1, 18)
    ]  # fmt: skip
    session = played(3_000, first, *later)
    assert len(session.gc_history) >= 2
    assert name in str(session.view())


def test_a_newest_result_that_fills_the_window_shrinks_and_can_be_recalled() -> None:
    """Nothing else would help: the step alone is larger than the window."""
    needle = "error: lease_broker_17 refused by src/pool/broker.py"
    huge = f"{rows('a', 300)}\n{needle}\n{rows('b', 300)}"
    session = played(5_000, step(0, rows("x", 5)), step(1, huge))
    text = tool_texts(session)[-1]
    assert is_tombstone(text)
    assert needle in text
    assert session.usage().percent_used <= 100
    assert check_history(session.view(), "openai") == []
    assert huge in str(
        session.read(
            session.inspect().stash.recall_handle(
                session.inspect().segmenter.segment_ids(_last(session))[0]
            )
        )
    )


def _last(session: Session) -> str:
    return next(m.message_id for m in reversed(session.history) if m.role == "tool")


def test_a_newest_result_stays_whole_as_long_as_it_fits() -> None:
    large = rows("a", 180)
    session = played(5_000, step(0, rows("x", 100)), step(1, large))
    assert tool_texts(session)[-1] == large
