"""Finding and masking likely keys in text, in time linear in the text."""

from __future__ import annotations

import math
import re
from collections import Counter

import msgspec

from ctxgc.core.secret_rules import LONG_ASSIGNED, SECRET_RULES, SecretRule

_WORDED = tuple((rule.word, rule) for rule in SECRET_RULES if rule.word)
_WORDLESS = tuple(rule for rule in SECRET_RULES if not rule.word)
_WORDS = ("key", "secret", "token", "passw")
_PLACEHOLDER = re.compile(
    r"(?i:example|placeholder|changeme|your[-_]|dummy|redacted)|xxxx|XXXX|\.\.\.|<|\$\{"
)


class Secret(msgspec.Struct, frozen=True):
    """Where a likely key stands in a text, and the rule that knows it."""

    rule: str
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """Return the likely keys of a text in order; where two overlap, the first one found counts."""
    found = [secret for rule in _likely(text) for secret in _matches(rule, text)]
    return _without_overlaps(sorted(found, key=lambda secret: (secret.start, -secret.end)))


def mask_secrets(text: str) -> str:
    """Return a text in which each likely key is replaced by the name of its rule."""
    pieces: list[str] = []
    last = 0
    for secret in find_secrets(text):
        pieces += [text[last : secret.start], f"[secret:{secret.rule}]"]
        last = secret.end
    return "".join([*pieces, text[last:]])


def entropy(text: str) -> float:
    """Return the entropy of a text's characters in bits for each of them."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) if text else 0.0


def _likely(text: str) -> list[SecretRule]:
    """Return the rules whose word stands in a text; most texts are spared most patterns."""
    rules = [rule for word, rule in _WORDED if word in text]
    folded = text.casefold()
    if any(word in folded for word in _WORDS):
        rules += _WORDLESS
    if any(rule.assigned for rule in rules) and LONG_ASSIGNED.search(text) is None:
        rules = [rule for rule in rules if not rule.assigned]
    return rules


def _matches(rule: SecretRule, text: str) -> list[Secret]:
    return [
        Secret(rule.name, match.start(1), match.end(1))
        for match in rule.pattern.finditer(text)
        if _is_random(match[1], rule.entropy) and _PLACEHOLDER.search(match[1]) is None
    ]


def _is_random(text: str, least: float) -> bool:
    """A shape without a telling prefix must mix letters and digits, as names in code rarely do."""
    if not least:
        return True
    return entropy(text) >= least and sum(map(str.isdigit, text)) >= 2


def _without_overlaps(secrets: list[Secret]) -> list[Secret]:
    kept: list[Secret] = []
    for secret in secrets:
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept
