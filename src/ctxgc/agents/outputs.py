"""Tool outputs as agents describe them: where their texts stand, and the same output with others.

An output that has none of these shapes is left as it is. So are the outputs of tools that change
files, whose content the agent does not show to the model, and those of our own.
"""

from __future__ import annotations

from typing import Any

from ctxgc.agents.transcript import size_of

Path = tuple[str | int, ...]

PERSISTED = ("persistedOutputPath", "persistedOutputSize")
MOST_BYTES = 16 << 20
_SAME = 1_000

SHOWN = ("stdout", "stderr", "content", "result", "output", "text")
"""Keys whose text is what the model sees: Bash, Grep, WebFetch, background output, MCP blocks."""

UNTOUCHED = frozenset(
    {
        "Write", "Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Task", "Agent", "ExitPlanMode",
        "AskUserQuestion", "Skill", "apply_patch", "update_plan",
    }
)  # fmt: skip


def is_ours(tool: str) -> bool:
    """Tell whether a tool is one of our own; what it recalls must not be moved out again."""
    return tool.rpartition("__")[2].startswith("context_") and "ctxgc" in tool


def texts_of(tool: str, output: Any) -> list[tuple[Path, str]]:
    """Return the texts of an output that the model will see, each with its path."""
    if tool in UNTOUCHED or is_ours(tool):
        return []
    if isinstance(output, str):
        return [((), output)]
    if isinstance(output, list):
        return _blocks((), output)
    return _fields(output) if isinstance(output, dict) else []


def whole_output(output: Any) -> Any:
    """Return an output with its whole text where the agent cut it and put the rest into a file."""
    if not isinstance(output, dict) or not isinstance(output.get("stdout"), str):
        return output
    shown, path = output["stdout"], output.get(PERSISTED[0])
    if not isinstance(path, str) or not 0 < size_of(path) <= MOST_BYTES:
        return output
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:  # noqa: PTH123
        text = file.read()
    if not text.startswith(shown[:_SAME]):
        return output
    # Without these keys the agent shows the text that it is given, not the beginning of its own file.
    rest = {key: value for key, value in output.items() if key not in PERSISTED}
    return {**rest, "stdout": text}


def with_texts(output: Any, texts: dict[Path, str]) -> Any:
    """Return an output of the same shape with other texts at these paths; the given one is not changed."""
    for path, text in texts.items():
        output = _replaced(output, path, text)
    return output


def _fields(output: dict[str, Any]) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for key in SHOWN:
        value = output.get(key)
        if isinstance(value, str):
            found.append(((key,), value))
        elif isinstance(value, list):
            found.extend(_blocks((key,), value))
    file = output.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        found.append((("file", "content"), file["content"]))
    return found


def _blocks(path: Path, blocks: list[Any]) -> list[tuple[Path, str]]:
    return [
        ((*path, place, "text"), block["text"])
        for place, block in enumerate(blocks)
        if isinstance(block, dict)
        and block.get("type") in ("text", "input_text", "output_text")
        and isinstance(block.get("text"), str)
    ]


def _replaced(value: Any, path: Path, text: str) -> Any:
    if not path:
        return text
    step, rest = path[0], path[1:]
    copied = value.copy()
    copied[step] = _replaced(value[step], rest, text)
    return copied
