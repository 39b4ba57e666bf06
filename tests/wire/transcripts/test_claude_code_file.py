"""Claude Code's files: the tree, the ids, and what stands beside a result."""

from __future__ import annotations

import json
from typing import Any

from ctxgc.wire.transcripts import Addition, Revision
from ctxgc.wire.transcripts.claude_code import ClaudeCodeFile
from tests.reported_files import claude_usage
from tests.session_files import OTHER, SESSION, ClaudeCode, claude_code, dumped

Json = dict[str, Any]


def lines(data: bytes) -> list[Json]:
    return [json.loads(line) for line in data.splitlines()]


def broken_links(data: bytes) -> list[Json]:
    """Return the lines of the tree whose parent is not there."""
    found = lines(data)
    known = {line.get("uuid") for line in found}
    return [line for line in found if line.get("parentUuid") not in (*known, None)]


def test_the_window_begins_at_the_last_compaction_and_leaves_subagents_out() -> None:
    said = [entry.data["content"] for entry in ClaudeCodeFile(claude_code()).entries]
    assert said[0] == "Summary: the parser is half done."
    assert "An earlier request, before the compaction." not in said
    assert "Find all callers." not in said
    assert said[-1] == "Good. Now the docs."


def test_results_of_parallel_calls_are_in_the_window() -> None:
    blocks = [
        e.data["content"][0]
        for e in ClaudeCodeFile(claude_code()).entries
        if isinstance(e.data["content"], list)
    ]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert {"toolu_p1", "toolu_p2"} <= set(answered)


def test_a_line_that_leaves_hands_its_children_to_its_parent() -> None:
    data = claude_code()
    file = ClaudeCodeFile(data)
    gone = frozenset(entry.message_id for entry in file.entries[2:-1])
    written = file.write(Revision(gone=gone))
    assert broken_links(written) == []
    leaf = lines(written)[-1]["leafUuid"]
    assert leaf == file.entries[-1].message_id
    last = next(line for line in lines(written) if line.get("uuid") == leaf)
    chain = {line.get("uuid"): line for line in lines(written)}
    assert chain[last["parentUuid"]]["type"] in ("attachment", "user")


def test_a_pointer_to_a_line_that_left_moves_up() -> None:
    made = ClaudeCode()
    first = made.user("one")
    second = made.user("two")
    made.lines.append({"type": "summary", "summary": "s", "leafUuid": second})
    made.user("three")
    written = lines(ClaudeCodeFile(dumped(made.lines)).write(Revision(gone=frozenset([second]))))
    assert [line.get("parentUuid") for line in written if "uuid" in line] == [None, first]
    assert written[1]["leafUuid"] == first


def test_everything_outside_the_window_stays_byte_for_byte() -> None:
    data = claude_code()
    file = ClaudeCodeFile(data)
    edited = {file.entries[1].message_id: {"role": "user", "content": "Another request."}}
    before, after = data.splitlines(), file.write(Revision(edited=edited)).splitlines()
    changed = [n for n, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    assert [json.loads(after[n])["message"]["content"] for n in changed] == ["Another request."]


def test_a_copy_has_its_own_session_id_everywhere_but_in_texts() -> None:
    made = ClaudeCode()
    made.user(f'The file says "sessionId":"{SESSION}" here.')
    written = ClaudeCodeFile(dumped(made.lines)).write(Revision(), OTHER)
    (line,) = lines(written)
    assert line["sessionId"] == OTHER
    assert line["message"]["content"] == f'The file says "sessionId":"{SESSION}" here.'
    whole = lines(ClaudeCodeFile(claude_code()).write(Revision(), OTHER))
    assert {line.get("sessionId") for line in whole} == {OTHER, None}
    assert ClaudeCodeFile(claude_code()).session_id == SESSION


def test_what_is_kept_beside_a_result_says_what_the_result_says() -> None:
    data = claude_code()
    file = ClaudeCodeFile(data)
    results = {
        entry.message_id: entry.data
        for entry in file.entries
        if isinstance(entry.data["content"], list)
        and entry.data["content"][0]["type"] == "tool_result"
    }
    edited = {
        uuid: {**said, "content": [{**said["content"][0], "content": "[gone]"}]}
        for uuid, said in results.items()
    }
    written = {line.get("uuid"): line for line in lines(file.write(Revision(edited=edited)))}
    kept = [written[uuid]["toolUseResult"] for uuid in results]
    reads = [each for each in kept if each.get("type") == "text"]
    assert {(each["file"]["content"], each["file"]["numLines"]) for each in reads} == {
        ("[gone]", 1)
    }
    assert reads[0]["file"]["filePath"] == "/repo/src/m0.py"
    runs = [each for each in kept if "stdout" in each]
    assert runs == [{"stdout": "[gone]", "stderr": "", "interrupted": False}] * 2


def test_a_line_of_ours_joins_the_tree() -> None:
    file = ClaudeCodeFile(claude_code())
    target = file.entries[1].message_id
    written = file.write(Revision(added=(Addition(target, {"role": "user", "content": "Note."}),)))
    ours = next(x for x in lines(written) if x.get("message", {}).get("content") == "Note.")
    after = next(x for x in lines(written) if x.get("uuid") == target)
    assert after["parentUuid"] == ours["uuid"]
    assert (ours["isMeta"], ours["sessionId"], ours["type"]) == (True, SESSION, "user")
    assert broken_links(written) == []
    again = file.write(Revision(added=(Addition(target, {"role": "user", "content": "Note."}),)))
    assert again == written


def usages(data: bytes) -> list[Json]:
    return [x["message"]["usage"] for x in lines(data) if "usage" in x.get("message", {})]


def answered(*prompts: int) -> bytes:
    """Return a talk whose answers took prompts of so many tokens, each on two lines."""
    made = ClaudeCode()
    for number, prompt in enumerate(prompts):
        made.user(f"question {number}")
        for text in ("well", "yes"):
            made.block(f"msg_{number}", {"type": "text", "text": text})
            made.lines[-1]["message"]["usage"] = claude_usage(prompt)
    return dumped(made.lines)


def test_the_usage_of_the_newest_answer_is_lowered_on_all_its_lines_cached_tokens_first() -> None:
    data = answered(20_000, 30_000)
    first, last = claude_usage(20_000), claude_usage(30_000)
    written = ClaudeCodeFile(data).write(Revision(reported=12_000))
    less = {**last, "cache_read_input_tokens": 10_994}
    assert usages(written) == [first, first, less, less]
    none = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 4}
    bare = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 4, "cache_creation": none}
    written = ClaudeCodeFile(data).write(Revision(reported=10))
    assert usages(written)[2:] == [{**last, **bare}] * 2


def test_a_usage_is_never_raised() -> None:
    data = answered(20_000, 30_000)
    assert ClaudeCodeFile(data).write(Revision(reported=30_000)) == data
    assert ClaudeCodeFile(data).write(Revision(reported=99_000)) == data


def test_where_the_newest_answer_leaves_the_one_before_it_is_lowered() -> None:
    file = ClaudeCodeFile(answered(20_000, 30_000))
    gone = frozenset(entry.message_id for entry in file.entries[3:])
    written = file.write(Revision(gone=gone, reported=12_000))
    less = {**claude_usage(20_000), "cache_read_input_tokens": 10_994}
    assert usages(written) == [less, less]


def test_usages_are_one_for_each_answer_of_the_window() -> None:
    file = ClaudeCodeFile(answered(20_000, 30_000))
    assert [(u.prompt, u.line, u.reply_id) for u in file.usages] == [
        (20_000, 2, "msg_0"),
        (30_000, 5, "msg_1"),
    ]
    assert ClaudeCodeFile(claude_code()).usages == []


def test_what_a_compaction_kept_was_reported_for_the_window_before() -> None:
    made = ClaudeCode()
    made.user("one")
    kept = made.block("msg_0", {"type": "text", "text": "1"})
    made.lines[-1]["message"]["usage"] = claude_usage(160_000)
    about = {"trigger": "auto", "preservedMessages": {"uuids": [kept]}}
    made.line("system", subtype="compact_boundary", compactMetadata=about, parent=None)
    made.user("Summary.", isCompactSummary=True)
    made.user("two")
    file = ClaudeCodeFile(dumped(made.lines))
    assert kept in [entry.message_id for entry in file.entries]
    assert file.usages == []


def test_of_answers_without_an_id_only_the_newest_is_lowered() -> None:
    lines_ = lines(answered(20_000, 30_000))
    for line in lines_:
        line["message"].pop("id", None)
    file = ClaudeCodeFile(dumped(lines_))
    prompts = [
        usage["cache_read_input_tokens"] for usage in usages(file.write(Revision(reported=12_000)))
    ]
    assert prompts == [18_994, 18_994, 28_994, 10_994]
