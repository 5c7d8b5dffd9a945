"""Reads the channels of gpt-oss: an answer is several messages, of which those in the channel
`analysis` are reasoning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colearn.text.reasoning import CLOSE, OPEN

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_REASONING = "analysis"
_TOKENS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>")


@dataclass(frozen=True, slots=True)
class Channels:
    """Ids of the tokens between messages. The header of a message is the text from `start` or
    `channel` to `message`; `end` ends a message, and not the answer."""

    start: int
    channel: int
    message: int
    end: int

    def decode(self, tokens: Sequence[int], plain: Callable[[tuple[int, ...]], str]) -> str:
        """The text of an answer without headers, with reasoning between `<think>` and
        `</think>`. `plain` decodes the tokens of a text."""
        text = ""
        part: list[int] = []
        in_header = inside = False
        for token in (*tokens, None):
            if token not in (self.start, self.channel, self.message, self.end, None):
                part.append(token)
                continue
            passage, part = plain(tuple(part)), []
            if not in_header:
                text += passage
            elif token == self.message and passage.strip().startswith(_REASONING):
                text, inside = text + OPEN, True
            if token == self.end and inside:
                text, inside = text + CLOSE, False
            in_header = token in (self.start, self.channel)
        return text

    def context(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
        """The header tokens since the last `end`, where `before` are those in front of `tokens`.
        Decoded in front of what follows `tokens`, they say whether a text is a header, and whether
        it is reasoning, which only `end` closes."""
        headers = [*before]
        for token in tokens:
            if token == self.end:
                headers = []
            elif token in (self.start, self.channel) or (headers and headers[-1] != self.message):
                headers.append(token)
        return tuple(headers)


def read_channels(tokenizer: PreTrainedTokenizerBase, template: str | None) -> Channels | None:
    """The channels of a template; None if it has none."""
    if template is None or f"<|channel|>{_REASONING}<|message|>" not in template:
        return None
    ids = [tokenizer.convert_tokens_to_ids(token) for token in _TOKENS]
    return (
        Channels(*ids) if all(number in tokenizer.added_tokens_decoder for number in ids) else None
    )
