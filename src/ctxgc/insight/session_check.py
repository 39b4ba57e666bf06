"""What a session must not hold: secrets, invalid pairs, more garbage or cache breaks than a budget allows."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from ctxgc.core import find_secrets, mask_secrets
from ctxgc.insight.analysis import analyze_transcript
from ctxgc.insight.local_sessions import session_folders
from ctxgc.insight.transcript_edit import broken_rules
from ctxgc.wire import strings_of
from ctxgc.wire.transcripts import open_transcript, open_writable, read_whole

# -- Secrets


_AROUND = 40


class FoundSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A likely key in a file: its rule and the text around it, itself masked.

    `digest` is the same wherever the same key is found; it does not give the key away.
    """

    path: str
    line: int
    rule: str
    shown: str
    digest: str


def transcript_files() -> list[Path]:
    """Return all transcripts of agents on this machine, those of subagents included."""
    found = (path for folder in session_folders() for path in folder.rglob("*.jsonl"))
    return sorted(path for path in found if path.is_file())


def scan_secrets(path: Path) -> Iterator[FoundSecret]:
    """Yield the likely keys in the texts of a file, each once per line.

    Raises:
        TranscriptError: it cannot be read.
    """
    for number, raw in enumerate(read_whole(path).split(b"\n"), 1):
        text = strings_of(raw.decode("utf-8", "replace"))
        seen: set[str] = set()
        for secret in find_secrets(text):
            key = text[secret.start : secret.end]
            digest = blake2b(key.encode("utf-8", "replace"), digest_size=6).hexdigest()
            if digest in seen:
                continue
            seen.add(digest)
            before = text[max(0, secret.start - _AROUND) : secret.start].rpartition("\n")[2]
            yield FoundSecret(
                path=str(path),
                line=number,
                rule=secret.rule,
                shown=f"{mask_secrets(before)}[secret:{secret.rule}]",
                digest=digest,
            )


# -- Budgets


class SessionBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a session may have of each; None is not checked."""

    garbage: float | None = None
    cache_breaks: int | None = None
    secrets: int | None = 0
    invalid: int | None = 0


class BudgetResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one thing, how much is allowed, and where it is: lines with what is there."""

    rule: str
    found: float
    allowed: float
    places: list[tuple[int, str]]

    @property
    def is_kept(self) -> bool:
        """Whether the budget is kept."""
        return self.found <= self.allowed


def check_session(path: Path, budgets: SessionBudgets) -> list[BudgetResult]:
    """Return how a session keeps each of the budgets that are set.

    Raises:
        TranscriptError: it cannot be read.
    """
    results = []
    if budgets.invalid is not None:
        broken = [(each.line, each.text) for each in broken_rules(open_writable(path))]
        results.append(_counted("invalid", broken, budgets.invalid))
    if budgets.secrets is not None:
        keys = [(each.line, each.shown) for each in scan_secrets(path)]
        results.append(_counted("secrets", keys, budgets.secrets))
    if budgets.garbage is None and budgets.cache_breaks is None:
        return results
    insight = analyze_transcript(open_transcript(path))
    if budgets.garbage is not None:
        garbage = insight.garbage
        results.append(
            BudgetResult(
                rule="garbage",
                found=garbage.percent,
                allowed=budgets.garbage,
                places=[
                    (1, f"{each.reason}: {each.tokens:,} tokens")
                    for each in garbage.reasons
                    if each.tokens
                ],
            )
        )
    if budgets.cache_breaks is not None:
        breaks = [(each.line, f"{each.why}") for each in insight.cache.breaks]
        results.append(_counted("cache-breaks", breaks, budgets.cache_breaks))
    return results


def _counted(rule: str, places: list[tuple[int, str]], allowed: int) -> BudgetResult:
    return BudgetResult(rule=rule, found=len(places), allowed=allowed, places=places)
