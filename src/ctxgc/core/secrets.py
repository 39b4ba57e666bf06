"""Finding and masking likely keys in text, in time linear in the text."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, NamedTuple

import msgspec

# -- Rules: one for each shape of key, all linear to match


class SecretRule(NamedTuple):
    """One shape of a secret. Group 1 of the pattern is the secret itself."""

    name: str
    word: str
    pattern: re.Pattern[str]
    entropy: float = 0.0
    assigned: bool = False


_ASSIGNED = r"""["']?\s{0,4}(?::|=|=>|:=)\s{0,4}["']?"""
LONG_ASSIGNED = re.compile(r"""[:=]>?\s{0,4}["']?[A-Za-z0-9_~+/=-]{20}""")
"""Matches in every text in which one of the rules for assigned values does."""


def _rule(name: str, word: str, pattern: str, entropy: float = 0.0) -> SecretRule:
    return SecretRule(name, word, re.compile(pattern), entropy, _ASSIGNED in pattern)


SECRET_RULES: tuple[SecretRule, ...] = (
    _rule("anthropic", "sk-ant-", r"\b(sk-ant-[A-Za-z0-9_-]{20,200})"),
    _rule("openai-project", "sk-proj-", r"\b(sk-proj-[A-Za-z0-9_-]{20,200})"),
    _rule("openai-service", "sk-svcacct-", r"\b(sk-svcacct-[A-Za-z0-9_-]{20,200})"),
    _rule("openrouter", "sk-or-", r"\b(sk-or-v1-[0-9a-f]{64})"),
    _rule("openai", "sk-", r"\b(sk-[A-Za-z0-9]{32,64})\b", 3.5),
    _rule("aws-access-key", "IA", r"\b(A[BKS]IA[A-Z2-7]{16})\b"),
    _rule("aws-access-key", "ACCA", r"\b(ACCA[A-Z2-7]{16})\b"),
    _rule("aws-secret-key", "ws", r"(?i:aws.{0,20}secret.{0,20})" + _ASSIGNED + r"([A-Za-z0-9/+=]{40})", 4.0),
    _rule("github-token", "ghp_", r"\b(ghp_[A-Za-z0-9]{36,255})\b"),
    _rule("github-token", "gho_", r"\b(gho_[A-Za-z0-9]{36,255})\b"),
    _rule("github-token", "ghu_", r"\b(ghu_[A-Za-z0-9]{36,255})\b"),
    _rule("github-token", "ghs_", r"\b(ghs_[A-Za-z0-9]{36,255})\b"),
    _rule("github-token", "ghr_", r"\b(ghr_[A-Za-z0-9]{36,255})\b"),
    _rule("github-fine", "github_pat_", r"\b(github_pat_[A-Za-z0-9_]{60,255})\b"),
    _rule("gitlab-token", "glpat-", r"\b(glpat-[A-Za-z0-9_-]{20,64})"),
    _rule("gitlab-runner", "glrt-", r"\b(glrt-[A-Za-z0-9_-]{20,64})"),
    _rule("slack-token", "xox", r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,250})"),
    _rule("slack-app", "xapp-", r"\b(xapp-\d-[A-Z0-9]{8,20}-\d{8,20}-[a-z0-9]{32,128})"),
    _rule("slack-webhook", "hooks.slack", r"(hooks\.slack\.com/services/T\w{6,14}/B\w{6,14}/\w{20,32})"),
    _rule("stripe", "k_live_", r"\b([rs]k_live_[A-Za-z0-9]{20,120})\b"),
    _rule("stripe-webhook", "whsec_", r"\b(whsec_[A-Za-z0-9]{24,64})\b"),
    _rule("google-api", "AIza", r"\b(AIza[A-Za-z0-9_-]{35})"),
    _rule("google-oauth", "GOCSPX-", r"\b(GOCSPX-[A-Za-z0-9_-]{28})"),
    _rule("google-refresh", "1//0", r"\b(1//0[A-Za-z0-9_-]{60,120})"),
    _rule("huggingface", "hf_", r"\b(hf_[A-Za-z]{34})\b"),
    _rule("npm", "npm_", r"\b(npm_[A-Za-z0-9]{36})\b"),
    _rule("pypi", "pypi-", r"\b(pypi-AgE[A-Za-z0-9_-]{50,250})"),
    _rule("sendgrid", "SG.", r"\b(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})"),
    _rule("mailgun", "key-", r"\b(key-[0-9a-f]{32})\b"),
    _rule("twilio", "SK", r"\b(SK[0-9a-f]{32})\b"),
    _rule("digitalocean", "_v1_", r"\b(do[opr]_v1_[0-9a-f]{64})\b"),
    _rule("databricks", "dapi", r"\b(dapi[0-9a-f]{32})(?:-\d)?\b"),
    _rule("linear", "lin_api_", r"\b(lin_api_[A-Za-z0-9]{40})\b"),
    _rule("notion", "ntn_", r"\b(ntn_[A-Za-z0-9]{40,60})\b"),
    _rule("shopify", "shp", r"\b(shp(?:at|ca|pa|ss)_[0-9a-f]{32})\b"),
    _rule("square", "sq0", r"\b(sq0[a-z]{3}-[A-Za-z0-9_-]{22,50})"),
    _rule("telegram", ":AA", r"\b(\d{8,10}:AA[A-Za-z0-9_-]{33})\b"),
    _rule("discord-webhook", "api/webhooks", r"(discord(?:app)?\.com/api/webhooks/\d{15,21}/[\w-]{60,72})"),
    _rule("azure-storage", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    _rule("groq", "gsk_", r"\b(gsk_[A-Za-z0-9]{40,60})\b"),
    _rule("xai", "xai-", r"\b(xai-[A-Za-z0-9]{60,100})\b"),
    _rule("replicate", "r8_", r"\b(r8_[A-Za-z0-9]{37})\b"),
    _rule("jwt", "eyJ", r"\b(eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000})"),
    _rule(
        "private-key",
        "PRIVATE KEY-----",
        r"(-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{16,8000})",
    ),
    _rule("url-password", "://", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,80}:([^\s:/@]{3,120})@"),
    _rule("bearer", "earer ", r"\b[Bb]earer ([A-Za-z0-9._~+/-]{24,600}=*)", 3.5),
    _rule(
        "assigned",
        "",
        r"(?i:api[_-]?key|secret|token|passwd|password|private[_-]?key)[\w-]{0,20}"
        + _ASSIGNED
        + r"([A-Za-z0-9_~+/=-]{20,200})",
        3.7,
    ),
)  # fmt: skip


_WORDED = tuple((rule.word, rule) for rule in SECRET_RULES if rule.word)
_WORDLESS = tuple(rule for rule in SECRET_RULES if not rule.word)
_WORDS = ("key", "secret", "token", "passw")
_PLACEHOLDER = re.compile(
    r"(?i:example|placeholder|changeme|your[-_]|dummy|redacted)|xxxx|XXXX|\.\.\.|<|\$\{"
)


class Secret(msgspec.Struct, frozen=True):
    """The place of a likely key in a text, and the rule that found it."""

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


def masked_data(value: Any) -> Any:
    """Return JSON-ready data without likely keys and passwords in its texts; other objects become texts."""
    if isinstance(value, dict):
        return {masked_data(key): masked_data(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked_data(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return mask_secrets(without_passwords(str(value)))


def entropy(text: str) -> float:
    """Return the entropy of a text's characters in bits for each of them."""
    counts = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) if text else 0.0


def _likely(text: str) -> list[SecretRule]:
    """Return the rules whose word occurs in a text, so that most patterns need not be tried."""
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


# -- Passwords in addresses


_USER_PASSWORD = re.compile(r"(://[^\s/?#:@]{0,200}):[^\s/?#]{0,400}@")
_NAMED_PASSWORD = re.compile(r"([?&])password=[^\s&]*+&?")


def without_passwords(text: str) -> str:
    """Return a text without the passwords of the addresses in it, whatever they look like."""
    return _NAMED_PASSWORD.sub(r"\1", _USER_PASSWORD.sub(r"\1@", text))
