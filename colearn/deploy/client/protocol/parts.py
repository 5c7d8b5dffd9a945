"""Parts of messages, and function tools: what the requests of all protocols hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from colearn.text.json_value import read_json

Ignored = Annotated[Any, Field(exclude=True)]
"""A field that never changes an answer."""


class Sent(BaseModel):
    """A message or a part of one. An unknown field is accepted only without content: clients send
    answers of other servers back with all their fields."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        known = cls.model_fields
        return {k: v for k, v in sent.items() if k in known or v not in (None, "", [], {})}


def _text_type(kind: str) -> str:
    if kind not in ("text", "input_text", "output_text"):
        raise PydanticCustomError(
            "no_text", "agents read text only; leave out images, audio and files"
        )
    return kind


class TextPart(Sent):
    """A part of a message's content, under the type's name in any of the protocols."""

    type: Annotated[str, AfterValidator(_text_type)]
    text: str
    annotations: Ignored = None
    logprobs: Ignored = None
    cache_control: Ignored = None
    """Fields of answers that clients send back, and a hint to caches: none changes the text."""


def text_of(content: str | Sequence[TextPart] | None) -> str:
    """Returns a content as one text."""
    return content if isinstance(content, str) else "".join(part.text for part in content or ())


class CalledFunction(Sent):
    """A function call in an assistant message."""

    name: str
    arguments: str

    @field_validator("arguments")
    @classmethod
    def _unicode_and_shallow(cls, arguments: str) -> str:
        try:
            json.loads(arguments)
        except ValueError:
            return arguments  # a text
        except RecursionError:
            if not arguments.rstrip().endswith(("]", "}")):
                return arguments  # a text: JSON ends as it begins
            raise ValueError("holds too many lists and objects within each other") from None
        read_json(arguments)
        return arguments

    def read(self) -> dict[str, Any]:
        """Returns the arguments; text that is not a JSON object becomes a single argument named
        `arguments`."""
        try:
            arguments = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            arguments = self.arguments
        return arguments if isinstance(arguments, dict) else {"arguments": self.arguments}


class ToolCall(Sent):
    """One entry of `tool_calls`."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class Function(BaseModel):
    """The declaration of a function tool."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: Annotated[bool | None, Field(exclude=True)] = None
    """Accepted and ignored, because the server does not constrain answers."""


class NamedFunction(Function):
    """A function tool of the protocols whose `tools` have no further level."""

    kinds: ClassVar[tuple[str, ...]] = ("function",)
    """The protocol's names of the type. In Responses, `custom` is a tool whose input is a text."""
    type: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_other_tool(cls, tool: Any) -> Any:
        if isinstance(tool, dict) and tool.get("type") not in (None, *cls.kinds):
            raise PydanticCustomError(
                "no_function", "agents call functions only; leave out other tools"
            )
        return tool


class FunctionTool(BaseModel):
    """One entry of `tools`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["function"]
    function: Function
