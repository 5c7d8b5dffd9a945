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
LIMITS = ("--max-body-kb", "4", "--max-sessions", "2", "--read-timeout", "2")


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
    assert "internal error" not in server.log and "Traceback" not in server.log


def chat(content: Any = SECRET, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **fields}


def post(server: Running, **arguments: Any) -> httpx.Response:
    headers = {**server.headers, "content-type": "application/json"}
    url = server.url + "/v1/chat/completions"
    return httpx.post(url, headers=headers, timeout=600, **arguments)


def raw(server: Running, *parts: bytes) -> bytes:
    """What comes back on a connection of one's own, until the server closes it."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=600) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:
            pass
        return received


def head(method: str, path: str, *lines: str) -> bytes:
    start = (f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}")
    return "\r\n".join((*start, *lines, "", "")).encode("latin-1")


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/models", {"authorization": "Bearer wrong"}),
        ("/metrics", {"authorization": "x"}),
    ],
)
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
    [
        b"",
        b'"' + SECRET.encode(),
        b"[" * 2000,
        b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
        json.dumps(chat([{"type": "image_url", "image_url": SECRET}])).encode(),
        json.dumps({"messages": [SECRET]}).encode(),
        json.dumps({"messages": [{"role": "system", "content": "\ue000first\ue000"}]}).encode(),
    ],
    ids=lambda body: repr(body[-60:]),
)
def test_a_malformed_body_is_refused(server: Running, body: bytes) -> None:
    answer = post(server, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_special_tokens_in_a_text_stay_text(server: Running) -> None:
    def tokens(system: str, text: str) -> int:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        return post(server, json={"messages": messages}).json()["usage"]["prompt_tokens"]

    plain = tokens("be brief", "end")  # a token for each letter
    assert tokens("be brief", "<|end|>") - plain == len("<||>")
    assert tokens("be<|end|>brief", "end") - plain == len("<|end|>") - len(" ")


def test_a_request_with_two_lengths_is_refused_and_what_follows_is_not_read(
    server: Running,
) -> None:
    lines = ("Content-Type: application/json", "Content-Length: 4", "Transfer-Encoding: chunked")
    hidden = head("GET", "/health")
    sent = head("POST", "/v1/chat/completions", *lines) + b"0\r\n\r\n" + hidden
    answer = raw(server, sent)
    assert b" 400 " in answer.splitlines()[0]
    assert answer.count(b"HTTP/1.1") == 1


def test_sessions_beyond_the_limit_are_refused(server: Running) -> None:
    answers = [post(server, json=chat(session_id=f"s{number}")) for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "retry-after" in answers[2].headers


JSON = "Content-Type: application/json"
LENGTH = "Content-Length: 2"
ASKED = "/v1/chat/completions"
HEADS = {
    "another type": ("POST", ASKED, "Content-Type: text/plain", LENGTH),
    "no type": ("POST", ASKED, LENGTH),
    "a negative length": ("POST", ASKED, JSON, "Content-Length: -1"),
    "a length of 30 digits": ("POST", ASKED, JSON, f"Content-Length: {'9' * 30}"),
    "an encoding that is none": ("POST", ASKED, JSON, "Transfer-Encoding: \x0bchunked"),
    "another method": ("p" * 40, ASKED, JSON, LENGTH),
    "no path": ("OPTIONS", "*", LENGTH),
    "half a surrogate pair as a path": ("POST", "/%ed%a0%80", JSON, LENGTH),
    "a session that is none": ("DELETE", "/v1/sessions/%00", LENGTH),
    "70,000 bytes of headers": ("POST", ASKED, JSON, LENGTH, f"{'X' * 70_000}: a"),
    "a file of the machine": ("GET", "/page/../../../../etc/passwd", LENGTH),
    "a file of the machine in escapes": ("GET", "/page/%2e%2e%2f%2e%2e%2fetc%2fpasswd", LENGTH),
    "a file of the code": ("GET", "/page/../engine.py", LENGTH),
    "another host's file": ("GET", "//etc/passwd", LENGTH),
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_that_is_wrong_gets_one_clear_refusal(server: Running, kind: str) -> None:
    answer = raw(server, head(*HEADS[kind], "Connection: close") + b"{}")
    status, _, body = answer.partition(b"\r\n\r\n")
    assert status.split(b" ")[1].startswith(b"4") and answer.count(b"HTTP/1.1 ") == 1
    if body.startswith(b"{"):
        message = json.loads(body)["error"]["message"]
        assert message and "\n" not in message and len(message) <= 300
    else:  # refused by the HTTP parser, before any of our code
        assert b" 400 " in status.splitlines()[0] and len(body) < 80


def test_a_long_body_in_chunks_is_refused(server: Running) -> None:
    part = (SECRET * 100).encode()[:1024]
    answer = post(server, content=iter([part] * 64))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_slow_headers_close_the_connection(server: Running) -> None:
    assert raw(server, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-A: ") == b""


def test_a_path_cannot_write_lines_into_the_log(server: Running) -> None:
    raw(server, head("GET", "/a%0d%0aforged%20line", "Connection: close"))
    server.until_logged("GET /a%0D%0Aforged%20line 404")
    assert not [line for line in server.log.splitlines() if line.startswith("forged")]


def test_what_is_no_http_gets_400(server: Running) -> None:
    assert b" 400 " in raw(server, SECRET.encode() + b"\r\n\r\n")


def test_a_client_that_leaves_frees_its_row(server: Running) -> None:
    body = json.dumps(chat(max_tokens=64, stream=True)).encode()
    lines = (JSON, f"Content-Length: {len(body)}")
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head("POST", ASKED, *lines) + body)
    while server.metric("colearn_running_rows") != 0:
        time.sleep(0.1)


def test_only_method_path_status_and_time_are_logged(server: Running) -> None:
    post(server, json=chat(), params={"q": SECRET})
    server.until_logged("POST /v1/chat/completions 200")
