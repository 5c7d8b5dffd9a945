"""Hostile requests made by a generator: each gets one clear refusal, and the server lives on.

A request is a good one with one thing wrong: a value of another type or out of its range, a field
nobody knows, nesting, text that is no text, bytes cut off or changed, a header that lies.
"""

from __future__ import annotations

import copy
import json
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from exported import Running, export_tiny, serving

COUNT = 40
"""Of each kind."""
BODY = 16 * 1024
GOOD: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "go on"},
    ],
    "model": "ada",
    "max_tokens": 2,
    "temperature": 1.0,
    "top_p": 0.9,
    "top_k": 5,
    "seed": 7,
    "n": 1,
    "stop": ["x"],
    "stream": False,
    "logprobs": True,
    "top_logprobs": 2,
}
RANGES: dict[str, tuple[Any, ...]] = {
    "max_tokens": (0, -1, 2**31, 10**30, 1.5),
    "temperature": (-0.1, 2.1, 1e308, -1e308),
    "top_p": (0, -1, 1.0001, 1e9),
    "top_k": (0, -5, 2**31, 10**25),
    "seed": (2**64, -(2**63) - 1, 10**40, 0.5),
    "n": (0, -1, 65, 10**12),
    "top_logprobs": (-1, 21, 10**9),
    "stop": ([""], ["x"] * 17, "y" * 257, [["x"]], [None]),
    "model": ("ben", "", "ada\n", "\u202eada"),
    "session_id": ("", "a/b", "a" * 65, "../x", "ü", "a b", "\x00", "a\n"),
    "messages": ([], [{}], [[]], [None]),
}
OTHER_TYPES: tuple[Any, ...] = (None, True, -3, 2.5, "text", [], [1], {}, {"a": 1}, [[[]]])


@dataclass
class Hostile:
    """One request, as bytes after the request line and the good headers."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str = "/v1/chat/completions"


def encoded(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")


def wrong_types(rng: random.Random) -> Hostile:
    request = copy.deepcopy(GOOD)
    name = rng.choice([key for key in GOOD if key != "messages"])
    fitting = {type(GOOD[name]), type(None)}
    if name == "stop":
        fitting |= {str}
    if float in fitting:
        fitting |= {int}
    request[name] = rng.choice([v for v in OTHER_TYPES if type(v) not in fitting])
    return Hostile(encoded(request))


def out_of_range(rng: random.Random) -> Hostile:
    name = rng.choice(list(RANGES))
    return Hostile(encoded({**GOOD, name: rng.choice(RANGES[name])}))


def unknown_fields(rng: random.Random) -> Hostile:
    name = "".join(chr(rng.choice((95, 36, 233, 0x4E00, 97, 10, 0x1F600))) for _ in range(6))
    place = rng.choice(("request", "message", "part"))
    request = copy.deepcopy(GOOD)
    if place == "request":
        request[name] = rng.choice(OTHER_TYPES)
    elif place == "message":
        # an empty field of another SDK is left out
        request["messages"][-1][name] = rng.choice([value for value in OTHER_TYPES if value])
    else:
        request["messages"][-1]["content"] = [{"type": "text", "text": "a", name: 1}]
    return Hostile(encoded(request))


def wrong_messages(rng: random.Random) -> Hostile:
    request = copy.deepcopy(GOOD)
    messages = request["messages"]
    match rng.randrange(4):
        case 0:
            rng.choice(messages)["role"] = rng.choice(("root", "", "USER", "tool", 1, None, []))
        case 1:
            rng.choice(messages)["content"] = rng.choice((None, 1, True, {}, [1], [[]], [{}]))
        case 2:
            del rng.choice(messages)[rng.choice(("role", "content"))]
        case _:
            messages.append({"role": "assistant", "content": "the end"})
    return Hostile(encoded(request))


def nested(rng: random.Random) -> Hostile:
    depth = rng.choice((50, 900, 1100, 5000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    inside = opening * depth + b"1" + (closing * depth if rng.random() < 0.7 else b"")
    place = rng.choice((b"%s", b'{"messages": %s}', b'{"messages": [], "stop": %s}'))
    return Hostile((place % inside)[:BODY])


def no_text(rng: random.Random) -> Hostile:
    raw = (b"\xed\xa0\x80", b"\xff", b"\xc0\xaf", b"\xf5\x80\x80\x80", b"\xe2\x82")
    broken = rng.choice((*raw, b"\\ud800", b"\\udfff\\ud800"))
    return Hostile(encoded(GOOD).replace(rng.choice((b"go on", b"brief", b"ada", b"seed")), broken))


def truncated(rng: random.Random) -> Hostile:
    whole = encoded(GOOD)
    return Hostile(whole[: rng.randrange(len(whole))])


def changed_bytes(rng: random.Random) -> Hostile:
    """Of the structure, so that it cannot be JSON any more."""
    whole = bytearray(encoded(GOOD))
    places = [n for n, byte in enumerate(whole) if byte in b'{}[]:"']
    for place in rng.sample(places, rng.choice((1, 3))):
        whole[place] = rng.choice(b"\x00\x01\x1f@;|")
    return Hostile(bytes(whole))


def wrong_heads(rng: random.Random) -> Hostile:
    good = encoded(GOOD)
    return rng.choice(
        (
            Hostile(good, {"Content-Type": rng.choice(("text/plain", "", "text/xml", "\xff"))}),
            Hostile(good, {"Content-Length": rng.choice(("-1", "1e3", "9" * 30, "12, 13"))}),
            Hostile(good, {"Content-Length": str(BODY + 1)}),
            Hostile(good, {"Transfer-Encoding": rng.choice(("chunked", "gzip", "\x0bchunked"))}),
            Hostile(good, {"Host": rng.choice(("evil.example", "127.0.0.1.evil", "", "[", "a:b"))}),
            Hostile(b"a" * (BODY + 1)),
            Hostile(good, method=rng.choice(("GET", "PUT", "TRACE", "BREW", "p" * 40))),
            Hostile(good, path=rng.choice(("/v1", "/v1/models/ben", "/%ed%a0%80", "/v1//"))),
            Hostile(b"", method="DELETE", path=rng.choice(("/v1/sessions/x", "/v1/sessions/%00"))),
            Hostile(good, {"X" * 70_000: "a"}),
        )
    )


KINDS = (
    wrong_types,
    out_of_range,
    unknown_fields,
    wrong_messages,
    nested,
    no_text,
    truncated,
    changed_bytes,
    wrong_heads,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = export_tiny(tmp_path_factory.mktemp("generated") / "ada")
    limits = ("--max-body-kb", str(BODY // 1024), "--max-tokens", "64", "--read-timeout", "3")
    with serving(folder, *limits, "--rate", "0") as running:
        yield running


def send(server: Running, hostile: Hostile) -> bytes:
    """Everything that comes back on a connection of its own."""
    address = urlsplit(server.url)
    headers = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(hostile.body)),
        **hostile.headers,
    }
    lines = [f"{hostile.method} {hostile.path} HTTP/1.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    with socket.create_connection((address.hostname, address.port), timeout=600) as connection:
        received = b""
        try:
            connection.sendall(head + hostile.body)
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:
            pass  # the answer came before all was sent
        return received


def fault(answer: bytes) -> str | None:
    """What is wrong with a refusal."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ")[1:2]
    if not status or not status[0].startswith(b"4"):
        return f"the answer begins {answer[:60]!r}"
    if answer.count(b"HTTP/1.1 ") != 1:
        return "there are two answers"
    if not body.startswith(b"{"):  # refused by the HTTP parser, before any of our code
        return None if status[0] == b"400" and len(body) < 80 else f"the body is {body[:60]!r}"
    message = json.loads(body)["error"]["message"]
    if not message or "\n" in message or len(message) > 300:
        return f"the message is {message[:300]!r}"
    return None


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_every_hostile_request_gets_one_clear_refusal(server: Running, kind: Any) -> None:
    rng = random.Random(kind.__name__)
    faults = {}
    for number in range(COUNT):
        hostile = kind(rng)
        wrong = fault(send(server, hostile))
        if wrong is not None:
            faults[number] = wrong, str(hostile.headers)[:80], hostile.body[:200]
    assert not faults
    assert server.get("/health").json() == {"status": "ok"}
    assert "internal error" not in server.log and "Traceback" not in server.log


def test_the_request_that_they_are_made_of_is_answered(server: Running) -> None:
    assert b" 200 " in send(server, Hostile(encoded(GOOD))).splitlines()[0]
