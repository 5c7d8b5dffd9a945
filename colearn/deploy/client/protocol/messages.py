"""Requests of Anthropic's Messages protocol, as chat completion requests."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from .parts import Ignored, NamedFunction, Sent, TextPart, text_of
from .schema import (
    SHARED,
    ChatRequest,
    drop_neutral,
    read_fields,
    translated,
    validated,
)

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "container": (),
    "output_config": ({},),
    "prefill": (),
    "speed": ("standard",),
}
_IGNORED = (
    *("cache_control", "diagnostics", "inference_geo", "metadata", "service_tier"),
    *("user_profile_id", "workspace_id"),
)
"""Fields that never change an answer."""
_NAMES = {"stop": "stop_sequences"}


class _Call(Sent):
    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]
    cache_control: Ignored = None
    caller: Ignored = None


class _Result(Sent):
    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[TextPart] | None = None
    is_error: bool | None = None
    """Written only without a content, which otherwise says what failed."""
    cache_control: Ignored = None


class _Thinking(BaseModel):
    """Reasoning of an earlier answer, which is not read again."""

    type: Literal["thinking", "redacted_thinking"]


class _Text(TextPart):
    citations: None = None


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    kind = "thinking" if kind == "redacted_thinking" else kind
    return f"<{kind}>" if kind in ("tool_use", "tool_result", "thinking") else "<text>"


_Block = Annotated[
    Annotated[_Text, Tag("<text>")]
    | Annotated[_Call, Tag("<tool_use>")]
    | Annotated[_Result, Tag("<tool_result>")]
    | Annotated[_Thinking, Tag("<thinking>")],
    Discriminator(_kind),
]


class _Message(Sent):
    role: Literal["user", "assistant", "system"]
    content: str | list[_Block]

    @model_validator(mode="after")
    def _holds_blocks_of_its_role(self) -> _Message:
        for block in () if isinstance(self.content, str) else self.content:
            role = "user" if isinstance(block, _Result) else "assistant"
            if self.role != role and not isinstance(block, TextPart):
                raise ValueError(f"blocks of type {block.type} belong to the role {role}")
        return self


class _Tool(NamedFunction):
    kinds: ClassVar = ("custom", "function")
    input_schema: dict[str, Any] | None = None
    parameters: None = None
    cache_control: Ignored = None
    eager_input_streaming: Ignored = None


class _Choice(Sent):
    type: str
    name: Ignored = None
    disable_parallel_tool_use: bool | None = None


class _Reasons(Sent):
    type: Literal["disabled", "adaptive"]
    """The agent decides whether to reason; it has no budget for this."""
    display: Literal["summarized", "omitted"] | None = None


class _Request(BaseModel):
    """The fields that have no equal in chat completions."""

    model_config = ConfigDict(extra="forbid", strict=True)

    messages: Annotated[list[_Message], Field(min_length=1)]
    system: str | list[TextPart] = ""
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)]
    stop_sequences: list[str] = []
    tools: list[_Tool] = []
    tool_choice: _Choice = _Choice(type="auto")
    thinking: _Reasons = _Reasons(type="adaptive")


def parse_message_request(body: bytes) -> ChatRequest:
    """Parses and validates the body of a request for a message.

    Errors: ServeError 400 that names the field, without its value.
    """
    fields = read_fields(body)
    drop_neutral(fields, _NEUTRAL, _IGNORED)
    shared = {name: fields.pop(name) for name in SHARED if name in fields}
    request = validated(_Request, {k: v for k, v in fields.items() if v is not None})
    messages: list[dict[str, Any]] = []
    places: list[str] = []
    if request.system:
        system = request.system
        texts = [system] if isinstance(system, str) else [part.text for part in system]
        messages += ({"role": "system", "content": text} for text in texts)
        places += ["system"] * len(texts)
    for number, message in enumerate(request.messages):
        new = _messages(message)
        messages += new
        places += [f"messages.{number}"] * len(new)
    functions = (
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in request.tools
    )
    chat = {
        **shared,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "stop": request.stop_sequences,
        "tool_choice": request.tool_choice.type,
        "parallel_tool_calls": not request.tool_choice.disable_parallel_tool_use,
        "include_reasoning": request.thinking.display != "omitted",
    }
    return translated(chat, functions, _NAMES, places)


def _said(result: _Result) -> str:
    return text_of(result.content) or ("error" if result.is_error else "")


def _messages(message: _Message) -> list[dict[str, Any]]:
    """Returns one message for an assistant; for others, one for each text and each result."""
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    texts = [block for block in message.content if isinstance(block, TextPart)]
    if message.role == "assistant":
        calls = [
            {"id": block.id, "function": {"name": block.name, "arguments": json.dumps(block.input)}}
            for block in message.content
            if isinstance(block, _Call)
        ]
        return [{"role": "assistant", "content": text_of(texts), "tool_calls": calls}]
    return [
        {"role": "tool", "tool_call_id": block.tool_use_id, "content": _said(block)}
        if isinstance(block, _Result)
        else {"role": message.role, "content": block.text}
        for block in message.content
        if isinstance(block, _Result | TextPart)
    ]
