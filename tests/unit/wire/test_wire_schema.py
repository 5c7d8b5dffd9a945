"""What a request may hold: the bounds of its fields, and how a refusal names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.parts import CalledFunction
from colearn.deploy.client.protocol.schema import ChatRequest, parse

USER = {"role": "user", "content": "go"}
TOOL = {"type": "function", "function": {"name": "look"}}
TOOLS = [{"type": "function", "function": {"name": f"look{number}"}} for number in range(128)]
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def request(**fields: Any) -> ChatRequest:
    return parse(json.dumps({"messages": [USER], **fields}).encode())


def refused(**fields: Any) -> ServeError:
    with pytest.raises(ServeError) as refusal:
        request(**fields)
    assert refusal.value.status == 400
    return refusal.value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0), ("temperature", 2), ("top_p", 0.001), ("top_p", 1), ("top_k", 1),
        ("top_k", 2**31 - 1), ("seed", -(2**63)), ("seed", 2**64 - 1), ("n", 1),
        ("max_tokens", 1), ("max_completion_tokens", 1), ("top_logprobs", 0), ("top_logprobs", 20),
        ("stop", ["x"] * 16), ("stop", "y" * 256), ("stop", []), ("session_id", "a" * 64),
        ("session_id", "A.z_0-9"), ("tools", TOOLS),
    ],
)  # fmt: skip
def test_a_value_at_its_bound_is_taken(field: str, value: Any) -> None:
    assert field in request(**{field: value}).model_fields_set


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.01), ("temperature", 2.01), ("top_p", 0), ("top_p", 1.01), ("top_k", 0),
        ("top_k", 2**31), ("seed", -(2**63) - 1), ("seed", 2**64), ("n", 0), ("max_tokens", 0),
        ("max_completion_tokens", 0), ("top_logprobs", -1), ("top_logprobs", 21),
        ("stop", ["x"] * 17), ("stop", "y" * 257), ("stop", [""]), ("stop", ""),
        ("session_id", "a" * 65), ("session_id", ""), ("tools", [*TOOLS, TOOL]),
    ],
)  # fmt: skip
def test_a_value_beyond_its_bound_is_refused_by_its_field(field: str, value: Any) -> None:
    assert (refused(**{field: value}).param or "").partition(".")[0] == field


@pytest.mark.parametrize(
    ("field", "neutral", "other"),
    [
        ("frequency_penalty", 0, 0.5),
        ("presence_penalty", 0.0, -1),
        ("function_call", "none", "auto"),
        ("functions", [], [{"name": "look"}]),
        ("logit_bias", {}, {"5": 1}),
        ("modalities", ["text"], ["text", "audio"]),
        ("modalities", ["text"], []),
        ("response_format", {"type": "text"}, {"type": "json_object"}),
        ("audio", None, {}),
        ("moderation", None, False),
    ],
)
def test_what_is_not_supported_is_taken_where_it_asks_for_nothing(
    field: str, neutral: Any, other: Any
) -> None:
    assert request(**{field: neutral}) == request()
    assert request(**{field: None}) == request()
    refusal = refused(**{field: other})
    assert (refusal.param, refusal.code) == (field, "unsupported_parameter")


def test_fields_that_never_change_an_answer_are_dropped() -> None:
    assert request(user="me", store=True, metadata={"a": "b"}, service_tier="auto") == request()


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"messages": [{**USER, "colour": "red"}]}, "messages.0.colour", "unknown_parameter"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages.0.content", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]},
            "messages.0.content.0.text",
            "invalid_value",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages.0.content.0.type",
            "invalid_value",
        ),
        ({"stop": ["a", 3]}, "stop.1", "invalid_value"),
    ],
)
def test_a_refusal_names_the_field_and_where_it_is(
    fields: dict[str, Any], param: str, code: str
) -> None:
    refusal = refused(**fields)
    assert (refusal.param, refusal.code) == (param, code)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"temperatur": 1}, "'temperatur' is unknown to this server; leave it out"),
        ({"a\nb": 1}, "a field is unknown to this server; leave it out"),
        (
            {"messages": [{**USER, "x": 1}]},
            "'messages.0.x' is unknown to this server; leave it out",
        ),
        (
            {"messages": [{**USER, "a\nb": 1}]},
            "a field is unknown to this server; leave it out",
        ),
    ],
)
def test_a_field_is_repeated_only_where_it_is_a_name_of_the_request(
    fields: dict[str, Any], line: str
) -> None:
    assert refused(**fields).message == line


ECHOED = [
    "refusal",  # OpenAI
    "annotations",
    "audio",
    "function_call",
    "reasoning_content",  # DeepSeek, vLLM
    "reasoning_details",
    "provider_specific_fields",  # LiteLLM
    "thinking_blocks",
    "images",
]


@pytest.mark.parametrize("field", ECHOED)
def test_a_field_of_another_servers_answer_is_refused_by_its_name_unless_it_is_empty(
    field: str,
) -> None:
    answer = {"role": "assistant", "content": "so"}
    plain = request(messages=[answer, USER])
    for nothing in (None, "", [], {}):
        assert request(messages=[{**answer, field: nothing}, USER]) == plain
    refusal = refused(messages=[USER, {**answer, field: "SECRET"}, USER])
    assert refusal.message == f"'messages.1.{field}' is unknown to this server; leave it out"
    call = {**CALL, field: {"a": "SECRET"}}
    refusal = refused(messages=[{**answer, "tool_calls": [call]}, USER])
    assert refusal.message.startswith(f"'messages.0.tool_calls.0.{field}' is unknown")


def test_a_long_name_is_cut() -> None:
    assert refused(**{"a" * 500: 1}).param == "a" * 80


def test_a_value_is_not_repeated() -> None:
    refusal = refused(temperature="SECRET")
    assert "SECRET" not in refusal.message and "SECRET" not in json.dumps(refusal.body())


def test_a_pair_of_surrogates_is_one_character() -> None:
    (message,) = parse(b'{"messages": [{"role": "user", "content": "\\ud83d\\ude00"}]}').messages
    assert message.text == "\U0001f600"


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        ({"role": "assistant", "tool_calls": [CALL]}, True),
        ({"role": "assistant", "content": None, "annotations": []}, False),
        ({"role": "assistant", "content": "a", "annotations": []}, True),
        ({"role": "assistant", "content": "a", "annotations": [{}]}, False),
        ({"role": "assistant", "content": "a", "reasoning_content": None}, True),
        ({"role": "assistant", "content": "a", "reasoning_content": "b"}, False),
        ({"role": "assistant", "content": "a", "tool_calls": []}, True),
        ({"role": "assistant", "tool_calls": []}, False),
        ({"role": "assistant", "tool_calls": [CALL] * 128}, True),
        ({"role": "assistant", "tool_calls": [CALL] * 129}, False),
        ({"role": "user", "content": "a", "tool_calls": [CALL]}, False),
        ({"role": "user", "content": None, "tool_calls": [CALL]}, False),
        ({"role": "user"}, False),
    ],
)
def test_a_message_has_a_text_or_an_assistants_calls(message: dict[str, Any], taken: bool) -> None:
    body = json.dumps({"messages": [message, USER]}).encode()
    if taken:
        assert len(parse(body).messages) == 2
    else:
        with pytest.raises(ServeError, match=r"^'messages"):
            parse(body)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("[1]", {"arguments": "[1]"}),
        ("no JSON", {"arguments": "no JSON"}),
        ("[" * 100_000, {"arguments": "[" * 100_000}),
    ],
)
def test_arguments_that_are_no_object_are_one_argument(
    text: str, arguments: dict[str, Any]
) -> None:
    assert CalledFunction(name="look", arguments=text).read() == arguments


def test_stops_are_several_texts() -> None:
    found = [request(**fields).stops for fields in ({}, {"stop": "ab"}, {"stop": ["ab", "c"]})]
    assert found == [(), ("ab",), ("ab", "c")]


def test_two_limits_of_one_answer_are_not_taken_for_one() -> None:
    """The older name had no effect."""
    for limits in ((3, 3), (3, None), (None, 3)):
        asked = request(max_tokens=limits[0], max_completion_tokens=limits[1])
        assert (asked.max_completion_tokens or asked.max_tokens) == 3
    refusal = refused(max_tokens=3, max_completion_tokens=4)
    assert refusal.param == "max_completion_tokens"
    assert "differs from max_tokens" in refusal.message
