"""Whatever stands in any field of a request, it is read or refused by a 4xx."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.schema import parse, read_fields
from colearn.programs.gateway.contexts import read_request

CALL = {
    "id": "1",
    "type": "function",
    "index": 0,
    "function": {"name": "look", "arguments": '{"at": "sky"}'},
}
WHOLE: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be short", "name": "a"},
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "blue"},
    ],
    "model": "ada",
    "stream": False,
    "stream_options": {"include_usage": True},
    "stop": ["x"],
    "max_tokens": 5,
    "max_completion_tokens": 5,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 5,
    "seed": 1,
    "n": 1,
    "logprobs": True,
    "top_logprobs": 1,
    "tools": [
        {
            "type": "function",
            "function": {"name": "look", "description": "sees", "parameters": {"type": "object"}},
        }
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "session_id": "s1",
    "metadata": {"a": 1},
    "logit_bias": {},
    "response_format": {"type": "text"},
}


def deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


HALF = "\ud83d"
JUNK: list[Any] = [
    *(None, True, "", "text", HALF, {HALF: 1}, {"a": HALF}, [HALF], [], {}, [{}], [None]),
    *(0, -1, 2**31, 2**63, 10**400, -(10**400), 0.5, 1e308, float("nan"), float("inf")),
    *(deep(30), deep(100), deep(900), json.dumps(deep(900)), "[" * 100_000, "\x00\x1b[2J"),
    *('{"a": "\\ud83d"}', '{"\\ud83d": 1}', '{"a": 1e999}', '{"a": NaN}', "9" * 5000, "x" * 10_000),
    *('{"a": ' + "9" * 400 + "}", json.dumps({"a": deep(100)})),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(one, (*path, key))
    return found


@settings(max_examples=400, deadline=None)
@given(place=st.sampled_from(places(WHOLE)), junk=st.sampled_from(JUNK))
def test_junk_in_any_field_is_read_or_refused(place: tuple[Any, ...], junk: Any) -> None:
    whole = {"all": copy.deepcopy(WHOLE)}
    at: Any = whole
    *before, last = ("all", *place)
    for key in before:
        at = at[key]
    at[last] = junk
    try:
        asked = parse(json.dumps(whole["all"]).encode())
        prompt, context, _ = read_request(asked, None)
    except ServeError as error:
        assert error.status == 400 and "\n" not in error.message and len(error.message) <= 300
        json.dumps(error.body(), ensure_ascii=False, allow_nan=False).encode()
        return
    assert context.size >= 0 and prompt.whole.encode()
    assert all(text.encode() or True for _, text in context.said)
    bounds = (asked.max_tokens, asked.max_completion_tokens, asked.n, asked.top_k)
    assert all(one is None or 1 <= one < 2**31 for one in bounds)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a": NaN}', "holds NaN or a number beyond"),
        (b'{"a": -Infinity}', "holds NaN or a number beyond"),
        (b'{"a": 1e999}', "holds NaN or a number beyond"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (json.dumps(deep(65)).encode(), "holds more than 64 lists"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b'{"\\udfff": 1}', "half of a surrogate pair"),
        (b'{"a": "\xed\xa0\x80"}', "is not valid JSON"),
        (b"\xff\xfe{\x00}\x00", "is not valid JSON"),
        (b"[1]", "must be a JSON object"),
    ],
)
def test_a_body_that_is_no_object_of_text_and_finite_numbers_is_refused(
    body: bytes, reason: str
) -> None:
    with pytest.raises(ServeError, match=reason) as error:
        read_fields(body)
    assert error.value.status == 400


def test_pairs_and_escaped_backslashes_are_text() -> None:
    assert read_fields(b'{"a": "\\ud83d\\ude00", "b": "\\\\ud83d"}') == {"a": "😀", "b": "\\ud83d"}
