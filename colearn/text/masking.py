"""Masks passwords, tokens and keys in everything that a run writes or prints.

The following are masked: user and password in URLs; values of settings, options, variables,
headers and query parameters whose names indicate a secret; bearer tokens; tokens in the known
formats of providers; and the values of environment variables whose names indicate a secret.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
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
        "jwt",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "pwd",
        "secret",
        "secrets",
        "token",
    ]
)
_KEY_OF = frozenset(
    [
        *("anthropic", "azure", "gemini", "google", "huggingface", "mistral", "openai"),
        "access",
        "account",
        "api",
        "auth",
        "client",
        "encryption",
        "functions",
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
_TOKENS_OF = frozenset(("access", "api", "auth", "bearer", "refresh"))
"""Words that precede `tokens` in the names of lists of secrets. All other tokens are counted."""
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
"""Words before `token` in the names of a tokenizer's special tokens, which are no secrets."""
_IN_QUERY = frozenset(
    ("auth", "jsessionid", "jwt", "key", "pass", "session", "sessionid", "sig", "signature")
)
"""Words for a secret in a query parameter's name. In a query, `key` is a credential."""
_LONG_CODE = 16
"""Minimum number of characters of a query's `code` that is a credential."""

_PASSWORD = re.compile(r"(key|pass(code|phrase|wd|word)?|pwd)$", re.IGNORECASE)
_LONG_VALUE = 12
_MIXED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[^/~\s]\S*\Z")
"""A value of at least `_LONG_VALUE` characters that is recognised wherever it stands."""

_NAME = r"[A-Za-z][\w.-]*"
_VALUE = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,;&\"'()\[\]{}|]+"
_URL_USER = re.compile(r"((?:\b[A-Za-z][A-Za-z0-9+.-]{0,19}:)?//)[^\s/?#\"'<>]*@")
"""The length of a scheme is limited so that the time is linear in the length of the text; the
longest common one has 12 characters."""
_BARE_USER = re.compile(r"(?<![\w/@*:.+%-])(?!mailto:)[\w.+%-]+:[^\s:@/\"']+@(?!sha)(?=[\w\[])")
_LOGIN_OPTIONS = ("-u", "--user", "--proxy-user")
_WHOLE_NAME = re.compile(_NAME)
_LOGIN = re.compile(rf"((?:^|\s)(?:{'|'.join(_LOGIN_OPTIONS)})[\s=]+[^\s:=-][^\s:=]*:)[^\s:]+")
_QUERY = re.compile(rf"([?&#;])({_NAME})(=|%3[Dd])([^\s&#;\"'<>]+)")
_SET = re.compile(rf"(?<![?&#;\w.-])(-{{0,2}})({_NAME})(\s?=\s?)({_VALUE})")
_OPTION = re.compile(rf"(?<![\w-])(--?)({_NAME})(\s+)({_VALUE})")
_QUOTED = re.compile(rf"([\"'])({_NAME})\1(\s*:\s*)(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')")
_ESCAPED = re.compile(rf"(\\+[\"'])({_NAME})(\1\s*:\s*\1)([^\"'\\]+)")
"""A mapping within a JSON text, whose quotes have backslashes."""
_PAIR = re.compile(rf"([(\[]\s*b?[\"'])({_NAME})([\"']\s*,\s*b?[\"'])([^\"']+)")
"""A header as a tuple or list of its name and its value."""
_COLON = re.compile(
    rf"(?<![\w.-])()({_NAME})([\"']?\s{{0,2}}:\s{{0,4}}[\"']?"
    r"(?:(?:Token|Basic|Bearer|ApiKey)\s+(?:token=)?)?)"
    r"(?=[^\s\"',]{0,200}?[0-9])([^\s\"',;(){}\[\]]{8,})",
    re.IGNORECASE,
)
"""A header or a line of YAML. A value without a digit is taken for a word of a sentence."""
_SAID = re.compile(
    r"\b((?:api[ _-]?key|passwd|password)(?: (?:is|was|provided|given))?[:\s]\s?[\"'`]?)"
    r"(?=[\w.~+/=-]{0,200}?[0-9])[\w.~+/=-]{8,}",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\b(Bearer|Basic)(\s+)(?=[\w.~+/-]*[0-9_=])[\w.~+/=-]{8,}", re.IGNORECASE)
_KNOWN = re.compile(
    r"\b(?:sk-(?:ant-|proj-)?[\w-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abposr]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{8,1000}\.[\w-]{8,8000}\.[\w-]*"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{20,}|nvapi-[\w-]{20,}"
    r"|xai-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|tgp_v1_[\w-]{20,}"
    r"|wandb_v1_\w{20,}|npm_[A-Za-z0-9]{20,}|pypi-AgE[\w-]{16,}|ya29\.[\w-]{20,}"
    r"|fw_[A-Za-z0-9]{20,}|lsv2_(?:pt|sk)_\w{20,}|sk_[A-Za-z0-9]{24,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_[0-9a-f]{32,})"
)

_WEBHOOK = re.compile(
    r"\b(hooks\.slack\.com/services/|webhook\.office\.com/|discord(?:app)?\.com/api/webhooks/|api\.telegram\.org/bot)"
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
    """Return the text with all secrets replaced by `MASK`; applying it again changes nothing."""
    for value in _secrets_of_environment():
        text = text.replace(value, MASK)
    text = _URL_USER.sub(rf"\g<1>{MASK}@", text)
    text = _BARE_USER.sub(f"{MASK}@", text)
    text = _LOGIN.sub(rf"\1{MASK}", text)
    text = _QUERY.sub(_in_query, text)
    for pattern in (_SET, _OPTION, _QUOTED):
        text = pattern.sub(_named, text)
    for pattern in (_ESCAPED, _PAIR, _COLON):
        text = pattern.sub(_after_name, text)
    text = _SAID.sub(rf"\1{MASK}", text)
    text = _HEADER.sub(rf"\1\2{MASK}", text)
    text = _HEADER_NAME.sub(rf"\1\2{MASK}", text)
    text = _COOKIE.sub(rf"\1{MASK}", text)
    text = _WEBHOOK.sub(rf"\1{MASK}", text)
    text = _PEM.sub(rf"\1{MASK}\2", text)
    return _KNOWN.sub(MASK, text)


def masked_settings(value: Any, name: str = "") -> Any:
    """Mask the secrets in all texts of plain data. `name` is the name of the setting that holds the
    data. All texts in a list or section with the name of a secret are masked."""
    if isinstance(value, Mapping):
        header = value.get("name")
        keys = {key: str(key) for key in value}
        if isinstance(header, str) and is_secret(header):
            keys["value"] = header
        return {
            key: masked_settings(entry, name if is_secret(name) else keys[key])
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple):
        if name == "auth":  # user and password
            return [MASK if entry and isinstance(entry, str) else entry for entry in value]
        before = ["", *(entry if isinstance(entry, str) else "" for entry in value)]
        return [
            _masked_item(entry, name, previous)
            for entry, previous in zip(value, before, strict=False)
        ]
    if isinstance(value, str):
        return MASK if value and is_secret(name) and not value.startswith("-") else masked(value)
    return value


def _masked_item(value: Any, name: str, before: str) -> Any:
    """Returns the masked item of a list called `name`. The text `before` it may be an option or a
    header's name."""
    if before in _LOGIN_OPTIONS and isinstance(value, str):
        return masked(f"{before} {value}").removeprefix(f"{before} ")
    names_it = before.startswith("-") or (_WHOLE_NAME.fullmatch(before) and is_secret(before))
    return masked_settings(value, before if names_it else name)


def masked_keys(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted key and the value of every text in plain data that would be masked."""
    masks = dict(_texts(masked_settings(value), path))
    return ((key, text) for key, text in _texts(value, path) if masks[key] != text)


def with_secrets(data: Any) -> Any:
    """Return plain data in which masked texts are replaced by the values in the environment
    variable `COLEARN_SECRETS`.

    Errors: ConfigError if the variable is not a JSON object of texts.
    """
    text = os.environ.get(SECRETS)
    if not text:
        return data
    try:
        secrets = json.loads(text)
    except ValueError:
        secrets = None
    if not isinstance(secrets, dict) or not all(
        isinstance(secret, str) for secret in secrets.values()
    ):
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


def check_texts(data: Any, path: str = "") -> None:
    """Errors: ConfigError for a password or key that is a number, since only texts are masked."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            below = f"{path}.{key}".lstrip(".")
            if type(value) in (int, float) and is_secret(str(key)) and _PASSWORD.search(str(key)):
                raise ConfigError(f"{below}: is a number; write it in quotes, as a text")
            check_texts(value, below)


@cache
def is_secret(name: str) -> bool:
    """Whether the name of a setting, option or variable indicates that the value is secret."""
    words = [word.lower() for word in _WORD.findall(name.rpartition(".")[2]) if word.isalpha()]
    if words[-1:] == ["header"]:
        words = ["authorization" if word == "auth" else word for word in words[:-1]]
    if not words or (words[-1] == "token" and _TOKEN_OF & set(words)):
        return False
    last, of = words[-1], set(words)
    key = last in ("key", "keys") and (bool(_KEY_OF & of) or name.isupper())
    password = last == "pass" and (len(words) == 1 or bool(_PASS_OF & of))
    several = last == "tokens" and bool(_TOKENS_OF & of)
    signed = last == "signature" and bool(_KEY_OF & of)
    named = last in _SECRET or last.endswith(("apikey", "password"))  # PGPASSWORD
    return key or password or several or signed or named or words[-2:] == ["pass", "word"]


def _secrets_of_environment() -> list[str]:
    """Returns the values of the environment variables whose names indicate a secret. A value that
    may be a word, a number or a path is left out."""
    return [
        value
        for name, value in os.environ.items()
        if len(value) >= _LONG_VALUE and is_secret(name) and _MIXED.match(value)
    ]


def _in_query(match: re.Match[str]) -> str:
    before, name, equals, value = match.groups()
    words = {word.lower() for word in _WORD.findall(name)}
    secret = is_secret(name) or bool(words & _IN_QUERY)
    code = name.lower() == "code" and len(value) >= _LONG_CODE
    return f"{before}{name}{equals}{MASK}" if secret or code else match[0]


def _after_name(match: re.Match[str]) -> str:
    """Does what `_named` does, for a match whose value has no quotes."""
    before, name, between, _ = match.groups()
    return f"{before}{name}{between}{MASK}" if is_secret(name) else match[0]


def _named(match: re.Match[str]) -> str:
    """Returns the match, with its value masked if the name in the match indicates a secret."""
    before, name, between, value = match.groups()
    if not is_secret(name):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    closed = before.strip("-")  # a quoted name's second quote
    return f"{before}{name}{closed}{between}{quote}{MASK}{quote}"


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield every text in plain data, each with its dotted key."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _texts(entry, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, entry in enumerate(value):
            yield from _texts(entry, f"{path}.{number}".lstrip("."))
    elif isinstance(value, str):
        yield path, value


def _filled(value: Any, secrets: Mapping[str, str], path: str) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _filled(entry, secrets, f"{path}.{key}".lstrip("."))
            for key, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [_filled(entry, secrets, f"{path}.{n}".lstrip(".")) for n, entry in enumerate(value)]
    return secrets.get(path, value) if isinstance(value, str) and MASK in value else value
