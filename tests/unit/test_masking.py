"""Masking of secrets: what is hidden, what stays as it is, and which settings are refused."""

from __future__ import annotations

import json

import pytest
from growth import is_linear

from colearn.config import load_config, recorded_settings, shipped_configs
from colearn.errors import ConfigError
from colearn.text.masking import (
    MASK,
    SECRETS,
    check_unmasked,
    masked,
    masked_keys,
    masked_settings,
    with_secrets,
)

HIDDEN = [
    "http://ada:SWORDFISH@host:8000/v1",
    "https://SWORDFISH@host/v1",
    "https://ada:p@SWORDFISH@host",
    "postgres://ada:SWORDFISH@db:5432/x",
    "see http://ada:SWORDFISH@host, or http://b:SWORDFISH@c",
    "ada:SWORDFISH@127.0.0.1:8000",
    "http://host/v1?api_key=SWORDFISH",
    "http://host/v1?a=1&key=SWORDFISH&b=2",
    "http://host/v1?X-Amz-Signature=SWORDFISH",
    "http://host/#access_token=SWORDFISH",
    "--set task.api_key=SWORDFISH",
    "--api-key SWORDFISH --port 3",
    "--token=SWORDFISH",
    "OPENAI_API_KEY=SWORDFISH python judge.py",
    "ANTHROPIC_KEY='SWORDFISH' python judge.py",
    "password = SWORDFISH",
    '{"password": "SWORDFISH"}',
    "{'apiKey': 'SWORDFISH'}",
    "Authorization: Bearer SWORDFISH123",
    "sk-proj-SWORDFISHSWORDFISH12",
    "hf_SWORDFISHSWORDFISH12",
    "github_pat_SWORDFISHSWORDFISH12",
    *(f"{prefix}SWORDFISHSWORDFISH12" for prefix in ("gsk_", "nvapi-", "sk_live_", "rk_test_")),
    *(f"{prefix}SWORDFISHSWORDFISH12" for prefix in ("xai-", "r8_", "pplx-", "npm_", "ya29.")),
    *(f"{prefix}SWORDFISHSWORDFISH12" for prefix in ("tgp_v1_", "wandb_v1_", "pypi-AgE")),
    "SG.SWORDFISHSWORDFISH12.SWORDFISHSWORDFISH12",
    "ASIASWORDFISH1234567",
    "DB_PASS=SWORDFISH",
    "hmac_key=SWORDFISH",
    "x-api-key: SWORDFISH",
    "{'Private-Token': 'SWORDFISH'}",
    "Set-Cookie: session=SWORDFISH; Secure",
    "https://hooks.slack.com/services/T0/B0/SWORDFISH",
    "https://discord.com/api/webhooks/12/SWORDFISH",
    "https://api.telegram.org/bot12:SWORDFISH/sendMessage",
    "-----BEGIN RSA PRIVATE KEY-----\nSWORDFISH\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nSWORDFISH",
    "https://host/?access_token%3DSWORDFISH",
    "https://host/;jsessionid=SWORDFISH",
    "https://host/?code=SWORDFISHSWORDFISH",
    "//ada:SWORDFISH@host/x",
    "Authorization: Token SWORDFISH1",
    "Authorization: SWORDFISH1",
    "Ocp-Apim-Subscription-Key: SWORDFISH1",
    "x-functions-key: SWORDFISH1",
    "X-Vault-Token: SWORDFISH1",
    '{\\"api_key\\": \\"SWORDFISH\\"}',
    "api_key: SWORDFISH1",
    "password:\n  SWORDFISH1",
    "PGPASSWORD=SWORDFISH",
    "Incorrect API key provided: SWORDFISH1.",
    "password is SWORDFISH1",
    'api_key="a\\"SWORDFISH"',
    "curl -u ada:SWORDFISH https://host",
    "SharedAccessSignature=SWORDFISH",
    "machine host login ada password SWORDFISH1",
    "[('x-api-key', 'SWORDFISH')]",
    "(b'authorization', b'Token SWORDFISH')",
    "fw_SWORDFISHSWORDFISH12",
    "lsv2_pt_SWORDFISHSWORDFISH12",
    "https://acme.webhook.office.com/SWORDFISH",
]
PLAIN = [
    "http://127.0.0.1:8000/v1",
    "https://host/v1?api-version=2024-02-01",
    "https://medium.com/@ada",
    "ada@host.org",
    "mailto:ada@host.org",
    "git@github.com:ada/repo.git",
    "image:tag@sha256:00aa",
    "max_tokens=16",
    "--max-tokens 16",
    "pad_token=<pad>",
    "tokenizer=Qwen/Qwen3-0.6B",
    "key=prompt",
    "the password is not told",
    "a token of Bearer form",
    '{"token_ids": "1"}',
    "10:30 at noon",
    "first_pass=fast",
    "api-key: see docs",
    "a cookie: sweet",
    "risk_level=high",
    "ask-for-more-than-sixteen-letters",
    "a.b.c.d.e://f",
    "the token: 5 of 9",
    "password for the door: open",
    "python -u script.py",
    "https://host/?code=404",
    "// a comment @ada",
    "the secret: tell nobody",
    "(key, value)",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_a_secret_in_a_text_is_masked(text):
    shown = masked(text)
    assert "SWORDFISH" not in shown and MASK in shown
    assert masked(shown) == shown


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_secrets_stays_as_it_is(text):
    assert masked(text) == text


@pytest.mark.parametrize(
    "part", ["a.", "a-", "a+", "a%", "eyJ-", "eyJaaaaaaaa.", "a:b,", "?a=", "//", "a:", "('a','"]
)
def test_masking_takes_time_in_proportion_to_the_length(part):
    """A text of 400,000 characters took minutes where each of its words was read to its end."""
    assert is_linear(lambda length: masked(part * (length // len(part))), 3_000)


def test_settings_are_masked_by_their_names_and_texts():
    given = {
        "url": "http://ada:x@host",
        "api_key": "x",
        "apiKey": "x",
        "headers": {"Authorization": "x", "accept": "json"},
        "arguments": ["--api-key", "x", "--port", "3", "--token=x"],
        "environment": {"OPENAI_API_KEY": "x"},
        "token": "",
        "pad_token": "<pad>",
        "max_tokens": 3,
        "key": "prompt",
    }
    assert masked_settings(given) == {
        "url": f"http://{MASK}@host",
        "api_key": MASK,
        "apiKey": MASK,
        "headers": {"Authorization": MASK, "accept": "json"},
        "arguments": ["--api-key", MASK, "--port", "3", f"--token={MASK}"],
        "environment": {"OPENAI_API_KEY": MASK},
        "token": "",
        "pad_token": "<pad>",
        "max_tokens": 3,
        "key": "prompt",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"headers": [["Authorization", "SWORDFISH"]]},
        {"headers": ["Authorization: SWORDFISH1"]},
        {"headers": [{"name": "X-Api-Key", "value": "SWORDFISH"}]},
        {"headers": {"x-functions-key": "SWORDFISH"}},
        {"api_keys": {"first": "SWORDFISH"}},
        {"api_keys": ["SWORDFISH"]},
        {"credentials": {"ada": ["SWORDFISH"]}},
        {"password": {"value": "SWORDFISH"}},
        {"auth": ["ada", "SWORDFISH"]},
        {"auth": {"user": "ada", "pass": "SWORDFISH"}},
        {"command": ["curl", "-u", "ada:SWORDFISH"]},
        {"openai_key": "SWORDFISH"},
        {"auth_header": "Token SWORDFISH"},
        {"pass_word": "SWORDFISH"},
    ],
)
def test_secrets_within_lists_and_sections_are_masked(given):
    shown = masked_settings(given)
    assert "SWORDFISH" not in repr(shown) and MASK in repr(shown)
    assert masked_settings(shown) == shown


def test_the_value_of_a_secret_variable_is_masked_wherever_it_stands(monkeypatch):
    monkeypatch.setenv("JUDGE_TOKEN", "swordfish-2027")
    assert masked("the server refuses swordfish-2027, given once") == (
        f"the server refuses {MASK}, given once"
    )
    monkeypatch.setenv("JUDGE_TOKEN", "an-ordinary-word")
    assert masked("an-ordinary-word") == "an-ordinary-word"


def test_a_password_that_yaml_reads_as_a_number_is_refused(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "task: {name: str_build, judge: {password: 12345678}}\nmodels: {'*': {path: x}}\n"
    )
    with pytest.raises(ConfigError, match=r"^task\.judge\.password: .* in quotes"):
        load_config(path)


def test_masked_texts_return_from_the_environment(monkeypatch):
    given = {"task": {"url": "http://ada:x@host", "list": ["--token", "x"]}, "name": "x"}
    secrets = dict(masked_keys(given))
    assert secrets == {"task.url": "http://ada:x@host", "task.list.1": "x"}
    monkeypatch.setenv(SECRETS, json.dumps({**secrets, "name": "another"}))
    assert with_secrets(masked_settings(given)) == given


@pytest.mark.parametrize("told", ["{", "[]", '{"a": 1}'])
def test_a_damaged_variable_is_one_line(monkeypatch, told):
    monkeypatch.setenv(SECRETS, told)
    with pytest.raises(ConfigError, match="COLEARN_SECRETS: is no JSON object"):
        with_secrets({"a": MASK})


def test_a_masked_setting_is_refused_with_its_key_and_the_remedy():
    data = masked_settings({"task": {"reward": {"url": "http://ada:x@host"}}})
    with pytest.raises(ConfigError, match=r"^task\.reward\.url: is masked .* --set task\.reward"):
        check_unmasked(data)


@pytest.mark.parametrize("name", sorted(shipped_configs()))
def test_no_setting_of_a_shipped_config_is_taken_for_a_secret(name):
    try:
        config = load_config(name)
    except ConfigError:
        pytest.skip("a suite")
    assert recorded_settings(config) == config.model_dump(mode="json")
