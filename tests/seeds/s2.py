"""S2: GC plugins and budget backend integration."""

from __future__ import annotations

from tests.seeds import Requirement, section

ENTRIES: tuple[Requirement, ...] = (
    *section(
        "S2.entry",
        "1 SourceEntry, message id tracking",
        {
            "fields": "A SourceEntry has source, tokens and gc_policy.",
            "label-default": "`label` is None unless given.",
            "children-default": "`children` is an empty mapping of its own.",
            "metadata-default": "`metadata` is an empty mapping of its own.",
            "created-at-default": "`created_at` is the time of creation in float seconds.",
            "created-at-to-dict": "`to_dict()` includes `created_at`.",
            "created-at-restored": "Restoring from a snapshot keeps `created_at`.",
            "message-ids-default": "`message_ids` is an empty list of its own.",
            "changes": "An entry of a budget may be changed: `entry.tokens = 0`, `entry.children.clear()`.",
        },
        issue=3,
        code="budget/entry.py",
        differs={
            "message-ids-default": "A tuple: it is replaced, not appended to, so that the budget hears of it.",
            "changes": "The budget counts the change at once.",
        },
    ),
    *section(
        "S2.removal",
        "2 GCResult: removal list",
        {
            "fields": "A GCRemovalItem has source, child_key, tokens_freed and reason.",
            "child-key-default": "`child_key` None, the default, means the entire source.",
            "tokens-freed-default": "`tokens_freed` is 0 unless given.",
            "reason-default": "`reason` is empty unless given.",
            "turn-keys": "A removal names the child as the budget does: `turn_3` if that is its key.",
        },
        issue=3,
        code="strategies/base.py",
        differs={
            "fields": "With `message_ids`, the messages that left or shrank.",
            "turn-keys": "A turn of which a message must stay (the original request) stays whole. What a budget does not book goes by the id of its message; without a budget a whole turn is `turn_N`, a part of one its messages. gc_mark_sweep also lists what only shrank, with what that freed; the seed's loop, which knows removal only, would remove it whole.",
        },
        doors={
            "turn-keys": {
                "engine": "`plugin.collect(..., budget)`: the keys of the budget that is given.",
                "Session": "Each message is a child of its own, under its id; a plugin may still name `turn_N`.",
            },
        },
    ),
    *section(
        "S2.result",
        "2 GCResult: removal list",
        {
            "fields": "A GCResult has success, items, tokens before and after, plugin and trigger.",
            "notification-default": "`notification` is None unless given.",
            "details-default": "`details` is an empty mapping of its own.",
            "error-default": "`error` is None unless given.",
            "removal-list-default": "`removal_list` is an empty list of its own.",
        },
        issue=3,
        code="strategies/base.py",
        differs={
            "fields": "With `shortfall`, the tokens above the target.",
        },
    ),
    *section(
        "S2.config",
        "3 GCConfig: target threshold",
        {
            "threshold-percent-default": "`threshold_percent` is 80.",
            "target-percent-default": "`target_percent` is 60.",
            "pressure-percent-default": "`pressure_percent` is 90.",
            "max-turns-default": "`max_turns` is None.",
            "auto-trigger-default": "`auto_trigger` is True.",
            "check-before-send-default": "`check_before_send` is True.",
            "preserve-recent-turns-default": "`preserve_recent_turns` is 5.",
            "pinned-turn-indices-default": "`pinned_turn_indices` is an empty list of its own.",
            "plugin-config-default": "`plugin_config` is an empty mapping of its own.",
            "file": "The file form with `plugin` and `config` loads.",
        },
        issue=3,
        code="config/gc_config.py",
        differs={
            "pressure-percent-default": "0 or null means continuous mode: collect whenever above the target, never what is preservable.",
            "file": "Unknown keys are errors that name the nearest known key; they used to be ignored.",
        },
    ),
    *section(
        "S2.environment",
        "Environment variables",
        {
            "threshold": "`JAATO_GC_THRESHOLD` sets the threshold.",
            "target": "`JAATO_GC_TARGET` sets the target.",
            "pressure": "`JAATO_GC_PRESSURE` sets the pressure mark.",
        },
        issue=3,
        code="config/environment.py",
        differs={
            "threshold": "Read as an alias of `CTXGC_THRESHOLD_PERCENT`.",
            "target": "Read as an alias of `CTXGC_TARGET_PERCENT`.",
            "pressure": "Read as an alias of `CTXGC_PRESSURE_PERCENT`.",
        },
    ),
    *section(
        "S2.plugin",
        "4 GCPlugin protocol",
        {
            "collect-budget": "`collect` takes an optional budget.",
            "collect-returns": "`collect` returns the new history and a result with a removal list.",
            "runtime-checkable": "`isinstance` tells whether an object is a GCPlugin.",
        },
        issue=3,
        code="strategies/base.py",
    ),
    *section(
        "S2.session",
        "5 Session: handle removal list",
        {
            "passes-budget": "The session hands history, usage, config, reason and budget to the plugin.",
            "updates-history": "On success the history is the plugin's.",
            "failure-changes-nothing": "Without success nothing changes.",
            "removes-child": "An item with a child key removes that child from the budget.",
            "clears-source": "An item without a child key clears the entire source.",
            "no-budget": "Without a budget the removal list is not applied, and nothing fails.",
            "emits-update": "A budget update is emitted after a collection.",
        },
        issue=3,
        code="session/collection.py",
        differs={
            "updates-history": "After the proposal passed the checks: one that loses a pin, orphans a call, reorders or grows the history is refused.",
            "removes-child": "The seed's own loop works on a budget of its user. The session goes by the messages that really left, so that each removal reaches the budget.",
        },
    ),
    *section(
        "S2.budget",
        "Design decisions, budget API",
        {
            "granularity": "The budget tracks children: per tool and per turn.",
            "add-child": "`add_child` adds a child with tokens, policy, label and metadata.",
            "get-child": "`get_child` and `get_entry` find what was added.",
            "remove-child": "`remove_child` removes one child.",
            "total-tokens": "`total_tokens()` sums entries and children.",
        },
        issue=3,
        code="budget/budget.py",
        differs={
            "granularity": "Whatever children its user makes: a turn, a message, a tool.",
        },
        doors={
            "granularity": {
                "Session": "One child for each message, under its id, and one for each tool and each enrichment.",
            },
        },
    ),
    *section(
        "S2.gc-budget",
        "New plugin: gc_budget",
        {
            "enrichment-bulk": "Phase 1a clears all enrichment at once.",
            "ephemeral-oldest-first": "Phase 1b removes other ephemeral entries, oldest first.",
            "ephemeral-keeps-recent": "The most recent ephemeral entries stay.",
            "partial-oldest-first": "Phase 2 removes partial turns, oldest first.",
            "partial-preserves-recent": "Phase 2 respects `preserve_recent_turns`.",
            "partial-respects-pins": "Phase 2 respects `pinned_turn_indices`.",
            "preservable-under-pressure": "Phase 3 touches preservable entries only under pressure.",
            "preservable-kinds": "Clarifications and turn summaries are preservable.",
            "ephemeral-kinds": "Working output and discoverable tool schemas are ephemeral.",
            "locked-never": "Locked entries are never touched.",
            "locked-kinds": "System text, the original request and core tool schemas are locked.",
            "fallback": "Without a budget it truncates.",
            "nothing-to-free": "At or under the target it collects nothing and succeeds.",
            "stops-at-target": "Each phase stops once the target is reached.",
            "reasons": "Each removal carries the reason of its phase.",
            "details": "`details` counts what each phase removed.",
            "tokens-after": "Tokens before and after come from the budget.",
            "schemas-silent": "Removing a tool schema adds no notification.",
        },
        issue=3,
        code="strategies/budget.py",
        differs={
            "enrichment-bulk": "Unless a protected message is part of it.",
            "ephemeral-oldest-first": "Among entries of one age the largest goes first.",
            "ephemeral-keeps-recent": "`preserve_recent_turns` and pins hold in this phase, too; the seed's algorithm forgets them here.",
            "partial-oldest-first": "Messages that belong together (a call and its result) leave together, under their strictest policy.",
            "stops-at-target": "Nothing is listed twice; the seed's algorithm finds ephemeral turns again in phase 2.",
            "tokens-after": "Counted on the new history, the notice included, not subtracted from an estimate.",
        },
    ),
    *section(
        "S2.clarifications",
        "New plugin: gc_budget",
        {
            "found": "Clarification questions and their answers are preservable by themselves.",
        },
        issue=3,
        code="session/clarifications.py",
        differs={
            "found": "Only what is plainly one: a call of a tool such as `ask_user`, or a message that does nothing but ask and is answered at once; `set_policy` does it for others. `preserve_clarifications` switches it off.",
        },
        doors={
            "found": {
                "engine": "Not there: whoever makes the budget gives the policy.",
                "Session": "As messages come in; gc_budget goes by it.",
            },
        },
    ),
    *section(
        "S2.tools",
        "New plugin: gc_budget",
        {
            "live": "A tool schema that left is not sent: `Session.live_tools()` says which are.",
            "used": "A discoverable schema is locked by the first call of its tool.",
            "client": "ChatClient sends the live schemas and no others.",
        },
        issue=3,
        code="session/alongside.py",
        differs={
            "live": "The seed takes a schema out of the budget only. Here it comes back when a message names its tool.",
        },
        doors={
            "live": {
                "Session": "Send what `live_tools()` returns; ChatClient does.",
                "MCP": "Not there: the client of the server sends its own tools.",
                "CLI": "Not there: a coding agent sends its own tools.",
            },
        },
    ),
    *section(
        "S2.enrichment",
        "New plugin: gc_budget",
        {
            "live": "Enrichment that was cleared is neither sent nor counted until it is made again.",
        },
        issue=3,
        code="session/alongside.py",
        differs={
            "live": "`Session.enrichment()` has the texts to send now. ChatClient sends them after the messages, as the user's.",
        },
    ),
    *section(
        "S2.plugins",
        "Updating existing plugins",
        {
            "truncate-removal-list": "gc_truncate lists each turn it removed as truncated.",
            "summarize-removal-list": "gc_summarize lists each turn it replaced as summarized.",
            "summarize-tokens": "gc_summarize reports the tokens of its summary.",
            "hybrid-ancient": "gc_hybrid lists ancient turns as ancient_truncated.",
            "hybrid-middle": "gc_hybrid lists middle turns as middle_summarized.",
        },
        issue=3,
        code="strategies",
        differs={
            "truncate-removal-list": "Only as many turns as the target asks for; of the first turn only the answer, since the original request stays, unless the budget has the turn as one child.",
            "summarize-removal-list": "Only as many turns as the target asks for; of the first turn only the answer, since the original request stays, unless the budget has the turn as one child.",
        },
    ),
    *section(
        "S2.summary",
        "Budget sync after summary",
        {
            "child": "A summary becomes a child of the conversation.",
            "policy": "A summary is preservable.",
            "label": "A summary's label is `Context Summary`.",
            "created-by": "A summary's metadata names the plugin.",
            "numbered": "Several summaries stay apart as `gc_summary_1`, `gc_summary_2`.",
        },
        issue=3,
        code="session/collection.py",
        differs={
            "numbered": "The seed writes both `gc_summary` and `gc_summary_N`: ours are numbered, and a number is never used again.",
        },
    ),
    *section(
        "S2.messages",
        "Message ID tracking",
        {
            "message-id-default": "A message without an id gets a unique one.",
            "made-of-parts": "A message is made of its role and its parts.",
            "entry-reference": "Budget entries carry the ids of their messages.",
            "removal-by-id": "History loses exactly the messages of the removed entries.",
        },
        issue=3,
        code="core/segment.py",
        differs={
            "made-of-parts": "It gets the form of chat completions; for others, and for media and thinking, parse the provider's message.",
            "removal-by-id": "Groups that the provider wants whole leave whole.",
        },
    ),
    *section(
        "S2.tests",
        "Testing strategy",
        {
            "test_source_entry_timestamp": "Timestamps are set and serialized.",
            "test_gc_result_removal_list": "The removal list has its structure.",
            "test_gc_truncate_removal_list": "Truncate fills the removal list.",
            "test_gc_budget_priority_order": "Ephemeral goes before partial, partial before preservable.",
            "test_gc_budget_respects_target": "Removal stops when the target is reached.",
            "test_session_applies_removal_list": "The session syncs the budget after a collection.",
            "test_budget_consistent_after_gc": "Budget tokens equal the tokens of the history.",
            "test_gc_budget_with_mixed_policies": "The full flow runs on a realistic budget.",
        },
        issue=3,
        code="strategies",
    ),
)
