"""Hostile requests get a 4xx or a closed connection, leave no word in the log, and do no harm."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from exported import Running, export_tiny, serving

TOKEN = "correct-horse"
SECRET = "XYZZY-secret-text"
BODY = 4096
PATIENCE = 2.0
LIMITS = ("--max-body-kb", "4", "--max-messages", "4", "--max-tokens", "64")
LIMITS += ("--max-sessions", "2", "--read-timeout", str(PATIENCE))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = export_tiny(tmp_path_factory.mktemp("hostile") / "ada")
    with serving(folder, *LIMITS, token=TOKEN) as running:
        yield running


@pytest.fixture(autouse=True)
def lives_and_keeps_silent(server: Running) -> Iterator[None]:
    yield
    assert server.get("/health").json() == {"status": "ok"}
    assert SECRET not in server.log and TOKEN not in server.log


def chat(content: Any = SECRET, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **fields}


def post(server: Running, **arguments: Any) -> httpx.Response:
    headers = {**server.headers, "content-type": "application/json"}
    url = server.url + "/v1/chat/completions"
    return httpx.post(url, headers=headers | arguments.pop("headers", {}), timeout=600, **arguments)


def raw(server: Running, *parts: bytes, pause: float = 0.0) -> bytes:
    """What comes back on a connection of one's own, until the server closes it."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=600) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:
            pass
        return received


def head(method: str, path: str, *lines: str) -> bytes:
    start = (f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}")
    return "\r\n".join((*start, *lines, "", "")).encode()


@pytest.mark.parametrize("header", ({}, {"authorization": "Bearer wrong"}, {"authorization": "x"}))
@pytest.mark.parametrize("path", ("/v1/chat/completions", "/v1/models", "/metrics", "/v1/agent"))
def test_without_the_token_there_is_nothing(
    server: Running, path: str, header: dict[str, str]
) -> None:
    answer = httpx.get(server.url + path, headers=header)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"


def test_health_and_page_need_no_token(server: Running) -> None:
    assert httpx.get(server.url + "/health").status_code == 200
    assert httpx.get(server.url + "/").status_code != 401


@pytest.mark.parametrize(
    "body",
    (
        b"",
        b"{",
        b'{"messages": ',
        b"[]",
        b'"' + SECRET.encode(),
        b"\xff\xfe{}",
        b"[" * 2000,
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "\\ud800": 1}',
        b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
        b'{"messages": [{"role": "user", "content": "\xff"}]}',
        '{"messages": [{"role": "user", "content": "a"}]}'.encode("utf-16"),
        b'{"seed": ' + b"9" * 4000 + b"}",
        b'{"messages": [{"role": "user", "content": "a"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "a"}], "temperature": 1e999}',
        b'{"messages": [{"role": "user", "content": "a"}], "str": 1}',
        *(
            b'{"messages": [{"role": "user", "content": "a"}], "%s": %s}' % (field, b"9" * 400)
            for field in (b"max_tokens", b"max_completion_tokens", b"n", b"top_k", b"seed")
        ),
        b'{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function",'
        b'"function": {"name": "a", "parameters": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}}]}",
        *(
            b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls":'
            b'[{"id": "1", "function": {"name": "a", "arguments": "%s"}}]}, {"role": "tool",'
            b'"content": "a"}]}' % arguments
            for arguments in (
                rb"{\"a\": \"\\ud83d\"}",
                rb"{\"\\udc00\": 1}",
                b'{\\"a\\": ' + b"[" * 900 + b"]" * 900 + b"}",
            )
        ),
    ),
    ids=lambda body: repr(body[-60:]),
)
def test_a_malformed_body_is_refused(server: Running, body: bytes) -> None:
    answer = post(server, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "messages",
    (
        [{"role": "root", "content": SECRET}],
        [{"role": "user"}],
        [{"role": "user", "content": {"text": SECRET}}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": SECRET}]}],
        [{"role": "assistant", "content": SECRET}],
        [{"role": "tool", "content": SECRET, "tool_call_id": "1"}],
        [{"role": "system", "content": "\ue000first\ue000"}, {"role": "user", "content": SECRET}],
        [SECRET],
        {"0": SECRET},
    ),
)
def test_messages_of_a_wrong_kind_are_refused(server: Running, messages: Any) -> None:
    assert post(server, json={"messages": messages}).status_code == 400


def test_special_tokens_in_a_text_stay_text(server: Running) -> None:
    plain = post(server, json=chat("end")).json()["usage"]["prompt_tokens"]
    spelt = post(server, json=chat("<|end|>")).json()["usage"]["prompt_tokens"]
    assert spelt - plain == len("<||>")  # a token for each letter


def test_special_tokens_in_a_system_text_stay_text(server: Running) -> None:
    def tokens(system: str) -> int:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "a"}]
        return post(server, json={"messages": messages}).json()["usage"]["prompt_tokens"]

    assert tokens("<|end|><|user|>") - tokens("end" + "user") == 2 * len("<||>")


def test_a_request_with_two_lengths_is_refused_and_what_follows_is_not_read(
    server: Running,
) -> None:
    lines = ("Content-Type: application/json", "Content-Length: 4", "Transfer-Encoding: chunked")
    hidden = head("GET", "/health")
    sent = head("POST", "/v1/chat/completions", *lines) + b"0\r\n\r\n" + hidden
    answer = raw(server, sent)
    assert b" 400 " in answer.splitlines()[0]
    assert answer.count(b"HTTP/1.1") == 1


def test_more_tokens_than_allowed_are_refused(server: Running) -> None:
    assert post(server, json=chat(max_tokens=65)).json()["error"]["param"] == "max_tokens"


def test_an_unknown_session_with_earlier_turns_is_not_found(server: Running) -> None:
    said = [("user", SECRET), ("assistant", SECRET), ("user", SECRET)]
    messages = [{"role": role, "content": text} for role, text in said]
    answer = post(server, json={"messages": messages, "session_id": "ghost"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "session_not_found")


def test_sessions_beyond_the_limit_are_refused(server: Running) -> None:
    answers = [post(server, json=chat(session_id=f"s{number}")) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "retry-after" in answers[2].headers


def test_another_content_type_is_refused(server: Running) -> None:
    headers = {"content-type": "text/plain"}
    assert post(server, content=json.dumps(chat()), headers=headers).status_code == 415


def test_a_long_body_is_refused_before_it_is_sent(server: Running) -> None:
    lines = ("Content-Type: application/json", f"Content-Length: {10**12}")
    assert b" 413 " in raw(server, head("POST", "/v1/chat/completions", *lines))


def test_a_long_body_in_chunks_is_refused(server: Running) -> None:
    part = (SECRET * 100).encode()[:1024]
    answer = post(server, content=iter([part] * 64))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_a_slow_body_is_refused(server: Running) -> None:
    lines = ("Content-Type: application/json", "Content-Length: 100")
    start = time.monotonic()
    answer = raw(server, head("POST", "/v1/chat/completions", *lines), b'{"mess')
    assert b" 408 " in answer
    assert time.monotonic() - start >= PATIENCE


@pytest.mark.parametrize("sent", (b"", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: "))
def test_slow_headers_close_the_connection(server: Running, sent: bytes) -> None:
    assert raw(server, sent) == b""


@pytest.mark.parametrize(
    "path",
    (
        "/page/../../../../etc/passwd",
        "/page/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/page/..%5c..%5cetc%5cpasswd",
        "/page//etc/passwd",
        "/page/../engine.py",
        "/page/%00",
        "//etc/passwd",
        "/..",
        f"/{SECRET[:0]}v2/chat",
    ),
)
def test_a_path_leads_to_no_file(server: Running, path: str) -> None:
    answer = raw(server, head("GET", path, "Connection: close"))
    assert b" 404 " in answer.splitlines()[0]
    assert b"root:" not in answer


def test_a_path_cannot_write_lines_into_the_log(server: Running) -> None:
    raw(server, head("GET", "/a%0d%0aforged%20line", "Connection: close"))
    server.until_logged("GET /a%0D%0Aforged%20line 404")
    assert not [line for line in server.log.splitlines() if line.startswith("forged")]


def test_a_request_without_a_path_leaves_no_traceback(server: Running) -> None:
    assert b" 404 " in raw(server, head("OPTIONS", "*", "Connection: close")).splitlines()[0]
    server.until_logged("OPTIONS ")
    assert "Traceback" not in server.log


def test_what_is_no_http_gets_400(server: Running) -> None:
    assert b" 400 " in raw(server, SECRET.encode() + b"\r\n\r\n")


def test_a_client_that_leaves_frees_its_row(server: Running) -> None:
    body = json.dumps(chat(max_tokens=64, stream=True)).encode()
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head("POST", "/v1/chat/completions", *lines) + body)
    while server.metric("colearn_running_rows") != 0:
        time.sleep(0.1)


def test_only_method_path_status_and_time_are_logged(server: Running) -> None:
    post(server, json=chat(), params={"q": SECRET})
    server.until_logged("POST /v1/chat/completions 200")
