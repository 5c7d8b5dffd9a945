"""Chat templates as an append-only format: each turn continues the token ids before it.

A template renders a whole conversation, and some rewrite earlier turns (Qwen3 drops past
reasoning). Rendering again would change sampled ids. So the template is rendered once, on a
conversation of placeholders, and split at the placeholders. Every turn is then written by appending
these pieces, and the old ids stay a prefix.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colearn.errors import ConfigError
from colearn.reasoning import TOKENS, opened_reasoning
from colearn.types import Action, Observation, Prompt

from .rendering import render

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_USER, _ANSWER, _NEXT = "\ue000first\ue000", "\ue000answer\ue000", "\ue000next\ue000"


_MARK = "\ue000system\ue000"
_SYSTEMS = 32
"""Number of cached chat formats with a system text."""


class ChatFormat:
    """Converts observations into the token ids that extend an agent's history.

    `chat` is 'auto' (the tokenizer's template, or plain text without one), 'plain', or the path of
    a .jinja file. `template` holds further template arguments; `today` is the date passed to it
    (None: this machine's). In plain format an observation is followed by a line break and an action
    ends with the tokenizer's end token. `model_end_ids` are further ids that end an action: those
    of the model's generation config.

    Errors: ConfigError if the template does not end, drops or repeats a message, or there is no end
    token.
    """

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
        """The same format with another system text, in which special tokens stay text.

        Errors: ConfigError if the template drops or repeats it.
        """
        self._ids = lru_cache(maxsize=4096)(self._tokenize)
        source = _template(tokenizer, chat)
        if source is None:
            start = tokenizer.bos_token or ""
            self._opening = start + (f"{system}\n" if system else "")
            self._between, self._after = tokenizer.eos_token or "", "\n"
        else:
            arguments = dict(template or {})
            if today is not None:
                source = _dated(source, today)
                arguments = {"date_string": f"{today:%d %b %Y}", **arguments}
            self._opening, self._between, self._after = _cut(tokenizer, source, system, arguments)
        between = self._ids(self._between)
        # all_special_ids leaves out markers like Gemma 3's <end_of_turn>
        added = {
            number for number, token in tokenizer.added_tokens_decoder.items() if token.special
        }
        special = added | set(tokenizer.all_special_ids)
        ends = [
            *(between[:1] if special.issuperset(between[:1]) else ()),
            *(() if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)),
            *model_end_ids,
        ]
        self.end_ids: frozenset[int] = frozenset(ends)
        """Ids that end an action; the sampled one is part of the action and is trained."""
        if not self.end_ids:
            raise ConfigError(
                "agents.chat: the tokenizer has no end token and the template closes a turn "
                "with none; set tokenizer.eos_token or give a .jinja template"
            )
        self.end_id: int = between[0] if self.end_ids.intersection(between[:1]) else ends[0]
        """The end token that the template writes after an answer."""
        self._between_ids = between
        self._special = tuple(
            str(token) for token in tokenizer.added_tokens_decoder.values() if token.special
        )
        self._reasoning = {
            number: TOKENS[str(token)]
            for number, token in tokenizer.added_tokens_decoder.items()
            if token.special and str(token) in TOKENS
        }
        """Marks of reasoning by id, for those that decoding would leave out."""

    def open(self, text: str) -> Observation:
        """o_0: the ids a history begins with."""
        return Observation(text, self._turn(self._opening, text))

    def continuation(self, text: str, last: Action) -> Observation:
        """o_t for t > 0: the ids that follow the action `last`, whichever way it ended."""
        closing = self._between
        if last.tokens and self._between_ids and last.tokens[-1] == self._between_ids[0]:
            closing = closing[len(self.tokenizer.convert_ids_to_tokens(self._between_ids[0])) :]
        return Observation(text, self._turn(closing, text))

    def open_conversation(self, prompt: Prompt) -> Observation:
        """o_0 of a context with a system text or earlier turns; nothing in it is trained."""
        chat = self if prompt.system is None else self.under(prompt.system)
        tokens: list[int] = []
        last: Action | None = None
        for said, answer in (*prompt.turns, (prompt.text, "")):
            seen = chat.open(said) if last is None else chat.continuation(said, last)
            last = Action(answer, chat.spell(answer))
            tokens += (*seen.tokens, *last.tokens)
        return Observation(prompt.whole, tuple(tokens))

    def spell(self, text: str) -> tuple[int, ...]:
        """Ids of a text that was not sampled by this model; special tokens in it stay text."""
        spelt = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return tuple(spelt["input_ids"])

    def _under(self, system: str) -> ChatFormat:
        return QuotingChat(self.tokenizer, system=system, **self._settings)

    def decode(self, tokens: tuple[int, ...]) -> str:
        """The text of sampled tokens, without special tokens; those that open or close reasoning
        are written as `<think>` and `</think>`."""
        text, begin = "", 0
        for place, token in enumerate(tokens):
            if token in self._reasoning:
                text += self._plain(tokens[begin:place]) + self._reasoning[token]
                begin = place + 1
        return text + self._plain(tokens[begin:])

    def opened_reasoning(self, observation: str) -> str:
        """The text that opens reasoning at the end of a prompt, before the action; '' without."""
        return opened_reasoning(observation + self._after)

    def _plain(self, tokens: tuple[int, ...]) -> str:
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True) if tokens else ""

    def _turn(self, before: str, text: str) -> tuple[int, ...]:
        """Ids of an observation and the template around it.

        A text that spells a special token (such as a quoted answer of another agent) must not
        become one: it is then tokenised separately, as plain text.
        """
        if not any(token in text for token in self._special):
            return self._ids(before + text + self._after)
        spelt = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return (*self._ids(before), *spelt["input_ids"], *self._ids(self._after))

    def _tokenize(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"]) if text else ()


class QuotingChat(ChatFormat):
    """A chat format with an untrusted system text, in which special tokens stay text.

    Errors: ConfigError if the template drops or repeats the system text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, *, system: str | None = None, **settings: Any
    ) -> None:
        super().__init__(tokenizer, system=system, **settings)
        self._quoted: str | None = None
        if system is not None and any(token in system for token in self._special):
            super().__init__(tokenizer, system=_MARK, **settings)
            if self._opening.count(_MARK) != 1:
                raise ConfigError("agents.chat: the template drops or repeats the system text")
            self._quoted = system

    def open(self, text: str) -> Observation:
        """o_0: the ids a history begins with."""
        if self._quoted is None:
            return super().open(text)
        before, after = self._opening.split(_MARK)
        tokens = (*self._ids(before), *self.spell(self._quoted), *self._turn(after, text))
        return Observation(text, tokens)


def _template(tokenizer: PreTrainedTokenizerBase, chat: str) -> str | None:
    if chat == "plain":
        return None
    if chat == "auto":
        return tokenizer.chat_template
    path = Path(chat)
    if not path.is_file():
        raise ConfigError(f"agents.chat: no file {path}; give 'auto', 'plain' or a .jinja file")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"agents.chat: {path} is not UTF-8 text; save it as UTF-8") from None


_DIRECTIVES = "aAbBcdDeFHIjmMpSTuUVwWxXyYZ"
_CLOCK = """\
{{%- macro strftime_now(format) -%}}
    {{{{- format{replaced} -}}}}
{{%- endmacro -%}}
"""


def _dated(source: str, today: date) -> str:
    """The template with a fixed date: a macro replaces transformers' `strftime_now`."""
    if "strftime_now" not in source:
        return source
    told = ((f"%{letter}", today.strftime(f"%{letter}")) for letter in _DIRECTIVES)
    return _CLOCK.format(replaced="".join(f" | replace({a!r}, {b!r})" for a, b in told)) + source


def _cut(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    system: str | None,
    arguments: Mapping[str, Any],
) -> tuple[str, str, str]:
    """The template's text before the first user message, between an answer and the next user
    message, and between a user message and its answer."""
    for name in inspect.signature(tokenizer.apply_chat_template).parameters:
        if name in arguments:
            raise ConfigError(
                f"agents.template.{name}: belongs to the tokenizer, not the template; leave it out"
            )
    messages = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": "user", "content": _USER},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": _NEXT},
    ]
    text = render(tokenizer, template, messages, arguments)
    if any(text.count(mark) != 1 for mark in (_USER, _ANSWER, _NEXT)):
        raise ConfigError(
            "agents.chat: the template drops or repeats a message, so turns cannot be appended; "
            "give another .jinja template or 'plain'"
        )
    opening, rest = text.split(_USER)
    _, rest = rest.split(_ANSWER)
    between, after = rest.split(_NEXT)
    return opening, between, after
