"""Reads chat completions: an answer is played, requested again, or lost, depending on its ending.

Played is what the model wrote to its end or to its token limit. An answer that the server broke
off, or that is no chat completion, is requested again. Everything else is the model's or the
provider's own decision, and is lost: if the answer were requested until it is an action, the
results would no longer be those of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from colearn.contract.types import Finish
from colearn.text.printable import is_unicode

from .reported_error import as_text, read_error

LONGEST_ACTION = 2**20
"""Maximum number of characters in an action."""

Ending = Finish | Literal["retried", "lost"]
ENDINGS: Mapping[str, Ending] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "complete"), "end"),
    "stop_sequence": "stop",
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    **dict.fromkeys(("model_context_window_exceeded", "repetition"), "length"),
    **dict.fromkeys(("error", "network_error", "insufficient_system_resource"), "retried"),
    **dict.fromkeys(("abort", "aborted", "cancelled", "load"), "retried"),
    **dict.fromkeys(("content_filter", "safety", "sensitive", "refusal"), "lost"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "lost"),
}
"""What becomes of an answer, by its `finish_reason` in lower case: played with this `Finish`,
requested again, or lost. An unknown reason is lost. An answer without a reason is played if it has
a text, since some servers report none."""
FINISH_REASONS: Mapping[Finish, str] = {"end": "stop", "stop": "stop", "length": "length"}
"""The `finish_reason` with which colearn's servers report an ending."""

_TEXTS = ("text", "output_text")
_REASONED = (
    *("reasoning", "reasoning_content", "reasoning_details"),
    *("thinking", "thinking_blocks"),
)
"""Fields of a message that hold reasoning."""
_REASONING = ("thinking", "redacted_thinking", "reasoning")
_MOST_OF_NOTHING = 8
"""Maximum number of tokens of an answer without a text: its end, and marks of reasoning that it has
not begun."""
_SHOWN = 60
"""Maximum number of characters that an error quotes from an answer."""


def finish_reason(finish: Finish, *, calls: bool, several: bool) -> str:
    """Returns the `finish_reason` of an answer. Calls do not hide that the token limit cut the
    answer, for example within a further call. `several`: whether what follows the first call is
    part of the answer."""
    if calls and (finish != "length" or not several):
        return "tool_calls"
    return FINISH_REASONS[finish]


class FailedAnswer(Exception):
    """Raised for an answer that is not played; the message gives the ending and the provider's
    text. `passing`: whether the answer is requested again."""

    def __init__(
        self, reason: str, *, passing: bool = False, status: int = 200, code: str | None = None
    ) -> None:
        super().__init__(reason)
        self.passing, self.status, self.code = passing, status, code


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer that is played."""

    text: str
    finish: Finish
    tokens: int | None
    """Number of sampled tokens with the end token; None if the server does not report it."""
    token_ids: tuple[int, ...] | None
    """The sampled token ids; None unless the server reports them (`return_token_ids`)."""
    stop: str | None = None
    """The stop string that ended the answer, if the server names it."""


def read_completion(answer: Any) -> Completion:
    """Reads the choice with index 0 of a chat completion. Errors: FailedAnswer."""
    try:
        read = _Completion.model_validate(answer)
    except ValidationError:
        raise _no_completion(answer) from None
    choice = _first(read.choices)
    _check_error("the answer ended with an error", choice.error)
    message = choice.message or _Message()
    _check_decision(message)
    _check_filters(choice.content_filter_results)
    text = "".join(_parts(message.content, _TEXTS))
    finish = _finish(choice, text)
    if choice.message is None:
        raise _no_completion(answer)
    _check_types(message.content)
    # `usage` counts the tokens of all choices
    usage = read.usage if len(read.choices) == 1 else None
    if not text.strip() and choice.token_ids is None:
        _check_empty(message, usage, finish, ended=bool(choice.finish_reason))
    if len(text) > LONGEST_ACTION or not is_unicode(text):
        raise FailedAnswer(
            f"the answer's text exceeds {LONGEST_ACTION} characters or is no Unicode"
        )
    ids = choice.token_ids
    reported = None if usage is None else usage.completion_tokens
    stop = choice.stop_reason if isinstance(choice.stop_reason, str) else None
    return Completion(text, finish, reported if ids is None else len(ids), ids, stop)


def _first(choices: list[_Choice]) -> _Choice:
    """The only choice, or the one with index 0. Errors: FailedAnswer if several choices leave open
    which one this is."""
    first = choices if len(choices) == 1 else [c for c in choices if c.index == 0]
    if len(first) != 1:
        raise FailedAnswer(
            f"the answer has {len(choices)} choices, of which {len(first)} have index 0; "
            "set the number of choices (n) to 1"
        )
    return first[0]


def _no_completion(answer: Any) -> FailedAnswer:
    """Quotes the answer, since providers report errors under names of their own. An overloaded
    provider is asked again, so another server is, too."""
    return FailedAnswer(f"the answer is not a chat completion: {as_text(answer)}", passing=True)


def _check_error(subject: str, reported: Any) -> None:
    """Errors: FailedAnswer with the text of an error, if there is one."""
    if reported:
        error = read_error(reported, 200)
        raise FailedAnswer(
            f"{subject}: {error.message}",
            passing=error.passing,
            status=error.status,
            code=error.code,
        )


def _check_filters(results: Any) -> None:
    """Errors: FailedAnswer for a text that a filter has shortened."""
    for name, result in results.items() if isinstance(results, Mapping) else ():
        if isinstance(result, Mapping) and result.get("filtered") is True:
            raise FailedAnswer(f"the provider's filter '{name[:_SHOWN]}' has removed text")


def _check_decision(message: _Message) -> None:
    """Errors: FailedAnswer for a refusal, or for a tool call; no request of the client offers
    tools."""
    refusal = message.refusal or "".join(_parts(message.content, ("refusal",)))
    if refusal:
        raise FailedAnswer(f"the model refuses: {refusal}")
    calls = [*(message.tool_calls or ()), *filter(None, [message.function_call])]
    if calls:
        raise FailedAnswer(f"the model calls a tool{_name(calls[0])}, though none is offered")


def _name(call: Any) -> str:
    call = call.get("function", call) if isinstance(call, Mapping) else None
    name = call.get("name") if isinstance(call, Mapping) else None
    return f" '{name[:_SHOWN]}'" if isinstance(name, str) else ""


def _finish(choice: _Choice, text: str) -> Finish:
    """How the model ended its answer. Errors: FailedAnswer if something else ended it."""
    reason = choice.finish_reason or "stop"
    ending = ENDINGS.get(reason.lower(), "lost")
    if ending == "retried" or ending == "lost":
        words = f" after '{text[:_SHOWN]}'" if text else ""
        raise FailedAnswer(
            f"the answer ended with finish_reason '{reason[:_SHOWN]}'{words}",
            passing=ending == "retried",
        )
    stopped = any(isinstance(by, str) for by in (choice.stop_reason, choice.matched_stop))
    return "stop" if stopped and ending == "end" else ending


def _parts(content: Any, types: Collection[str]) -> Iterator[str]:
    """The texts of the content's parts of these types; a content that is a text is one part."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in content or ():
        text = part.get("refusal" if part.get("type") == "refusal" else "text")
        if part.get("type") in types and isinstance(text, str):
            yield text


def _check_types(content: Any) -> None:
    """Errors: FailedAnswer for a part that is neither text nor reasoning."""
    for part in content if isinstance(content, list) else ():
        kind = part.get("type")
        readable = kind in _REASONING or (kind in _TEXTS and isinstance(part.get("text"), str))
        if not readable:
            raise FailedAnswer(
                f"the answer's content has a part of type '{str(kind)[:_SHOWN]}', which is no text"
            )


def _check_empty(message: _Message, usage: _Usage | None, finish: Finish, *, ended: bool) -> None:
    """Errors: FailedAnswer unless the model chose to write nothing, or nothing before a stop
    string. `ended`: whether the server gives a reason."""
    parts = message.content if isinstance(message.content, list) else []
    details = None if usage is None else usage.completion_tokens_details
    if (
        any(getattr(message, name) for name in _REASONED)
        or any(part.get("type") in _REASONING for part in parts)
        or (details is not None and details.reasoning_tokens)
    ):
        raise FailedAnswer("the answer has reasoning, but no text; raise max_tokens")
    written = "".join(_parts(message.content, _TEXTS))
    if finish == "length" and not written:
        raise FailedAnswer("the answer has no text within its limit; raise max_tokens")
    tokens = 0 if usage is None else usage.completion_tokens or 0
    if not written and tokens > _MOST_OF_NOTHING and finish != "stop":
        raise FailedAnswer(
            f"the answer has {tokens} tokens, but no text; let the server return them, or the "
            "reasoning that it leaves out"
        )
    if message.content is None or not ended:
        raise FailedAnswer("the answer has no text", passing=True)


class _Message(BaseModel):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: Any = None
    reasoning: Any = None
    """OpenRouter's and newer vLLM's field; the others are DeepSeek's, OpenRouter's second, Ollama's
    and LiteLLM's."""
    reasoning_content: Any = None
    reasoning_details: Any = None
    thinking: Any = None
    thinking_blocks: Any = None


Count = Annotated[int, Field(strict=True, ge=0, lt=2**31)]


class _Choice(BaseModel):
    index: int | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    """vLLM's and colearn's field: the stop string that ended the answer, if any."""
    matched_stop: str | int | None = None
    """SGLang's field of the same meaning."""
    error: Any = None
    """OpenRouter's field: the error that ended the answer."""
    content_filter_results: Any = None
    """Azure's field: what each filter found, and whether it has removed text."""
    token_ids: Annotated[tuple[Count, ...], Field(max_length=LONGEST_ACTION)] | None = None
    """vLLM's and colearn's field: the sampled token ids, if the request asks for them."""


class _Details(BaseModel):
    reasoning_tokens: Count | None = None


class _Usage(BaseModel):
    completion_tokens: Count | None = None
    completion_tokens_details: _Details | None = None


class _Completion(BaseModel):
    """The fields of a chat completion that are read."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None
