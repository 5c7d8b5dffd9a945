"""Requests of OpenAI's Responses protocol, as chat completion requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from .parts import CalledFunction, Ignored, NamedFunction, Sent, TextPart, text_of
from .schema import (
    SHARED,
    ChatRequest,
    drop_neutral,
    read_fields,
    translated,
    validated,
)

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "context_management": ([],),
    "conversation": (),
    "max_tool_calls": (),
    "moderation": (),
    "previous_response_id": (),
    "prompt": (),
    "truncation": ("disabled",),
}
_IGNORED = (
    *("client_metadata", "metadata", "prompt_cache_key", "prompt_cache_options"),
    *("prompt_cache_retention", "safety_identifier", "service_tier", "store"),
    *("stream_options", "user"),
)
"""Fields that never change an answer. `store` does not: no answer is stored."""
_SHARED = (*SHARED, "tool_choice", "parallel_tool_calls", "stop", "top_logprobs")
_NAMES = {"max_tokens": "max_output_tokens", "messages": "input", "logprobs": "include"}


class _Message(Sent):
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    id: Ignored = None
    status: Ignored = None
    phase: Ignored = None


class _Call(CalledFunction):
    type: Literal["function_call"]
    call_id: str
    id: Ignored = None
    status: Ignored = None


class _Result(Sent):
    type: Literal["function_call_output"]
    call_id: str
    output: str | list[TextPart]
    id: Ignored = None
    status: Ignored = None


class _Reasoning(BaseModel):
    """Reasoning of an earlier answer, which is not read again."""

    type: Literal["reasoning"]


def _kind(item: Any) -> str | None:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    return f"<{kind}>" if isinstance(kind, str) else None


_Item = Annotated[
    Annotated[_Message, Tag("<message>")]
    | Annotated[_Call, Tag("<function_call>")]
    | Annotated[_Result, Tag("<function_call_output>")]
    | Annotated[_Reasoning, Tag("<reasoning>")],
    Discriminator(
        _kind,
        custom_error_type="unknown_item",
        custom_error_message="is no message, function call, output of one or reasoning; "
        "leave it out",
    ),
]


class _Reasons(Sent):
    effort: Literal["none"] | None = None
    summary: Ignored = None
    """Answers have their reasoning itself."""


class _Format(Sent):
    type: Literal["text"]


class _TextOptions(Sent):
    format: _Format | None = None
    verbosity: Literal["medium"] | None = None


class _Request(BaseModel):
    """The fields that have no equal in chat completions."""

    model_config = ConfigDict(extra="forbid", strict=True)

    input: str | Annotated[list[_Item], Field(min_length=1)]
    instructions: str | None = None
    max_output_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    tools: list[NamedFunction] = []
    reasoning: _Reasons | None = None
    text: _TextOptions | None = None
    include: list[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]] = []


def parse_response_request(body: bytes) -> ChatRequest:
    """Parses and validates the body of a request for a response.

    Errors: ServeError 400 that names the field, without its value.
    """
    fields = read_fields(body)
    drop_neutral(fields, _NEUTRAL, _IGNORED)
    shared = {name: fields.pop(name) for name in _SHARED if name in fields}
    request = validated(_Request, {k: v for k, v in fields.items() if v is not None})
    messages: list[dict[str, Any]] = []
    places: list[str] = []
    if request.instructions:
        messages.append({"role": "system", "content": request.instructions})
        places.append("instructions")
    if isinstance(request.input, str):
        messages.append({"role": "user", "content": request.input})
        places.append("input")
    else:
        _add(request.input, messages, places)
    functions = (tool.model_dump(exclude={"type"}) for tool in request.tools)
    chat = {
        **shared,
        "messages": messages,
        "max_tokens": request.max_output_tokens,
        "logprobs": "message.output_text.logprobs" in request.include or None,
        "include_reasoning": True,
    }
    return translated(chat, functions, _NAMES, places)


def _add(items: Sequence[Any], messages: list[dict[str, Any]], places: list[str]) -> None:
    """Adds the messages of items. The text and the calls of an answer are one message."""
    for number, item in enumerate(items):
        match item:
            case _Message():
                message: dict[str, Any] = {"role": item.role, "content": text_of(item.content)}
            case _Call():
                function = {"name": item.name, "arguments": item.arguments}
                call = {"id": item.call_id, "function": function}
                if messages and messages[-1]["role"] == "assistant":
                    messages[-1].setdefault("tool_calls", []).append(call)
                    continue
                message = {"role": "assistant", "tool_calls": [call]}
            case _Result():
                content = text_of(item.output)
                message = {"role": "tool", "tool_call_id": item.call_id, "content": content}
            case _:
                continue
        messages.append(message)
        places.append(f"input.{number}")
