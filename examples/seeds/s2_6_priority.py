"""S2 "Priority Order", block 6: what gc_budget of ours takes first, next, under pressure, and never."""

from ctxgc import GCConfig, GCPolicy, Session

# -- the block

ORDER = """
Removal Priority (first to go):
1a. ENRICHMENT (bulk clear)
    - All enrichment content removed at once
    - Regenerated each turn anyway

1b. Other EPHEMERAL entries (oldest first)
    - Working output in conversation
    - Discoverable tool schemas

2. PARTIAL entries (conversation turns, oldest first)
   - Respect preserve_recent_turns
   - Respect pinned_turn_indices

3. PRESERVABLE entries (only under extreme pressure > pressure_percent)
   - Clarification Q&A
   - Turn summaries

4. LOCKED entries (never touched)
   - System instructions
   - Original user request
   - Core tool schemas
"""

# -- ours

CONFIG = GCConfig(preserve_recent_turns=1, notify_on_gc=False, auto_trigger=False)


def session(target):
    """Return what is left of a session that was collected to a target, at 95% of its window."""
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    said = [
        {"role": "system", "content": "Be careful. " * 5},
        {"role": "user", "content": "Set up the database. " + "word " * 20},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "working output " * 20},
        {"role": "assistant", "content": "I looked around. " + "word " * 20},
        {"role": "user", "content": "What did you see? " + "word " * 20},
        {"role": "assistant", "content": "Which database do you want?"},
        {"role": "user", "content": "PostgreSQL, please."},
        {"role": "assistant", "content": "It runs."},
        {"role": "user", "content": "Thank you."},
    ]
    with Session(10_000, store="memory:", plugin="gc_budget") as measured:
        fill(measured, said)
        size = measured.usage().total_tokens
    with Session(int(size / 0.95), store="memory:", plugin="gc_budget", config=CONFIG) as made:
        fill(made, said)
        made.collect(int(size * target))
        texts = [message.text() or message.parts[0].text for message in made.history]
        return made.enrichment(), [t["name"] for t in made.live_tools()], " ".join(texts)


def fill(made, said):
    made.set_tools(
        [{"name": "read", "input_schema": {}}, {"name": "deploy", "input_schema": {}}],
        {"deploy": GCPolicy.CONDITIONAL},
    )
    made.enrich("docs", "found " * 30)
    made.extend(said)


# 1a: enrichment, all at once
enrichment, tools, text = session(0.95)
assert enrichment == {} and tools == ["read", "deploy"] and "working output" in text
# 1b: working output and discoverable schemas
enrichment, tools, text = session(0.75)
assert tools == ["read"] and "working output" not in text and "I looked around" in text
# 2: turns
enrichment, tools, text = session(0.45)
assert "I looked around" not in text and "PostgreSQL" in text
# 3: clarifications, as it is above `pressure_percent`; 4: never
enrichment, tools, text = session(0.0)
assert "PostgreSQL" not in text and "Be careful" in text and "Set up the database" in text
assert tools == ["read"]
