"""Checks chat completion requests, and converts them to histories, sampling and seeds."""

from __future__ import annotations

import secrets
from dataclasses import replace

from colearn.contract import Sampling, TokenHistory, WindowExceeded
from colearn.contract.seeding import derive_seed
from colearn.contract.types import Action
from colearn.deploy.client.protocol.conversation import SentConversation
from colearn.deploy.client.protocol.errors import ServeError
from colearn.deploy.client.protocol.limits import ServerLimits
from colearn.deploy.client.protocol.schema import ChatRequest
from colearn.errors import ConfigError
from colearn.rollout.agents import ChatFormat, dialogue_spans

from .agent import ServedAgent, ServedChat
from .sessions import ServedSession


def check_request(request: ChatRequest, limits: ServerLimits) -> None:
    """Errors: ServeError 400 for values over a limit and for unsupported combinations."""
    choices = request.n or 1
    if choices > limits.max_batch:
        raise _invalid("n", f"at most {limits.max_batch} choices")
    if choices > 1 and request.session_id is not None:
        raise _invalid("n", "a session has one answer per turn; leave out n or session_id")
    if request.top_logprobs is not None and not request.logprobs:
        raise _invalid("top_logprobs", "needs logprobs: true")
    if request.stream_options is not None and not request.stream:
        raise _invalid("stream_options", "needs stream: true")
    for field in ("max_tokens", "max_completion_tokens"):
        if (getattr(request, field) or 0) > limits.max_tokens:
            raise _invalid(field, f"at most {limits.max_tokens} here")


def token_history(
    agent: ServedAgent, conversation: SentConversation, session: ServedSession | None
) -> TokenHistory:
    """Return the token history of a conversation. If there is a session, this is the session's
    history, extended by the new user message.

    Errors: ServeError 400 for messages that the chat template or the context cannot hold.
    """
    manifest = agent.manifest
    system = conversation.system if session is None else session.system
    try:
        chat = agent.chat(manifest.system if system is None else system)
    except ConfigError:
        raise _invalid("messages", "the chat template cannot hold this system text") from None
    try:
        if session is None:
            return whole_history(conversation, chat, manifest.window)
        return observe(session.history, chat, conversation.said, session.last, manifest.window)
    except WindowExceeded as error:
        raise too_long(str(error)) from None
    except ConfigError:
        raise _invalid("messages", "the chat template cannot hold these messages") from None


def whole_history(
    conversation: SentConversation, chat: ServedChat, window: int | None
) -> TokenHistory:
    """Tokenises a whole conversation with the chat template; earlier answers are tokenised from
    their text.

    Errors: WindowExceeded; ConfigError if the template drops parts of the conversation.
    """
    history = TokenHistory()
    for span in dialogue_spans(chat, conversation.turns, conversation.said):
        history = history.act(span.tokens) if span.answer else history.observe(span.tokens, window)
    return history


def observe(
    history: TokenHistory, chat: ChatFormat, text: str, last: Action | None, window: int | None
) -> TokenHistory:
    """Extends a history by the user's text. The text follows the action `last`; None means that the
    history is empty.

    Errors: WindowExceeded.
    """
    observation = chat.open(text) if last is None else chat.continuation(text, last)
    return history.observe(observation.tokens, window)


def sampling_of(request: ChatRequest, agent: ServedAgent, history: TokenHistory) -> Sampling:
    """Return the agent's sampling settings, overridden by the settings of the request.

    Errors: ServeError 400 if the answer does not fit into the context after `history`.
    """
    sampling, context = agent.sampling, agent.context
    room = context - len(history)
    max_tokens = request.max_completion_tokens or request.max_tokens
    if room < (max_tokens or 1):
        raise too_long(
            f"{len(history)} tokens of messages and {max_tokens or 1} of the answer exceed the "
            f"context of {context}"
        )
    return replace(
        sampling,
        max_tokens=max_tokens or min(sampling.max_tokens, room),
        temperature=sampling.temperature if request.temperature is None else request.temperature,
        top_p=sampling.top_p if request.top_p is None else request.top_p,
        top_k=sampling.top_k if request.top_k is None else request.top_k,
    )


def seeds_of(request: ChatRequest) -> tuple[int, ...]:
    """Return one seed per choice; the first is the request's or, without one, random."""
    first = secrets.randbits(63) if request.seed is None else request.seed % 2**64
    others = (derive_seed(first, "choice", number) for number in range(1, request.n or 1))
    return (first, *others)


def _invalid(field: str, message: str) -> ServeError:
    return ServeError(400, f"'{field}': {message}", param=field, code="invalid_value")


def too_long(message: str) -> ServeError:
    return ServeError(400, message, param="messages", code="context_length_exceeded")
