"""Likely keys are found, masked, and told apart from ordinary code."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import find_secrets, mask_secrets
from ctxgc.core.secrets import LONG_ASSIGNED, SECRET_RULES, Secret, SecretRule, entropy

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _draw(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(count))


def _samples(rng: random.Random) -> dict[str, tuple[str, str]]:
    """Return, for each rule, a secret of its shape and the text that it stands in."""

    def alone(secret: str) -> tuple[str, str]:
        return secret, f"found {secret} in the log"

    mixed = _draw(rng, _LETTERS, 40) + "7b3"
    base32 = _draw(rng, string.ascii_uppercase + "234567", 16)
    key = _draw(rng, _LETTERS + "+/", 120)
    made = {
        "anthropic": alone("sk-ant-" + "api03-" + mixed),
        "openai-project": alone("sk-proj-" + mixed),
        "openai-service": alone("sk-svcacct-" + mixed),
        "openrouter": alone("sk-or-v1-" + _draw(rng, _HEX, 64)),
        "openai": alone("sk-" + mixed),
        "aws-access-key": alone("AK" + "IA" + base32),
        "github-token": alone("ghp_" + _draw(rng, _LETTERS, 36)),
        "github-fine": alone("github_pat_" + _draw(rng, _LETTERS, 82)),
        "gitlab-token": alone("glpat-" + _draw(rng, _LETTERS, 20)),
        "gitlab-runner": alone("glrt-" + _draw(rng, _LETTERS, 20)),
        "slack-token": alone("xoxb-" + _draw(rng, string.digits, 12) + "-" + mixed),
        "slack-app": alone(f"xapp-1-A{base32[:10]}-1234567890123-" + _draw(rng, _HEX, 64)),
        "stripe": alone("sk_live_" + _draw(rng, _LETTERS, 24)),
        "stripe-webhook": alone("whsec_" + _draw(rng, _LETTERS, 32)),
        "google-api": alone("AIza" + _draw(rng, _LETTERS, 35)),
        "google-oauth": alone("GOCSPX-" + _draw(rng, _LETTERS, 28)),
        "google-refresh": alone("1//0" + _draw(rng, _LETTERS, 80)),
        "huggingface": alone("hf_" + _draw(rng, string.ascii_letters, 34)),
        "npm": alone("npm_" + _draw(rng, _LETTERS, 36)),
        "pypi": alone("pypi-AgE" + _draw(rng, _LETTERS, 80)),
        "sendgrid": alone(f"SG.{_draw(rng, _LETTERS, 22)}.{_draw(rng, _LETTERS, 43)}"),
        "mailgun": alone("key-" + _draw(rng, _HEX, 32)),
        "twilio": alone("SK" + _draw(rng, _HEX, 32)),
        "digitalocean": alone("dop_v1_" + _draw(rng, _HEX, 64)),
        "databricks": alone("dapi" + _draw(rng, _HEX, 32)),
        "linear": alone("lin_api_" + _draw(rng, _LETTERS, 40)),
        "notion": alone("ntn_" + _draw(rng, _LETTERS, 46)),
        "shopify": alone("shpat_" + _draw(rng, _HEX, 32)),
        "square": alone("sq0atp-" + _draw(rng, _LETTERS, 22)),
        "telegram": alone("123456789:AA" + _draw(rng, _LETTERS, 33)),
        "groq": alone("gsk_" + _draw(rng, _LETTERS, 52)),
        "xai": alone("xai-" + _draw(rng, _LETTERS, 80)),
        "replicate": alone("r8_" + _draw(rng, _LETTERS, 37)),
        "jwt": alone(f"eyJ{mixed}.eyJ{mixed}.{mixed}"),
    }
    webhook = f"hooks.slack.com/services/T{base32[:9]}/B{base32[:9]}/{_draw(rng, _LETTERS, 24)}"
    discord = f"discord.com/api/webhooks/123456789012345678/{_draw(rng, _LETTERS, 68)}"
    storage = _draw(rng, _LETTERS + "+/", 86) + "=="
    amazon = _draw(rng, _LETTERS, 38) + "9/"
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{key}\n"
    return made | {
        "slack-webhook": (webhook, f"POST https://{webhook}"),
        "discord-webhook": (discord, f"POST https://{discord}"),
        "azure-storage": (storage, f"AccountName=x;AccountKey={storage};End"),
        "aws-secret-key": (amazon, f"aws_secret_access_key = {amazon}"),
        "private-key": (pem, f"{pem}-----END RSA PRIVATE KEY-----"),
        "url-password": ("hunter2secret", "postgres://app:hunter2secret@db.internal/x"),
        "bearer": (mixed, f"Authorization: Bearer {mixed}"),
        "assigned": (mixed, f'client_secret = "{mixed}"'),
    }


def test_every_rule_has_a_sample() -> None:
    assert {rule.name for rule in SECRET_RULES} == _samples(random.Random(0)).keys()


@pytest.mark.parametrize("name", sorted({rule.name for rule in SECRET_RULES}))
def test_fifty_keys_of_each_shape_are_found_and_masked(name: str) -> None:
    rng = random.Random(name)
    for _ in range(50):
        secret, text = _samples(rng)[name]
        masked = mask_secrets(text)
        assert secret not in masked
        assert "[secret:" in masked


def test_the_place_and_the_rule_of_a_key_are_named() -> None:
    key = "ghp_" + "a1B2" * 9
    assert find_secrets(f"token {key}.") == [Secret("github-token", 6, 46)]


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token_from_environment()",
        "password: str = field(default_factory=make_password)",
        'api_key = "your-api-key-goes-here-0000"',
        "usage.TokenUsage = geminicli.CalculateTokenUsageFromFile",
        "https://example.com:8080/path@v2",
        "commit 3f48db1a9c6db67c07f6320e853b52bd136291dbdb",
        "task-sk-1234 was closed",
        "secret_key_base: ${SECRET_KEY_BASE_FROM_VAULT_1234}",
    ],
)
def test_ordinary_code_and_placeholders_are_left_alone(text: str) -> None:
    assert find_secrets(text) == []
    assert mask_secrets(text) == text


def test_masking_twice_is_masking_once() -> None:
    _, text = _samples(random.Random(3))["anthropic"]
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


def test_entropy_is_zero_for_one_letter_and_grows_with_variety() -> None:
    assert entropy("") == 0.0
    assert entropy("aaaa") == 0.0
    assert entropy("abcd") == 2.0


@pytest.mark.parametrize("prefix", ["AK" + "IA", "AS" + "IA", "AB" + "IA", "AC" + "CA"])
def test_every_kind_of_aws_access_key_is_found_once(prefix: str) -> None:
    key = prefix + "Q3EG" * 4
    assert find_secrets(f"id {key}.") == [Secret("aws-access-key", 3, 23)]


def test_the_word_before_an_assigned_secret_may_be_in_any_case() -> None:
    value = _draw(random.Random(3), _LETTERS, 38) + "42"
    for word in ("api_key", "API_KEY", "Secret", "\u017fecret", "to\u212aen"):
        assert [secret.rule for secret in find_secrets(f"{word} = {value}")] == ["assigned"]


@pytest.mark.parametrize("prefix", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"])
def test_every_kind_of_github_token_is_found_once(prefix: str) -> None:
    key = prefix + "a1B2" * 9
    assert find_secrets(f"token {key}.") == [Secret("github-token", 6, 46)]


@pytest.mark.parametrize("rule", [rule for rule in SECRET_RULES if rule.assigned])
def test_no_assigned_value_is_passed_over(rule: SecretRule) -> None:
    @given(st.from_regex(rule.pattern))
    def judge(text: str) -> None:
        assert LONG_ASSIGNED.search(text) is not None

    judge()
