"""Who may ask, and what a failure tells."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from colearn.deploy.client.loopback import is_loopback
from colearn.deploy.serve.access import LOOPBACK, names_to_call, read_token
from colearn.deploy.serve.guard import Guard
from colearn.errors import ConfigError

SECRET = "what a client said"


def get(app: Any, path: str = "/v1/x", **headers: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def guard(app: Any = None, **settings: Any) -> Guard:
    defaults = {
        "token": None,
        "hosts": None,
        "draining": lambda: False,
        "seen": lambda path, status: None,
    }
    return Guard(app or PlainTextResponse("fine"), **{**defaults, **settings})


def test_the_right_token_opens() -> None:
    assert get(guard(token="key"), authorization="Bearer key").text == "fine"


def test_anthropics_clients_have_a_header_of_their_own() -> None:
    assert get(guard(token="key"), **{"x-api-key": "key"}).text == "fine"
    assert get(guard(token="key"), **{"x-api-key": "kez"}).status_code == 401
    both = {"x-api-key": "key", "authorization": "Bearer kez"}
    assert get(guard(token="key"), **both).status_code == 401


@pytest.mark.parametrize("given", ("Bearer kez", "Bearer", "key", "Basic key", "Bearer key key"))
def test_a_wrong_token_does_not(given: str) -> None:
    assert get(guard(token="key"), authorization=given).status_code == 401


def test_a_page_under_another_name_cannot_reach_a_server_without_token() -> None:
    """A browser sends the name by which a foreign page has this machine's address."""
    one = guard(hosts=LOOPBACK)
    assert get(one, host="evil.example:8000").status_code == 403
    assert get(one, host="[::1]:8000").status_code == 200


@pytest.mark.parametrize("host", ("127.0.0.1", "127.0.0.2", "localhost", "::1"))
def test_every_address_of_this_machine_bounds_the_names(host: str) -> None:
    one = guard(hosts=names_to_call(host, None))
    assert get(one, host="evil.example:8000").status_code == 403
    shown = f"[{host}]" if ":" in host else host
    assert get(one, host=f"{shown}:8000").status_code == 200


def test_a_token_or_an_address_of_the_network_leaves_the_name_open() -> None:
    assert names_to_call("127.0.0.1", "key") is names_to_call("10.0.0.1", None) is None


def test_headers_beyond_the_limit_are_refused() -> None:
    assert get(guard(), **{"x-a": "a" * 17_000}).status_code == 431


def test_nothing_new_at_the_end_but_health() -> None:
    one = guard(draining=lambda: True)
    assert get(one).status_code == 503
    assert get(one, "/health").status_code == 200


def test_an_error_is_reported_without_its_text(capfd: pytest.CaptureFixture[str]) -> None:
    async def broken(*_: Any) -> None:
        raise ValueError(SECRET)

    answer = get(guard(broken))
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
    shown = capfd.readouterr().err
    assert "ValueError" in shown and SECRET not in shown


def test_a_token_comes_from_the_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc\n")
    assert read_token(file, "other", host="127.0.0.1", insecure=False) == "abc"
    assert read_token(None, "other", host="127.0.0.1", insecure=False) == "other"
    assert read_token(None, None, host="127.0.0.1", insecure=False) is None


def test_others_need_a_token_or_a_word_that_says_so() -> None:
    with pytest.raises(ConfigError, match=r"--host 0.0.0.0: .*--token-file"):
        read_token(None, None, host="0.0.0.0", insecure=False)
    assert read_token(None, None, host="0.0.0.0", insecure=True) is None


@pytest.mark.parametrize("text", ("", "two words", "käse", "a\nb"))
def test_a_token_that_cannot_be_one_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="token"):
        read_token(file, None, host="127.0.0.1", insecure=False)


def test_what_is_loopback() -> None:
    names = ("localhost", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "10.0.0.1", "a.example", "")
    assert [is_loopback(name) for name in names] == [True] * 4 + [False] * 4
