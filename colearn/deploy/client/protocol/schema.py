"""Schema of a chat completion request: OpenAI's fields with strict types, `session_id`, and fields
of vLLM's API. Requests of the other protocols are translated to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from colearn.text.json_value import read_json
from colearn.text.validation import first_fault

from .errors import ServeError
from .parts import Function, FunctionTool, Sent, TextPart, ToolCall, text_of

SESSION_ID = r"^[A-Za-z0-9_.-]{1,64}$"
NAME = r"^[^\s<|\\/>]{1,64}$"
"""Names of speakers, as in OpenAI's API."""
Schema = TypeVar("Schema", bound=BaseModel)

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "frequency_penalty": (0, 0.0),
    "function_call": ("none",),
    "functions": ([],),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "moderation": (),
    "prediction": (),
    "presence_penalty": (0, 0.0),
    "reasoning_effort": ("none",),
    "response_format": ({"type": "text"},),
    "verbosity": ("medium",),
    "web_search_options": (),
}
"""Unsupported fields. A field in this table is accepted if it is null or has one of the listed
values, which do not change an answer."""

_IGNORED = (
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
)
"""Fields that never change an answer."""

SHARED = (
    *("model", "stream", "temperature", "top_p", "top_k", "seed", "session_id"),
    "return_token_ids",
)
"""Fields that have the same name and the same values in all protocols."""


class Message(Sent):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: Annotated[str, Field(pattern=NAME)] | None = None
    """The speaker; written before the text, except for an assistant and for a tool."""
    tool_calls: Annotated[list[ToolCall], Field(max_length=128)] | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    """An assistant's, as an answer with `include_reasoning` has it; not read again."""

    @model_validator(mode="after")
    def _holds_something(self) -> Message:
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise ValueError("content must be text; only an assistant's tool calls need none")
        if self.tool_calls and self.role != "assistant":
            raise ValueError("tool_calls are an assistant's")
        if self.tool_call_id is not None and self.role != "tool":
            raise ValueError("tool_call_id is a tool's")
        if self.reasoning and self.role != "assistant":
            raise ValueError("reasoning is an assistant's")
        return self

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The tool calls, if any."""
        return self.tool_calls or ()

    @property
    def text(self) -> str:
        """The content as one text."""
        return text_of(self.content)

    @property
    def spoken(self) -> str:
        """The text, after the speaker's name if several speakers may have the role."""
        named = self.name not in (None, self.role) and self.role not in ("assistant", "tool")
        return f"{self.name}: {self.text}" if named and self.text else self.text

    @property
    def speaker(self) -> str:
        """The role; `developer`, OpenAI's newer name for the system role, is replaced by
        `system`."""
        return "system" if self.role == "developer" else self.role


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(BaseModel):
    """A chat completion request; for a field that is None, the agent's setting is used."""

    model_config = ConfigDict(extra="forbid", strict=True)

    messages: Annotated[list[Message], Field(min_length=1)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    top_k: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    n: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=128)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: bool | None = None
    session_id: Annotated[str, Field(pattern=SESSION_ID)] | None = None
    return_token_ids: bool | None = None
    """vLLM's: whether the answer has the token ids of the prompt and of the answer."""
    include_reasoning: bool | None = None
    """vLLM's, but off by default: whether the answer has its reasoning beside its content."""
    _names: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _places: Sequence[str] = PrivateAttr(default=())

    def sent_as(self, names: Mapping[str, str], places: Sequence[str]) -> ChatRequest:
        """Notes the names of fields in the protocol from which the request was translated, and the
        place of each message there, for errors."""
        self._names, self._places = names, places
        return self

    @contextmanager
    def naming_fields(self) -> Iterator[None]:
        """Within this context, errors name the fields by the names of the request's protocol."""
        try:
            yield
        except ServeError as error:
            raise error.renamed(self._names, self._places) from None

    @field_validator("stop")
    @classmethod
    def _few_and_not_empty(cls, stop: str | list[str] | None) -> str | list[str] | None:
        texts = [stop] if isinstance(stop, str) else stop or []
        if len(texts) > 16 or any(not 1 <= len(text) <= 256 for text in texts):
            raise ValueError("give at most 16 strings of 1 to 256 characters")
        return stop

    @field_validator("tools")
    @classmethod
    def _names_differ(cls, tools: list[FunctionTool] | None) -> list[FunctionTool] | None:
        names: set[str] = set()
        for tool in tools or ():
            if tool.function.name in names:
                raise ValueError("two tools have one name; give each its own")
            names.add(tool.function.name)
        return tools

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _not_forced(cls, choice: Any) -> Any:
        if choice not in (None, "auto", "none"):
            raise ValueError("answers cannot be constrained to a call; use auto or none")
        return choice

    @field_validator("max_completion_tokens")
    @classmethod
    def _one_limit(cls, limit: int | None, others: ValidationInfo) -> int | None:
        if None not in (limit, other := others.data.get("max_tokens")) and limit != other:
            raise ValueError("differs from max_tokens, its older name; give one of them")
        return limit

    @property
    def offered(self) -> Sequence[Function]:
        """Functions that the answer may call."""
        if self.tool_choice == "none":
            return ()
        return [tool.function for tool in self.tools or ()]

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


def read_fields(body: bytes) -> dict[str, Any]:
    """Parses a request body: a JSON object with finite numbers, valid Unicode strings and no
    repeated keys.

    Errors: ServeError 400.
    """
    try:
        # decoded first, since json.loads would take bytes of other encodings
        fields = read_json(body.decode(), finite=True)
    except UnicodeDecodeError:
        raise ServeError(400, "the body is not valid JSON") from None
    except ValueError as error:
        raise ServeError(400, f"the body is not valid JSON: it {error}") from None
    if not isinstance(fields, dict):
        raise ServeError(400, "the body must be a JSON object")
    return fields


def parse(body: bytes) -> ChatRequest:
    """Parses and validates the body of a chat completion request.

    Errors: ServeError 400 that names the field, without its value.
    """
    fields = read_fields(body)
    drop_neutral(fields, _NEUTRAL, _IGNORED)
    return validated(ChatRequest, fields)


def drop_neutral(
    fields: dict[str, Any], neutral: Mapping[str, tuple[Any, ...]], ignored: Collection[str]
) -> None:
    """Removes the fields that change no answer: those in `ignored`, and those whose value is null
    or one of their values in `neutral`.

    Errors: ServeError 400 for another value of a field in `neutral`.
    """
    for name, values in neutral.items():
        value = fields.pop(name, None)
        if value is not None and value not in values:
            raise ServeError(
                400,
                f"'{name}' is not supported by this server; leave it out",
                param=name,
                code="unsupported_parameter",
            )
    for name in ignored:
        fields.pop(name, None)


def translated(
    fields: dict[str, Any],
    functions: Iterable[Mapping[str, Any]],
    names: Mapping[str, str],
    places: Sequence[str],
) -> ChatRequest:
    """Returns the request of another protocol, whose fields have been translated; its streams have
    token counts. `functions` are the declarations of its tools, and `names` its names of translated
    fields; `places` are its fields that hold the messages, one for each.

    Errors: ServeError 400 that names the field of the other protocol.
    """
    fields["tools"] = [{"type": "function", "function": function} for function in functions]
    if fields.get("stream"):
        fields["stream_options"] = {"include_usage": True}
    try:
        return validated(ChatRequest, fields).sent_as(names, places)
    except ServeError as error:
        raise error.renamed(names, places) from None


def validated(schema: type[Schema], fields: dict[str, Any]) -> Schema:
    """Validates the fields of a request.

    Errors: ServeError 400 that names the field, without its value.
    """
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error, fields) from None


def _refusal(error: ValidationError, fields: dict[str, Any]) -> ServeError:
    location, (first, *_) = first_fault(error, fields)
    field = ".".join(map(str, location))[:80]
    if first["type"] == "extra_forbidden":
        named = all(str(key).isdecimal() or str(key).isidentifier() for key in location)
        name = f"'{field}'" if named and field.isascii() else "a field"
        return ServeError(
            400,
            f"{name} is unknown to this server; leave it out",
            param=field,
            code="unknown_parameter",
        )
    message = f"'{field}': {first['msg'].removeprefix('Value error, ')}"
    return ServeError(400, message, param=field, code="invalid_value")
