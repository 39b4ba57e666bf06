"""S3 "2. Profile-Based Configuration", block 6: a profile in `.jaato/profiles/` names a subagent's collector."""

import os
from pathlib import Path

from ctxgc.client import ChatClient
from ctxgc.testing import StrictServer

# -- the block

PROFILE = """
{
  "name": "my-subagent",
  "description": "A specialized subagent",
  "plugins": ["cli", "file_edit"],
  "gc": {
    "type": "hybrid",
    "threshold_percent": 80.0,
    "preserve_recent_turns": 5,
    "notify_on_gc": true,
    "summarize_middle_turns": 10
  }
}
"""

# -- ours


def cli(command: str) -> str:
    """Run a command."""
    return command


def file_edit(path: str, text: str) -> str:
    """Edit a file."""
    return path + text


def search(query: str) -> str:
    """Search; not one of the profile's tools."""
    return query


Path(".jaato", "profiles").mkdir(parents=True)
Path(".jaato", "profiles", "my-subagent.json").write_text(PROFILE)
os.environ["OPENAI_API_KEY"] = "any"
with StrictServer(["done"], context_limit=128_000) as server, ChatClient() as client:
    client.connect(None, server.openai_base_url, "gpt-4o", tools=[cli, file_edit, search])
    reply = client.spawn_subagent("Do it", profile="my-subagent")
    offered = {tool["function"]["name"] for tool in server.requests[-1].body["tools"]}
assert (reply, reply.profile) == ("done", "my-subagent")
assert {"cli", "file_edit"} <= offered and "search" not in offered
