"""Writes an append-only chat template that reproduces the training format.

The template is assembled from the pieces into which `ChatFormat` splits the template used in
training. The model's original template would not be correct: some templates rewrite earlier answers
or trim messages, and the agent has never seen such text in training.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from colearn.contract.types import Action
from colearn.rollout.agents import CLOSING, ChatFormat
from colearn.text.token_ids import token_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SYSTEM = "\ue000system\ue000"

_TEMPLATE = """\
{{#- Written by colearn from the turns that this agent was trained on; every rendering is the
    beginning of all later ones. -#}}
{{%- if tools %}}
    {{{{- raise_exception("this agent was trained without tools") }}}}
{{%- endif %}}
{{%- set opening = {opening} %}}
{{%- set between = {between} %}}
{{%- set after = {after} %}}
{{%- set opened = {opened} %}}
{{%- set end = {end} %}}
{{%- set turns = messages %}}
{{%- if messages and messages[0]["role"] == "system" %}}
    {{%- set turns = messages[1:] %}}
    {{%- if messages[0]["content"] %}}
        {{%- set opening = {own_system} %}}
    {{%- else %}}
        {{%- set opening = {bare} %}}
    {{%- endif %}}
{{%- endif %}}
{{%- for message in turns %}}
    {{%- if message["content"] is not string %}}
        {{{{- raise_exception("a message's content must be text") }}}}
    {{%- elif message["role"] == "user" and loop.index0 % 2 == 0 %}}
        {{{{- (opening if loop.first else between) + message["content"] + after }}}}
        {{{{- opened if loop.last else "" }}}}
    {{%- elif message["role"] == "assistant" and loop.index0 % 2 == 1 %}}
        {{{{- {answer} + (end if loop.last else "") }}}}
    {{%- else %}}
        {{{{- raise_exception("messages must be user and assistant in turn, user first") }}}}
    {{%- endif %}}
{{%- endfor %}}"""


_ANSWER = """\
(opened if "</think>" in message["content"]
                and "<think>" not in message["content"].split("</think>")[0] else "")
            + message["content"]
            + ({closing} if "<think>" in message["content"]
                and "</think>" not in message["content"] and not loop.last else "")"""
"""Jinja for an answer if the template has reasoning. The answer is written as it was sampled. If
the prompt opened the reasoning, the opening text precedes the answer. A truncated reasoning block
is closed; an answer without reasoning has no block."""


class _Pieces(ChatFormat):
    """The texts of the chat format. The template is assembled from them."""

    @property
    def opening(self) -> str:
        return self._opening

    @property
    def between(self) -> str:
        """The text between an answer's content and the next user text, including the end token."""
        if self._closing.end in self.end_ids:
            name: str = self.tokenizer.convert_ids_to_tokens(self._closing.end)
            return name + self._closing.rest
        return self.end + self._between

    @property
    def after(self) -> str:
        return self._after.removesuffix(self.opened)

    @property
    def opened(self) -> str:
        """The text that opens reasoning at the end of a prompt."""
        return self.opened_reasoning("")

    @property
    def answer(self) -> str:
        """Jinja expression for an assistant message's text."""
        if not self.reasons:
            return 'message["content"]'
        return _ANSWER.format(closing=_literal(CLOSING))

    @property
    def end(self) -> str:
        token: str = self.tokenizer.convert_ids_to_tokens(self.end_id)
        return token


def write_template(
    tokenizer: PreTrainedTokenizerBase, *, system: str | None = None, **settings: Any
) -> str:
    """Return the Jinja template of an agent. `settings` are the settings of `ChatFormat`.

    Messages are [system], user, assistant, user, ... Without a system message the role prompt
    `system` is used; with an empty system message, none is used. An answer is closed by the end
    token.
    Errors: ConfigError as from `ChatFormat`.
    """

    def pieces_with(system: str | None) -> _Pieces:
        return _Pieces(tokenizer, system=system, **settings)

    pieces = pieces_with(system)
    return _TEMPLATE.format(
        opening=_literal(pieces.opening),
        between=_literal(pieces.between),
        after=_literal(pieces.after),
        opened=_literal(pieces.opened),
        answer=pieces.answer,
        end=_literal(pieces.end),
        own_system=_own_system(pieces_with(_SYSTEM).opening),
        bare=_literal(pieces_with(None).opening),
    )


def spells_training(tokenizer: PreTrainedTokenizerBase, chat: ChatFormat) -> bool:
    """Whether the tokenizer, with the written template, produces the same ids as `chat` for each
    turn of a conversation of plain words."""
    first, answer, second = "one 1", "two 2", "three 3"
    if chat.opened_reasoning(first):
        answer = f"0{CLOSING}{answer}"
    answer_ids = (*chat.spell(answer), chat.end_id)
    opened = chat.open(first).tokens
    continued = (
        *opened,
        *answer_ids,
        *chat.continuation(second, Action(answer, answer_ids)).tokens,
    )
    messages = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": second},
    ]
    return opened == _ids(tokenizer, messages[:1]) and continued == _ids(tokenizer, messages)


def _ids(tokenizer: Any, messages: list[dict[str, str]]) -> tuple[int, ...]:
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return token_ids(tokenizer, text)


def _own_system(opening: str) -> str:
    """Jinja for the start of a conversation whose first message replaces the role prompt."""
    before, separator, behind = opening.partition(_SYSTEM)
    if not separator or _SYSTEM in behind:
        return 'raise_exception("this agent takes no system message")'
    return f'{_literal(before)} + messages[0]["content"] + {_literal(behind)}'


def _literal(text: str) -> str:
    """A Jinja string literal, with JSON's escapes, which Jinja understands."""
    return json.dumps(text, ensure_ascii=False)
