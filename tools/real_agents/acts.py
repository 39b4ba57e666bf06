"""What is shown on a stage, act by act. Each returns what it saw, or fails with what was wrong."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxgc.mcp.tools import TOOLS
from ctxgc.testing import RecordedRequest, ToolCall, check_history
from ctxgc.wire.transcripts import open_writable
from tools.real_agents.claude_code import ClaudeCode
from tools.real_agents.stage import NEEDLE, Stage

TASK = "Find out why port 48151 is busy. You must never change the port in server.py."
CONSTRAINT = "You must never change the port in server.py."
DECISION = "We decided to stop the old worker instead of moving the port."
RECALL = "mcp__ctxgc__context_recall"
HANDLE = re.compile(r"h-[a-z2-7]{16}")
MOST_EVACUATED = 8_000
_THOUGHT = 3.0
"""Seconds that a model thinks: agents write their transcripts a moment after the fact."""


def must(holds: object, what: str) -> None:
    """Fail with a sentence if something does not hold."""
    if not holds:
        raise AssertionError(what)


def evacuation_and_recall(stage: Stage) -> tuple[str, str]:
    """A huge output enters the conversation evacuated, and the agent recalls a span of it."""

    def recall(request: RecordedRequest) -> ToolCall:
        handle = HANDLE.findall(stage.outputs(request)[0])[0]
        return ToolCall(RECALL, {"handle": handle, "lines": [990, 1_010]})

    first = len(stage.server.requests)
    stage.script.extend([stage.shell("cat build.log"), recall, DECISION])
    session = stage.say(TASK)
    outputs = stage.outputs(stage.server.requests[-1])
    must(len(outputs) >= 2, f"{len(outputs)} outputs reached the model")
    evacuated, recalled = outputs[0], outputs[-1]
    must(evacuated.startswith("[ctxgc:"), f"the output is not evacuated: {evacuated[:200]}")
    must(len(evacuated) < MOST_EVACUATED, f"{len(evacuated)} characters of it stayed")
    must(NEEDLE in evacuated, "the matching line did not stay")
    must("step 0 of" in evacuated and "step 1999 of" in evacuated, "head or tail did not stay")
    must("step 995 of the build" in recalled, f"the recalled span is wrong: {recalled[:300]}")
    whole = (stage.repository / "build.log").stat().st_size
    seen = len(stage.server.requests) - first
    return session, f"{whole} characters became {len(evacuated)} in {seen} requests; span recalled"


def compaction(stage: Stage, session: str) -> str:
    """After a compaction the roots are back, and the transcript before it is kept."""
    stage.script.extend(["a poor summary", "going on"])
    stage.compact(session)
    sent = json.dumps(stage.server.requests[-1].body, ensure_ascii=False)
    for root in (TASK, CONSTRAINT, DECISION):
        must(root in sent, f"after the compaction the model is not told: {root}")
    must("Constraints from the user" in sent, "the roots were not brought back by the hook")
    must(HANDLE.search(sent), "the handle of the stashed output is not named")
    kept = list((stage.ours / "checkpoints").rglob("*.jsonl"))
    must(len(kept) == 1, f"{len(kept)} checkpoints were made")
    must(TASK in kept[0].read_text(encoding="utf-8"), "the checkpoint does not hold the task")
    return f"the roots were back; {kept[0].stat().st_size} bytes of transcript were kept before"


def pruned_session(stage: Stage) -> str:
    """A session pruned by `ctxgc prune` is resumed: a valid history, smaller, with every root.

    The agent may hold less than the session had before, so it must see that there is room now.
    """
    reads = [stage.shell(f"head -c {12_000 - n} build.log") for n in range(16)]
    stage.script.extend([*reads, DECISION])
    session = stage.say(TASK)
    original = stage.server.requests[-1]
    transcript = stage.transcript(session)
    before = transcript.read_bytes()
    out = stage.ctxgc("prune", str(transcript), "-o", f"{transcript.parent}/")
    must(transcript.read_bytes() == before, "the original was changed")
    resumed = stage.pruned_id(transcript)
    must(resumed != session, f"prune wrote no session of its own: {out[-500:]}")
    full, freed = (_reported(stage, each) for each in (session, resumed))
    stage.compact_at = (full + freed) // 2
    stage.script.extend([lambda request: _recall_first(stage, request), "resumed"])
    stage.say("What did we decide?", resumed)
    stage.compact_at = None
    request = stage.server.requests[-1]
    must(len(stage.outputs(request)) > len(reads), "the pruned session was compacted at once")
    took = _reported(stage, resumed, newest=1)
    must(0.8 < freed / took < 1.25, f"{freed} tokens were told of a request that took {took}")
    recalled = stage.outputs(request)[-1]
    must("step 0 of the build" in recalled, f"what was pruned is not recalled: {recalled[:300]}")
    sent = json.dumps(request.messages, ensure_ascii=False)
    for root in (TASK, DECISION, "What did we decide?"):
        must(root in sent, f"the pruned session does not hold: {root}")
    was, now = (sum(map(len, stage.outputs(each))) for each in (original, request))
    must(now < 0.7 * was, f"the outputs still have {now} of {was} characters")
    breaches = check_history(stage.history(request), request.format)
    must(not breaches, f"the provider would refuse it: {breaches[:3]}")
    return (
        f"{was} characters of outputs became {now}, {full} tokens {freed} ({took} by the provider); "
        "the history is valid and holds every root"
    )


def pruned_in_place(stage: Stage) -> str:
    """A session is pruned in its own file, from another folder; the model recalls, and `undo` works."""
    stage.script.extend(
        [*(stage.shell(f"head -c {9_000 - n} build.log") for n in range(8)), DECISION]
    )
    session = stage.say(TASK)
    transcript = stage.transcript(session)
    before = transcript.read_bytes()
    _let_rest(transcript)
    stage.ctxgc("prune", str(transcript), "--preset", "tight", "--in-place", folder=stage.home)
    must(transcript.read_bytes() != before, "nothing was pruned in place")
    stage.script.extend([lambda request: _recall_first(stage, request), "seen"])
    stage.say("What was in the log?", session)
    _must_be_recalled(stage)
    _let_rest(transcript)
    stage.ctxgc("undo", str(transcript), folder=stage.home)
    must(transcript.read_bytes().startswith(before), "undo did not restore the session")
    return "the model recalled what the file had lost, and undo restored it"


def pruned_without_server(stage: Stage) -> str:
    """Where the agent has no server, a pruned session names no handle, and the history is valid."""
    stage.script.extend(
        [*(stage.shell(f"head -c {9_000 - n} build.log") for n in range(8)), DECISION]
    )
    transcript = stage.transcript(stage.say(TASK))
    out = stage.ctxgc("prune", str(transcript), "-o", f"{transcript.parent}/")
    must(
        f"`ctxgc install {stage.name}`" in out, f"prune does not say what to install: {out[-500:]}"
    )
    stage.script.append("resumed")
    stage.say("What did we decide?", stage.pruned_id(transcript))
    request = stage.server.requests[-1]
    outputs = "\n".join(stage.outputs(request))
    must("[ctxgc:" in outputs, "nothing was pruned")
    named = HANDLE.findall(outputs)
    must(not named and "context_recall" not in outputs, f"it names handles: {named[:3]}")
    must(not check_history(stage.history(request), request.format), "the history is not valid")
    stage.ctxgc("install", stage.name)
    stage.ctxgc("prune", str(transcript), "-o", f"{transcript.parent}/")
    stage.script.extend([lambda asked: _recall_first(stage, asked), "seen"])
    stage.say("What was in the log?", stage.pruned_id(transcript))
    _must_be_recalled(stage)
    stage.ctxgc("uninstall", stage.name)
    return (
        f"{len(outputs)} characters of outputs stayed, without a handle; once installed, recalled"
    )


def mcp_tools(stage: Stage) -> str:
    """The agent takes segments in, asks for a plan, applies it and recalls by name."""
    kept = "the staging port is 48152"
    segments = [{"text": kept, "type": "log", "name": "port"}]
    segments += [{"text": f"line {n}: nothing to see", "type": "log"} for n in range(14)]

    def prune(request: RecordedRequest) -> ToolCall:
        plan = re.findall(r'plan_id\\?"\s*:\s*\\?"([^"\\]+)', stage.outputs(request)[-1])[0]
        return ToolCall("mcp__ctxgc__context_gc_prune", {"plan_id": plan})

    stage.script.extend(
        [
            ToolCall("mcp__ctxgc__context_ingest", {"segments": segments}),
            ToolCall("mcp__ctxgc__context_gc_analyze", {"max_candidates": 3}),
            prune,
            ToolCall(RECALL, {"handle": "port"}),
            "tidied up",
        ]
    )
    stage.say("tidy up")
    outputs = stage.outputs(stage.server.requests[-1])[-4:]
    must(len(outputs) == 4, f"only {len(outputs)} tools answered")
    must("tokens_saved" in outputs[2], f"prune said: {outputs[2][:300]}")
    must(kept in outputs[3], f"recall said: {outputs[3][:300]}")
    return f"ingest, analyze, prune and recall answered (of {len(TOOLS)} tools)"


def own_window(stage: Stage) -> str:
    """The server speaks of the agent's own window: what it tells is what the transcript reports."""

    def ask(_: RecordedRequest) -> ToolCall:
        time.sleep(_THOUGHT)
        return ToolCall("mcp__ctxgc__context_usage", {})

    stage.script.extend(
        [
            *(stage.shell(f"head -c {12_000 - n} build.log") for n in range(4)),
            stage.shell("cat build.log"),
            ask,
            lambda request: _recall_first(stage, request),
            "asked",
        ]
    )
    session = stage.say("How full is your window?")
    _must_be_recalled(stage)
    told = re.findall(
        r'\\?"(tokens|zone)\\?"\s*:\s*\\?"?(\w+)', stage.outputs(stage.server.requests[-1])[-2]
    )
    must(told, "context_usage told nothing")
    usage = dict(reversed(told))
    took = _reported(stage, session, newest=2)
    must(usage["zone"] == "safe", f"it told {usage}")
    must(0.8 < int(usage["tokens"]) / took < 1.25, f"it told {usage} of a request of {took} tokens")
    return f"context_usage told {usage['tokens']} tokens of a request that took {took}; recalled"


def works_when_broken(stage: Stage) -> str:
    """The agent goes on, and the output arrives, whatever is broken on our side."""
    breaks: dict[str, Callable[[Stage], None]] = {
        "a stash that cannot be written": _block_inbox,
        "a damaged store": _damage_store,
        "a hook command that is missing": _lose_program,
    }
    for what, damage in breaks.items():
        damage(stage)
        stage.script.extend([stage.shell("head -c 20000 build.log"), "seen"])
        stage.say(f"look again, with {what}")
        last = stage.outputs(stage.server.requests[-1])[-1]
        must("step 0 of the build" in last, f"with {what} the output was lost: {last[:300]}")
        if damage is not _damage_store:
            must("step 300 of the build" in last, f"with {what} the output was cut: {last[:300]}")
    return "it worked on with " + ", ".join(breaks)


def uninstalled(stage: Stage, before: dict[str, bytes]) -> str:
    """Everything is what it was, byte for byte, but for the agent's own files."""
    stage.ctxgc("uninstall", stage.name, "--delete-stash")
    after = stage.snapshot()
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    must(not changed, f"not as it was: {', '.join(changed)}")
    traces = [p for p in _configuration(stage) if b"ctxgc" in p.read_bytes()]
    must(not traces, f"traces in {traces}")
    return f"{len(after)} files are what they were, byte for byte"


def conversion(source: Stage, target: Stage, session: str | None = None) -> tuple[str, str]:
    """A session of one agent is converted, and the other one goes on with it: all of it is sent.

    What a hook of the first one had evacuated is recalled by the second.

    Returns the id of the new session and what was seen; a `session` is converted as it is.
    """
    first = session is None
    if session is None:
        source.script.extend(
            [source.shell("cat README.md"), source.shell("cat build.log"), DECISION]
        )
        session = source.say(TASK)
    transcript = source.transcript(session)
    before = transcript.read_bytes()
    told = json.loads(target.ctxgc("convert", source.name, target.name, str(transcript), "--json"))
    must(transcript.read_bytes() == before, "the original was changed")
    question = "What did we decide?" if first else "And what is this project?"
    target.script.extend(
        [target.shell("cat server.py"), lambda asked: _recall_first(target, asked), "resumed"]
    )
    target.say(question, told["session_id"])
    request = target.server.requests[-1]
    sent = json.dumps(request.messages, ensure_ascii=False)
    for said in (TASK, DECISION, "# A sample project", question):
        must(said in sent, f"{target.name} was not told: {said}")
    outputs = target.outputs(request)
    must(any("PORT = 48151" in output for output in outputs), "the next call was not answered")
    _must_be_recalled(target)
    # An agent that waits for our server has outputs of its own in between.
    must(len(outputs) >= (4 if first else 6), f"{len(outputs)} outputs reached the model")
    breaches = check_history(target.history(request), request.format)
    must(not breaches, f"the provider would refuse it: {breaches[:3]}")
    seen = f"{source.name} to {target.name}: {told['messages']} messages, {len(outputs)} outputs, recalled"
    return str(told["session_id"]), seen


def valid_histories(stage: Stage) -> str:
    """The server refused nothing that the agent sent."""
    refused = [breach for refusal in stage.server.refusals for breach in refusal.breaches]
    must(not refused, f"refused: {refused[:3]}")
    must(not stage.server.script_errors, f"the script failed: {stage.server.script_errors[:3]}")
    return f"{len(stage.server.requests)} requests, none refused"


def plugin(stage: ClaudeCode) -> str:
    """The plugin folder is valid, and its hooks and its server work without any installation."""
    folder = stage.repository.parent / "plugin"
    stage.ctxgc("plugin-folder", str(folder))
    said = stage.agent("plugin", "validate", str(folder))
    must("Validation passed" in said, f"the plugin is not valid: {said[-500:]}")
    tool = "mcp__plugin_ctxgc_ctxgc__context_recall"
    stage.allowed = f"Bash,{tool}"
    stage.script.append(stage.shell("cat build.log"))
    stage.script.append(lambda request: _recall_first(stage, request, tool))
    stage.script.append("seen")
    stage.events("look", "--plugin-dir", str(folder))
    evacuated, recalled = stage.outputs(stage.server.requests[-1])[-2:]
    must(f"{tool}(handle=" in evacuated, f"the output is not evacuated: {evacuated[:300]}")
    must("step 0 of the build" in recalled, f"it is not recalled: {recalled[:300]}")
    return "validated by Claude Code; its hooks evacuated and its server recalled"


def _reported(stage: Stage, session: str, newest: int = 0) -> int:
    """Return the tokens of the newest request of a session, or of one before it."""
    usages = open_writable(stage.transcript(session)).usages
    return usages[-1 - newest].prompt


def _recall_first(stage: Stage, request: RecordedRequest, tool: str = RECALL) -> ToolCall:
    handles = HANDLE.findall("\n".join(stage.outputs(request)))
    must(handles, "no output names a handle")
    return ToolCall(tool, {"handle": handles[0]})


def _must_be_recalled(stage: Stage) -> None:
    recalled = stage.outputs(stage.server.requests[-1])[-1]
    must("step 0 of the build" in recalled, f"what had left is not recalled: {recalled[:300]}")


def _let_rest(path: Path) -> None:
    """Let a file look as if its agent had ended a minute ago."""
    past = time.time() - 60
    os.utime(path, (past, past))


def _configuration(stage: Stage) -> list[Path]:
    names = (".claude.json", ".claude/settings.json", ".codex/config.toml", ".codex/hooks.json")
    return [stage.home / name for name in names if (stage.home / name).exists()]


def _block_inbox(stage: Stage) -> None:
    inbox = stage.ours / "stash.sqlite.inbox"
    for path in inbox.glob("*"):
        path.unlink()
    inbox.rmdir()
    inbox.write_bytes(b"no folder")


def _damage_store(stage: Stage) -> None:
    (stage.ours / "stash.sqlite.inbox").unlink()
    for path in stage.ours.glob("stash.sqlite*"):
        path.write_bytes(b"this is no database" * 100)


def _lose_program(stage: Stage) -> None:
    for path in _configuration(stage):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"[^\" ]*/python(?= -P)", "/missing/python", text), encoding="utf-8")


def lists_tools(events: list[dict[str, Any]]) -> str:
    """The agent lists all of our tools."""
    start = next((event for event in events if event.get("subtype") == "init"), {})
    listed = {name.rpartition("__")[2] for name in start.get("tools", ()) if "ctxgc" in name}
    missing = sorted({tool.name for tool in TOOLS} - listed)
    must(not missing, f"it does not list {', '.join(missing)}")
    return f"it lists {len(listed)} tools"
