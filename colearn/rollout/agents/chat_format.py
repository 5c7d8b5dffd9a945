"""Chat templates as an append-only format: each turn appends token ids to the previous turns' ids.

A template renders a whole conversation, and some templates rewrite earlier turns (Qwen3's drops
past reasoning). Rendering the conversation again at each turn would change sampled ids. The
template is therefore rendered once, on a conversation of placeholders, and split at the
placeholders. Every turn is then written by appending the template's pieces to the history, so
previous ids remain a prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from colearn.contract.types import Action, Observation
from colearn.errors import ConfigError
from colearn.text.reasoning import CLOSE, OPEN, opened_reasoning
from colearn.text.token_ids import special_tokens

from .channels import read_channels
from .decoding import AnswerDecoder
from .dialogue import CLOSING, AnswerEnd, dialogue_spans, split_places
from .encoding import INSIDE, START, Encoder, Part
from .template_text import dated, read_template, render, split_turns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MARK = "\ue000system\ue000"
_WORDS = ("Hello", "the", "1")
"""First words of answers."""
_SHAPES = 256
"""Maximum number of cached renderings of whole dialogues."""
_SYSTEMS = 32
"""Maximum number of cached chat formats with a system text."""


class ChatFormat:
    """Converts observations into the token ids that extend an agent's history.

    `chat` is 'auto' (the tokenizer's template, or plain text without one), 'plain', or the path of
    a .jinja file. `template` contains additional arguments of the template. `today` is the date
    passed to the template (None: this machine's date). In plain format, an observation is followed
    by a line break and an action ends with the tokenizer's end token. `model_end_ids` are
    additional ids that end an action, from the model's generation config.

    Errors: ConfigError if the template does not terminate, if the template drops or repeats a
    message, or if there is no end token.
    """

    _cache = 4096
    """Maximum number of texts whose token ids are kept."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        chat: str = "auto",
        system: str | None = None,
        template: Mapping[str, Any] | None = None,
        today: date | None = None,
        model_end_ids: tuple[int, ...] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self._settings = {
            "chat": chat,
            "template": template,
            "today": today,
            "model_end_ids": model_end_ids,
        }
        self.under = lru_cache(maxsize=_SYSTEMS)(self._under)
        """Returns this format with another system text. Spellings of special tokens in that text
        are encoded as plain text. For the current system text, it returns the format itself.

        Errors: ConfigError if the template drops or repeats the system text.
        """
        self._encoder = Encoder(tokenizer, cache=self._cache)
        self._rendered = lru_cache(maxsize=_SHAPES)(self._whole)
        source = read_template(tokenizer, chat, template or {})
        self._system, self._source, self._arguments = system, source, dict(template or {})
        if source is None:
            start = tokenizer.bos_token or ""
            self._opening = start + (f"{system}\n" if system else "")
            self._between, self._after, self._lead = tokenizer.eos_token or "", "\n", ""
        else:
            arguments = self._arguments
            if today is not None:
                source = dated(source, today)
                arguments = {"date_string": f"{today:%d %b %Y}", **arguments}
            self._source, self._arguments = source, arguments
            pieces = split_turns(tokenizer, source, system, arguments)
            self._opening, self._between, self._after = pieces.opening, pieces.between, pieces.after
            self._lead = pieces.lead
        between = self._encoder.ids(self._between)
        special = self._special_ids = special_tokens(tokenizer)
        channels = read_channels(tokenizer, source)
        ends = [
            *(between[:1] if between[:1] and between[0] in special else ()),
            *(() if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)),
            *model_end_ids,
        ]
        if channels is not None:  # ends a message, which may be reasoning
            ends = [end for end in ends if end != channels.end]
        self.end_ids: frozenset[int] = frozenset(ends)
        """Token ids that end an action; the sampled end id is part of the action and is trained."""
        if not self.end_ids:
            raise ConfigError(
                "agents.chat: the tokenizer has no end token and the template closes a turn "
                "with none; set tokenizer.eos_token or give a .jinja template"
            )
        self.end_id: int = between[0] if self.end_ids.intersection(between[:1]) else ends[0]
        """The end token that the template writes after an answer."""
        self._closing = self.split_end(self._between)
        self._decoder = AnswerDecoder(tokenizer, source, self._boundaries(), self.end_ids)
        self._encoder.quoted = self._decoder.quoted
        self._check_prompt()

    def check_embedded(self, words: int, field: str) -> None:
        """Check that a model with `words` embeddings reads what the template writes.

        Errors: ConfigError naming `field` for a token without an embedding.
        """
        for text in (self._opening, self._between, self._after):
            for token in self._encoder.ids(text):
                if token >= words:
                    name = self.tokenizer.convert_ids_to_tokens(token)
                    raise ConfigError(
                        f"{field}: chats hold the token {name!r}, id {token}, and the model has "
                        f"embeddings for {words} tokens; call resize_token_embeddings on the model "
                        "and train the token, or give another template in agents.chat"
                    )

    def open(self, text: str) -> Observation:
        """Token ids of o_0, with which a history begins."""
        return Observation(text, self._turn(self._opening, text, START))

    def continuation(self, text: str, last: Action) -> Observation:
        """Return the token ids of o_t for t > 0, to be appended after the action `last`, however
        that action ended."""
        closing = self._between
        ended = last.tokens[-1:]
        before = self._special_ids.get(ended[0], INSIDE) if ended else INSIDE
        if ended == (self._closing.end,):
            closing = self._closing.rest
        elif self.reasons and not self.end_ids.intersection(ended) and _is_inside(last.text):
            closing = CLOSING + closing
        return Observation(text, self._turn(closing, text, before))

    @staticmethod
    def remembered(last: Action) -> Action:
        """Return the action `last`, reduced to what `continuation` reads of it."""
        return Action(OPEN if _is_inside(last.text) else "", last.tokens[-1:])

    def open_conversation(self, first: Observation) -> tuple[int, ...]:
        """Return the token ids of o_0 for a context with a system text or earlier turns. None of
        these tokens is trained."""
        chat = self if first.system is None else self.under(first.system)
        spans = dialogue_spans(chat, first.turns, first.text)
        return tuple(token for span in spans for token in span.tokens)

    def spell(self, text: str) -> tuple[int, ...]:
        """Return the token ids of an answer that this model did not sample. Spellings of special
        tokens are encoded as plain text."""
        before = self._after or INSIDE
        written = self.encode([Part(self._lead), Part(text, said=True)], before)
        if self.decode(written) == text:  # a space that belongs to the first word
            return written
        return self.encode([Part(text, said=True)], before)

    @property
    def reasons(self) -> bool:
        """Whether the template writes reasoning between `<think>` and `</think>`."""
        return self._source is not None and CLOSE in self._source

    @property
    def prompting(self) -> str:
        """The template's text between a user message and the following answer."""
        return self._after

    def encode(self, parts: Sequence[Part], before: str | None) -> tuple[int, ...]:
        """Token ids of consecutive texts behind the text `before`, `START` or `INSIDE`; spellings
        of special tokens in message texts are encoded as plain text."""
        return self._encoder.encode(parts, before)

    def name(self, token: int) -> str:
        """The spelling of a token."""
        return self._special_ids.get(token) or str(self.tokenizer.convert_ids_to_tokens(token))

    def split_end(self, closing: str) -> AnswerEnd:
        """Split the text after an answer at the special token with which it begins, if any. An end
        token may follow white space, as in Llama 2's template."""
        rest = closing.lstrip()
        space = closing.removesuffix(rest)
        first = self._encoder.ids(rest)[:1]
        if not first or first[0] not in self.end_ids | (
            set() if space else self._special_ids.keys()
        ):
            return AnswerEnd("", None, closing)
        return AnswerEnd(space, first[0], rest[len(self.name(first[0])) :])

    def whole(self, contents: tuple[str, ...]) -> tuple[str, ...]:
        """Render a whole dialogue with these message contents; return its template texts and
        placeholders."""
        return self._rendered(contents)

    def _whole(self, contents: tuple[str, ...]) -> tuple[str, ...]:
        prompted = len(contents) % 2 == 1
        if self._source is None:
            text = self._opening
            for number, content in enumerate(contents):
                text += content + (self._between if number % 2 else self._after)
        else:
            messages = [{"role": "system", "content": self._system}] if self._system else []
            for number, content in enumerate(contents):
                role = "assistant" if number % 2 else "user"
                messages.append({"role": role, "content": content})
            text = render(
                self.tokenizer, self._source, messages, self._arguments, prompted=prompted
            )
        return split_places(text, len(contents))

    def _under(self, system: str) -> ChatFormat:
        if system == self._system:
            return self
        return QuotingChat(self.tokenizer, system=system, **self._settings)

    def decode(self, tokens: tuple[int, ...]) -> str:
        """Return the text of sampled tokens, without the tokens that separate messages. Tokens that
        open or close reasoning are written as `<think>` and `</think>`."""
        return self._decoder.decode(tokens)

    @property
    def tags(self) -> tuple[str, ...]:
        """The special tokens in answers that other programs look for, such as `<answer>`."""
        return self._decoder.tags

    def context(self, before: Sequence[int], tokens: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens that `decode` needs in front of what follows `tokens`. `before` are
        those in front of `tokens`."""
        return self._decoder.context(before, tokens)

    def is_open(self, tokens: Sequence[int], text: str) -> bool:
        """Whether a following token may change the text of these tokens."""
        return self._decoder.is_open(tokens, text)

    def spelled(self, token: int) -> bytes:
        """Return the bytes of a token's own spelling."""
        return self._decoder.spelled(token)

    def opened_reasoning(self, observation: str) -> str:
        """Return the text that opens reasoning at the end of a prompt, before the action. Returns
        '' if the prompt does not open reasoning."""
        return opened_reasoning(observation + self._after)

    def _boundaries(self) -> tuple[str, ...]:
        """The template's texts around messages, with and without a system message."""
        opening = self._opening if not self._system else self._opening.replace(self._system, "", 1)
        if self._source is None:
            return opening, self._between
        try:
            marked = split_turns(self.tokenizer, self._source, _MARK, self._arguments).opening
        except ConfigError:  # the template takes no system message
            marked = ""
        return opening, marked, self._between, self._after

    def _turn(self, before: str, text: str, follows: str | None) -> tuple[int, ...]:
        """Token ids of an observation and of the template text around it.

        A text may spell a special token, for example in a quoted answer of another agent. The
        spelling must not become that token, so such a text is tokenised separately, as plain text.
        """
        return self.encode([Part(before), Part(text, said=True), Part(self._after)], follows)

    def _check_prompt(self) -> None:
        """Errors: ConfigError if no conversation begins with the ids of its prompt."""
        if self._source is None or not self._after:
            return
        if any(self._encoder.joins(self._after, self._lead + word) for word in _WORDS):
            name = self.tokenizer.name_or_path or "the tokenizer"
            raise ConfigError(
                f"agents.chat: the template ends a prompt with {self._after[-20:]!r}, whose end "
                f"{name} joins with the answer's first word, so that no conversation begins with "
                "its prompt; give a .jinja template whose prompt ends before that space"
            )


class QuotingChat(ChatFormat):
    """A chat format with an untrusted system text, in which spellings of special tokens are encoded
    as plain text.

    Errors: ConfigError if the template drops or repeats the system text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, *, system: str | None = None, **settings: Any
    ) -> None:
        super().__init__(tokenizer, system=system, **settings)
        self._quoted: str | None = None
        if system is not None and self._encoder.spells_quoted(system):
            super().__init__(tokenizer, system=_MARK, **settings)
            if self._opening.count(_MARK) != 1:
                raise ConfigError("agents.chat: the template drops or repeats the system text")
            self._quoted = system

    def encode(self, parts: Sequence[Part], before: str | None) -> tuple[int, ...]:
        """Token ids of consecutive texts behind `before`; spellings of special tokens in message
        texts and in the system text are encoded as plain text."""
        if self._quoted is None:
            return super().encode(parts, before)
        quoted_parts: list[Part] = []
        for part in parts:
            opening, mark, rest = (
                part.text.partition(_MARK) if not part.said else (part.text, "", "")
            )
            quoted_parts.append(Part(opening, part.said))
            if mark:
                quoted_parts += [Part(self._quoted, said=True), Part(rest)]
        return super().encode(quoted_parts, before)


def _is_inside(text: str) -> bool:
    """Whether a text ends with reasoning that is not yet closed."""
    return OPEN in text and text.rfind(OPEN) > text.rfind(CLOSE)
