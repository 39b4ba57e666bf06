"""The clairvoyant that leaves lines: the needed ones, verbatim."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.lab.oracles import LONGEST_LINE, STUB, cover, facts_of
from tests.lab.long_runs import calls, long_results, tool
from tests.lab.making import FACTS, run_of, user
from tests.lab.test_oracle_message import DULL, contents, needed_late


def test_only_the_needed_lines_of_a_result_stay() -> None:
    text = f"{DULL}\nthe port is cfg_port_8443 here\n{DULL}"
    run = run_of(user("go"), calls("a", ["x"]), tool("x", text), *needed_late("cfg_port_8443"))
    assert contents("oracle-line", run)[0] == f"{STUB}\nthe port is cfg_port_8443 here"


@given(text=long_results(), needed=st.frozensets(st.sampled_from(FACTS)))
def test_a_cover_is_lines_of_the_text_in_order_that_hold_every_needed_fact_there_is(
    text: str, needed: frozenset[str]
) -> None:
    lines = cover(text, needed)
    there = facts_of(text) & needed
    assert {fact for line in lines for fact in facts_of(line)} >= there
    assert len(lines) <= len(there)
    rest = iter(text.split("\n"))
    assert all(line in rest for line in lines)


def test_one_line_with_all_facts_is_taken_before_many_with_one() -> None:
    text = "load_config\nHttpServer\nload_config, HttpServer\n12345"
    assert cover(text, frozenset({"load_config", "HttpServer"})) == ["load_config, HttpServer"]


def test_of_a_long_line_only_the_surroundings_of_a_fact_are_taken() -> None:
    line = "word " * LONGEST_LINE + "load_config" + " word" * LONGEST_LINE
    at = line.index("load_config")
    assert cover(line, frozenset({"load_config"})) == [line[at - 25 : at + len("load_config") + 25]]
