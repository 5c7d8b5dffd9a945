"""Masks passwords, tokens and keys in everything that a run writes or prints.

The following are masked: user and password in URLs; values of settings, options, variables and
query parameters whose names indicate a secret; bearer tokens; tokens in the known formats of
providers.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from colearn.errors import ConfigError

MASK = "***masked***"
SECRETS = "COLEARN_SECRETS"
"""Environment variable that holds the plain values of masked settings as a JSON object. The keys
are dotted config keys."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET = frozenset(
    [
        "apikey",
        "authorization",
        "bearer",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
        "token",
    ]
)
_KEY_OF = frozenset(
    [
        "access",
        "account",
        "api",
        "auth",
        "client",
        "encryption",
        "hmac",
        "license",
        "master",
        "private",
        "secret",
        "service",
        "signing",
        "ssh",
        "subscription",
    ]
)
_PASS_OF = frozenset(
    [
        *("admin", "db", "ftp", "imap", "ldap", "mail", "mysql", "pg", "postgres", "proxy"),
        *("redis", "root", "smtp", "ssh", "user"),
    ]
)
"""Words that precede `pass` in the names of passwords."""
_TOKEN_OF = frozenset(
    [
        "begin",
        "bos",
        "cls",
        "decoder",
        "end",
        "eos",
        "image",
        "mask",
        "pad",
        "sep",
        "special",
        "start",
        "stop",
        "unk",
    ]
)
"""Words that precede `token` in the names of a tokenizer's special tokens. Special tokens are not
secrets."""
_IN_QUERY = frozenset(("auth", "jwt", "key", "pass", "session", "sig", "signature"))
"""Words that indicate a secret in the name of a query parameter. In a query, `key` denotes a
credential."""

_NAME = r"[A-Za-z][\w.-]*"
_VALUE = r"\"[^\"]*\"|'[^']*'|[^\s,;&\"'()\[\]{}|]+"
_URL_USER = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,19}://)[^\s/?#\"'<>]*@")
"""The length of a scheme is limited so that the time is linear in the length of the text; the
longest common one has 12 characters."""
_BARE_USER = re.compile(r"(?<![\w/@*:.+%-])(?!mailto:)[\w.+%-]+:[^\s:@/\"']+@(?!sha)(?=[\w\[])")
_QUERY = re.compile(rf"([?&#;])({_NAME})=([^\s&#;\"'<>]+)")
_SET = re.compile(rf"(?<![?&#;\w.-])(-{{0,2}})({_NAME})(\s?=\s?)({_VALUE})")
_OPTION = re.compile(rf"(?<![\w-])(--?)({_NAME})(\s+)({_VALUE})")
_QUOTED = re.compile(rf"([\"'])({_NAME})\1(\s*:\s*)(\"[^\"]*\"|'[^']*')")
_HEADER = re.compile(r"\b(Bearer|Basic)(\s+)(?=[\w.~+/-]*[0-9_=])[\w.~+/=-]{8,}", re.IGNORECASE)
_KNOWN = re.compile(
    r"\b(?:sk-(?:ant-|proj-)?[\w-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abposr]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{8,1000}\.[\w-]{8,8000}\.[\w-]*"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{20,}|nvapi-[\w-]{20,}"
    r"|xai-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|tgp_v1_[\w-]{20,}"
    r"|wandb_v1_\w{20,}|npm_[A-Za-z0-9]{20,}|pypi-AgE[\w-]{16,}|ya29\.[\w-]{20,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_[0-9a-f]{32,})"
)

_WEBHOOK = re.compile(
    r"\b(hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/|api\.telegram\.org/bot)"
    r"[^\s\"'<>]+"
)
"""Addresses whose path is the credential."""
_HEADER_NAME = re.compile(
    r"\b((?:x-)?(?:api|auth|access)-(?:key|token)|private-token)([\"']?\s?:\s?[\"']?)"
    r"[^\s\"',}]{8,}",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"\b((?:set-)?cookie[\"']?\s?:\s?[\"']?[\w.-]+=)[^\r\n\"',}]+", re.I)
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----).*?(-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)", re.S
)


def masked(text: str) -> str:
    """Return the text with all secrets replaced by `MASK`. A text that is already masked does not
    change."""
    text = _URL_USER.sub(rf"\g<1>{MASK}@", text)
    text = _BARE_USER.sub(f"{MASK}@", text)
    text = _QUERY.sub(_in_query, text)
    for pattern in (_SET, _OPTION, _QUOTED):
        text = pattern.sub(_named, text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    text = _HEADER_NAME.sub(rf"\1\2{MASK}", text)
    text = _COOKIE.sub(rf"\1{MASK}", text)
    text = _WEBHOOK.sub(rf"\1{MASK}", text)
    text = _PEM.sub(rf"\1{MASK}\2", text)
    return _KNOWN.sub(MASK, text)


def masked_settings(value: Any, name: str = "") -> Any:
    """Mask the secrets in all texts of plain data. `name` is the name of the setting that holds the
    data."""
    if isinstance(value, Mapping):
        return {key: masked_settings(one, str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        options = ["", *(one if isinstance(one, str) else "" for one in value)]
        return [
            masked_settings(one, name if not option.startswith("-") else option)
            for one, option in zip(value, options, strict=False)
        ]
    if isinstance(value, str):
        return MASK if value and is_secret(name) and not value.startswith("-") else masked(value)
    return value


def masked_keys(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted key and the value of every text in plain data that would be masked."""
    masks = dict(_texts(masked_settings(value), where))
    return ((key, text) for key, text in _texts(value, where) if masks[key] != text)


def with_secrets(data: Any) -> Any:
    """Return plain data in which masked texts are replaced by the values in the environment
    variable `COLEARN_SECRETS`.

    Errors: ConfigError if the variable is not a JSON object of texts.
    """
    given = os.environ.get(SECRETS)
    if not given:
        return data
    try:
        secrets = json.loads(given)
    except ValueError:
        secrets = None
    if not isinstance(secrets, dict) or not all(isinstance(one, str) for one in secrets.values()):
        raise ConfigError(f"{SECRETS}: is no JSON object of texts by dotted key; correct it")
    return _filled(data, secrets, "")


def check_unmasked(data: Any) -> None:
    """Errors: ConfigError that names the first masked text."""
    for key, text in _texts(data, ""):
        if MASK in text:
            raise ConfigError(
                f"{key}: is masked in the folder, as it holds a secret; give the config again, "
                f"or set it with --set {key}=... or in {SECRETS}, a JSON object by dotted key"
            )


def is_secret(name: str) -> bool:
    """Whether the name of a setting, option or variable indicates that the value is secret."""
    words = [word.lower() for word in _WORD.findall(name.rpartition(".")[2]) if word.isalpha()]
    if not words or (words[-1] == "token" and _TOKEN_OF & set(words)):
        return False
    key = words[-1] == "key" and (bool(_KEY_OF & set(words)) or name.isupper())
    password = words[-1] == "pass" and bool(_PASS_OF & set(words))
    return key or password or words[-1] in _SECRET


def _in_query(match: re.Match[str]) -> str:
    words = {word.lower() for word in _WORD.findall(match[2])}
    secret = is_secret(match[2]) or bool(words & _IN_QUERY)
    return f"{match[1]}{match[2]}={MASK}" if secret else match[0]


def _named(match: re.Match[str]) -> str:
    """Returns the match, with its value masked if the name in the match indicates a secret."""
    before, name, between, value = match.groups()
    if not is_secret(name):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    closed = before.strip("-")  # a quoted name's second quote
    return f"{before}{name}{closed}{between}{quote}{MASK}{quote}"


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Yield every text in plain data, each with its dotted key."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from _texts(one, f"{where}.{number}".lstrip("."))
    elif isinstance(value, str):
        yield where, value


def _filled(value: Any, secrets: Mapping[str, str], where: str) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _filled(one, secrets, f"{where}.{key}".lstrip(".")) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_filled(one, secrets, f"{where}.{n}".lstrip(".")) for n, one in enumerate(value)]
    return secrets.get(where, value) if isinstance(value, str) and MASK in value else value
