"""S4 "Aggressive Pruning Strategy", block 11: the same dict from ours.

Fault of the seed: the last message is called the last user message, and what is missing is a KeyError.
"""

from typing import Dict

from ctxgc import guard

# -- the block


def aggressive_prune(context: Dict) -> Dict:
    """
    Last resort: keep only absolute essentials
    """
    essential_only = {
        'system_prompt': context['system_prompt'],
        'current_task': context['current_task'],
        'current_file': context.get('active_file', None),
        'last_user_message': context['messages'][-1],
        'error_context': context.get('last_error', None)
    }

    return essential_only


# -- ours

context = {
    "system_prompt": "You are careful.",
    "current_task": {"title": "mend the cart"},
    "active_file": "def total(): ...",
    "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "yes?"}]},
        {"role": "user", "content": "mend it"},
    ],
    "last_error": "AssertionError: 3 != 4",
    "task_history": ["long ago"],
}
assert guard.aggressive_prune(context) == aggressive_prune(context)

answered = {**context, "messages": [*context["messages"], {"role": "assistant", "content": "done"}]}
assert guard.aggressive_prune(answered)["last_user_message"] == context["messages"][2]
assert guard.aggressive_prune({"messages": []})["system_prompt"] is None
