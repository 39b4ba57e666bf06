"""Recorded runs: conversations of agents, read from run files and transcripts one run at a time."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ctxgc.core import Message, Part
from ctxgc.errors import InputError, MessageError, TranscriptError
from ctxgc.lab.facts import texts_of, total_weight
from ctxgc.wire import parse, parse_history, repair
from ctxgc.wire.transcripts import (
    Compaction,
    Item,
    RecordedMessage,
    Transcript,
    last_window,
    open_transcript,
)

_SUFFIXES = (".jsonl", ".jsonl.gz")
_CONTINUED = "This session is being continued from a previous conversation"
"""How Claude Code begins the summary of the window before."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of an agent, in chat-completions messages.

    Runs of one `group` are not independent (windows of one session, attempts at one task), so
    confidence intervals draw whole groups. `times` are seconds, one for each message. `compacted` are
    the messages that the host put in the place of these when it compacted them itself, if it did.
    """

    id: str
    group: str
    source: str
    messages: list[dict[str, Any]]
    times: list[float] | None = None
    compacted: list[dict[str, Any]] = []


_Read = tuple[Run, int | None]
"""A run, and how many tokens its file says that it has."""


Half = Literal["fit", "judge"]
HALVES: tuple[Half, ...] = ("fit", "judge")
"""Constants are fitted on one half of all runs, and judged by the other."""


def half_of(group: str) -> Half:
    """Return the half that a group of runs belongs to, by its name alone: the same in every set."""
    return HALVES[hashlib.sha256(group.encode()).digest()[0] & 1]


class _Meta(msgspec.Struct):
    tokens: int | None = None


class _Line(msgspec.Struct):
    """A line of a run file; other keys are ignored."""

    id: str
    messages: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    group: str = ""
    source: str = ""
    times: list[float] | None = None
    meta: _Meta = msgspec.field(default_factory=_Meta)


def read_runs(path: Path, least_tokens: int = 0, name: str = "") -> Iterator[Run]:
    """Yield the runs of at least `least_tokens` tokens in a file, or in the files of a folder.

    In a folder, `name` selects the files whose name up to the first dot is this.

    A file has runs as JSON lines (`id`, `messages`, and optionally `group`, `source`, `times`,
    `meta.tokens`), or is a transcript that `ctxgc.wire.transcripts` reads, each window of which is a
    run. Either may be compressed with gzip.

    Raises:
        InputError: nothing can be read; `details` has the file and the line.
    """
    for file in run_files(path, name):
        yield from _read_file(file, least_tokens)


def run_files(path: Path, name: str = "") -> list[Path]:
    """Return the file itself, or the run files of a folder, sorted by name.

    Raises:
        InputError: there is none.
    """
    if path.is_file():
        return [path]
    found = sorted(path.iterdir()) if path.is_dir() else []
    runs = [file for file in found if file.name.endswith(_SUFFIXES)]
    wanted = [file for file in runs if name in ("", file.name.partition(".")[0])]
    if not wanted:
        raise InputError(
            f"no runs named '{name}' at {path}" if name else f"no runs at {path}",
            hint=f"give a file, or a folder of files that end in {' or '.join(_SUFFIXES)}",
            file=str(path),
        )
    return wanted


def find_run(name: str, runs: Iterable[Run]) -> Run:
    """Return the run with this id, else the only one whose id contains the name.

    Raises:
        InputError: there is none, or several; the hint names them.
    """
    near: list[Run] = []
    known: list[str] = []
    for run in runs:
        if run.id == name:
            return run
        known.append(run.id)
        if name and name in run.id:
            near.append(run)
    if len(near) == 1:
        return near[0]
    hints = [run.id for run in near] or get_close_matches(name, known, 3, 0.3) or known[:3]
    raise InputError(
        f"several runs match {name!r}" if near else f"no run matches {name!r}",
        hint=f"use one of: {', '.join(hints[:5])}" if hints else "there are no runs",
        field="run",
    )


def _read_file(file: Path, least_tokens: int) -> Iterator[Run]:
    try:
        with _opened(file) as lines:
            first = lines.readline()
            if _is_run(first):
                read = _read_lines(file, itertools.chain([first], lines))
                yield from _long_enough(_with_compactions(read, _continues), least_tokens)
                return
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file} cannot be read: {error}", hint="the file may be incomplete", file=str(file)
        ) from None
    yield from _long_enough(_with_compactions(_read_windows(file), _always), least_tokens)


def _opened(file: Path) -> IO[bytes]:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]  # read alike


def _read_lines(file: Path, lines: Iterator[bytes]) -> Iterator[_Read]:
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        try:
            line = msgspec.json.decode(raw, type=_Line)
        except msgspec.DecodeError as error:
            raise InputError(
                f"{file}, line {number}: {error}",
                hint="each line is an object with `id` and `messages`",
                file=str(file),
                line=number,
            ) from None
        yield _run(line), line.meta.tokens


def _run(line: _Line) -> Run:
    times = line.times if line.times and len(line.times) == len(line.messages) else None
    return Run(
        id=line.id,
        group=line.group or line.id,
        source=line.source,
        messages=line.messages,
        times=times,
    )


def _read_windows(file: Path) -> Iterator[_Read]:
    """Yield the context windows of a transcript as runs of one group."""
    name = file.name.removesuffix(".gz").removesuffix(".jsonl")
    for number, (messages, times) in enumerate(_windows(file), start=1):
        run = Run(
            id=f"{name}/{number}", group=name, source=file.name, messages=messages, times=times
        )
        yield run, None


def _with_compactions(
    runs: Iterator[_Read], continues: Callable[[Run, Run], bool]
) -> Iterator[_Read]:
    """Yield the runs, each with what its host made of it if the next one continues it."""
    before: _Read | None = None
    for after in runs:
        if before is not None:
            left = _opening(after[0]) if continues(before[0], after[0]) else []
            yield msgspec.structs.replace(before[0], compacted=left), before[1]
        before = after
    if before is not None:
        yield before


def _opening(run: Run) -> list[dict[str, Any]]:
    """Return the messages before the first answer."""
    return list(itertools.takewhile(lambda m: m.get("role") != "assistant", run.messages))


def _continues(before: Run, after: Run) -> bool:
    texts = texts_of(after.messages[0])
    return before.group == after.group and any(t.lstrip().startswith(_CONTINUED) for t in texts)


def _always(before: Run, after: Run) -> bool:  # noqa: ARG001 - a compaction ends each window but the last
    return True


def _long_enough(runs: Iterator[_Read], least: int) -> Iterator[Run]:
    for run, known in runs:
        if not least or (total_weight(run.messages) if known is None else known) >= least:
            yield run


def _is_run(raw: bytes) -> bool:
    try:
        said = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return b'"messages"' in raw
    return isinstance(said, dict) and "messages" in said


# -- Transcripts: each context window as chat messages


_Timed = tuple[dict[str, Any], float | None]
_Window = tuple[list[dict[str, Any]], list[float] | None]


def _windows(path: Path) -> list[_Window]:
    """Return each context window of a transcript: its messages, and their times if all are known.

    A compaction ends a window. What the chat format does not have (thinking, media) is left out; what
    a provider would refuse is repaired.

    Raises:
        TranscriptError: the file is not a transcript, or a line of it is damaged.
    """
    transcript = open_transcript(path)
    items = list(transcript.items())
    _check(transcript)
    ends = [place for place, item in enumerate(items) if isinstance(item, Compaction)]
    chained = transcript.kind == "claude_code"
    found = [_window(items[:end], chained=chained) for end in (*ends, len(items))]
    return [(messages, times) for messages, times in found if messages]


def _check(transcript: Transcript) -> None:
    lost = next((damage for damage in transcript.damage if damage.is_lost), None)
    if lost is not None:
        raise TranscriptError(
            f"{transcript.path}, line {lost.line}: {lost.what}",
            hint="remove the line, or use another transcript",
            path=str(transcript.path),
            line=lost.line,
        )


def _window(items: Sequence[Item], *, chained: bool) -> _Window:
    timed = list(_answers(_chat(last_window(items, chained=chained))))
    messages = [message for message, _ in timed]
    fixed = [m.data for m in repair(parse_history(messages, "openai"), "openai").messages]
    times = [time for _, time in timed if time is not None]
    return fixed, times if len(times) == len(fixed) == len(messages) else None


def _chat(window: Iterable[RecordedMessage]) -> Iterator[_Timed]:
    for number, each in enumerate(window):
        time = None if each.written_at is None else each.written_at.timestamp()
        if each.format == "openai":
            yield each.data, time
            continue
        try:
            message = parse(each.data, each.format, str(number))
        except MessageError:
            continue
        yield from ((said, time) for said in _chat_messages(message))


def _answers(timed: Iterable[_Timed]) -> Iterator[_Timed]:
    """Yield messages, each answer as one: Codex records its text and every call apart."""
    for is_answer, group in itertools.groupby(timed, lambda each: each[0]["role"] == "assistant"):
        said = list(group)
        yield from [_joined(said)] if is_answer and len(said) > 1 else said


def _joined(said: Sequence[_Timed]) -> _Timed:
    texts = [message["content"] for message, _ in said if message.get("content")]
    calls = [call for message, _ in said for call in message.get("tool_calls") or ()]
    answer = {"role": "assistant", "content": "\n".join(texts) or None}
    return {**answer, **({"tool_calls": calls} if calls else {})}, said[0][1]


def _chat_messages(message: Message) -> Iterator[dict[str, Any]]:
    """Yield a message of any format as chat messages: results first, one each."""
    for part in message.parts:
        if part.kind == "tool_result":
            yield {"role": "tool", "tool_call_id": part.call_id, "content": part.text}
    text = message.text()
    calls = [_call(part) for part in message.parts if part.kind == "tool_call"]
    if calls:
        yield {"role": "assistant", "content": text or None, "tool_calls": calls}
    elif text:
        yield {"role": message.role, "content": text}


def _call(part: Part) -> dict[str, Any]:
    function = {"name": part.name or "", "arguments": part.text or "{}"}
    return {"id": part.call_id, "type": "function", "function": function}
