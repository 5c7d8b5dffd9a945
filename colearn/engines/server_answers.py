"""Schemas of a vLLM server's answers. An answer with a value outside the schema's bounds is
rejected."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from colearn.errors import printable
from colearn.text.json_value import read_json

LONGEST_ANSWER = 64 * 2**20
"""Maximum number of bytes in an answer: a generation of 2^17 tokens takes about 20 MiB."""
_HIGHEST = 1e-5
"""Maximum accepted log-probability: 0 plus a margin for the rounding of a GPU's fast logarithm."""
IMPOSSIBLE = -9000.0
"""Minimum accepted log-probability. vLLM reports -9999 for a token whose log-probability is missing
or NaN."""
_SHOWN = 60

Count = Annotated[int, Field(ge=0, lt=2**31)]
Name = Annotated[str, Field(max_length=4096)]
LogProb = Annotated[FiniteFloat, Field(le=_HIGHEST)]


class BadAnswer(ValueError):
    """Raised when an answer does not match its schema. The message is the continuation of "the
    server at URL"."""


class ServerAnswer(BaseModel):
    """Base class of the schemas. Values are not converted to other types, and unknown fields are
    ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


class ListedModel(ServerAnswer):
    id: Name
    root: Name | None = None
    parent: Name | None = None
    max_model_len: Annotated[int, Field(ge=1, lt=2**31)] | None = None


class ListedModels(ServerAnswer):
    """Answer of `/v1/models`."""

    data: list[ListedModel]


class Tokenized(ServerAnswer):
    """Answer of `/tokenize`."""

    tokens: list[Count]


class CacheReset(ServerAnswer):
    """Answer of `/reset_prefix_cache`."""

    success: bool


class AdapterLimits(ServerAnswer):
    max_loras: Count
    max_lora_rank: Count


class ModelOptions(ServerAnswer):
    logprobs_mode: Name


class Options(ServerAnswer):
    of_model: ModelOptions = Field(alias="model_config")
    lora_config: AdapterLimits | None = None


class ServerInfo(ServerAnswer):
    """Answer of `/server_info`."""

    vllm_config: Options


class _Span(ServerAnswer):
    version: Name


class _Token(ServerAnswer):
    token_id: Count
    logprob: LogProb


class _LogProbs(ServerAnswer):
    content: list[_Token]


class _Choice(ServerAnswer):
    finish_reason: Name | None
    weight_versions: list[_Span] | None = None
    token_ids: list[Count] | None = None
    logprobs: _LogProbs | None = None


class _PromptDetails(ServerAnswer):
    cached_tokens: Count | None = None


class _Usage(ServerAnswer):
    prompt_tokens_details: _PromptDetails | None = None


class _Generated(ServerAnswer):
    """Answer of `/inference/v1/generate`."""

    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]
    usage: _Usage | None = None


Schema = TypeVar("Schema", bound=ServerAnswer)


def decode_json(content: bytes) -> Any:
    """Decode an answer as JSON; None if the answer is not JSON, not Unicode, nested too deeply or
    holds a key twice."""
    try:
        return read_json(content.decode(), finite=True)
    except ValueError:
        return None


def read_as(schema: type[Schema], answer: Any) -> Schema:
    """Validate an answer. Errors: BadAnswer that names the first field outside its bounds."""
    try:
        return schema.model_validate(answer)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        reason = f"{place}: {fault['msg']}" if place else "no JSON object"
        raise BadAnswer(f"gave an answer that is none of vLLM ({reason})") from None


class Draw(NamedTuple):
    """A sample, with the number of prompt tokens that were in the server's prefix cache."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    cached: int


def read_generated(answer: Any, *, prompt: int, vocabulary: int, version: str | None) -> Draw:
    """Read the sample from an answer to a prompt of `prompt` tokens. The server must have used
    weights of `version`.

    Errors: BadAnswer if the answer does not match its schema, or if its sample is invalid.
    """
    generated = read_as(_Generated, answer)
    (choice,) = generated.choices
    finish = choice.finish_reason
    if finish not in ("stop", "length"):
        raise BadAnswer(f"ended a request by itself ({printable(str(finish))[:_SHOWN]})")
    if {span.version for span in choice.weight_versions or ()} != {version}:
        raise BadAnswer(
            "sampled with other weights than the last update's: it was restarted, or another "
            "run writes to it"
        )
    tokens = tuple(choice.token_ids or ())
    scored = [] if choice.logprobs is None else choice.logprobs.content
    if tuple(entry.token_id for entry in scored) != tokens or any(
        entry.logprob < IMPOSSIBLE for entry in scored
    ):
        raise BadAnswer("reported tokens without their log-probabilities")
    if tokens and max(tokens) >= vocabulary:
        raise BadAnswer(f"sampled token {max(tokens)} of a vocabulary of {vocabulary}")
    if generated.usage is None:
        raise BadAnswer("gave an answer that is none of vLLM (usage: missing)")
    details = generated.usage.prompt_tokens_details
    cached = 0 if details is None else details.cached_tokens or 0
    if cached > prompt:
        raise BadAnswer(f"reports {cached} cached tokens of a prompt of {prompt}")
    return Draw(tokens, tuple(entry.logprob for entry in scored), cached)
