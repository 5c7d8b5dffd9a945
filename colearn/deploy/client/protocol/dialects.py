"""The protocols in which a program may ask an agent, by their paths below `/v1`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .message_writer import MessageWriter
from .messages import parse_message_request
from .response_writer import ResponseWriter
from .responses import parse_response_request
from .schema import ChatRequest, parse
from .writer import ChatWriter


@dataclass(frozen=True, slots=True)
class Dialect:
    """One protocol. Inside, every request is a chat completion request, and every answer a chat
    completion or its chunks."""

    parse: Callable[[bytes], ChatRequest]
    """Reads the body of a request. Errors: ServeError 400."""
    writer: Callable[[ChatRequest], ChatWriter]
    """Returns the writer of one answer."""


DIALECTS: Mapping[str, Dialect] = {
    "chat/completions": Dialect(parse, lambda _: ChatWriter()),
    "responses": Dialect(parse_response_request, ResponseWriter),
    "messages": Dialect(parse_message_request, lambda _: MessageWriter()),
}
