"""Prompts of data rows: plain text or messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from colearn.errors import ConfigError
from colearn.text.message import read_message


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPrompt:
    """A prompt as an agent reads it."""

    text: str
    """Plain text, or the last user message."""
    system: str | None = None
    turns: tuple[tuple[str, str], ...] = ()
    """(user, assistant) texts before `text`."""
    messages: bool = False
    """Whether the data contain messages; if so, reward functions also receive messages."""

    @property
    def given(self) -> str | list[dict[str, str]]:
        """The prompt in the form that reward functions receive."""
        if not self.messages:
            return self.text
        before = [] if self.system is None else [{"role": "system", "content": self.system}]
        for question, answer in self.turns:
            before += [_message("user", question), _message("assistant", answer)]
        return [*before, _message("user", self.text)]

    def completion(self, text: str) -> str | list[dict[str, str]]:
        """An answer in the form that reward functions receive."""
        return [_message("assistant", text)] if self.messages else text


def read_prompt(row: Mapping[str, Any], column: str, location: str) -> AskedPrompt:
    """The prompt of a row.

    Errors: ConfigError that names the row: for a missing column, a value that is neither text nor
    messages, or messages that do not alternate between user and assistant or do not end with the
    user.
    """
    if column not in row:
        raise ConfigError(
            f"task.prompt: {location} has {', '.join(map(str, row))}; '{column}' is missing: set "
            "task.prompt to the name of the prompts' column"
        )
    value = row[column]
    if isinstance(value, str) and value.strip():
        return AskedPrompt(text=value)
    if not isinstance(value, list) or not value:
        raise ConfigError(
            f"task.prompt: '{column}' of {location} is neither text nor messages; fix it"
        )
    entries = [_said(message, column, location) for message in value]
    system = entries.pop(0)[1] if entries[0][0] == "system" else None
    roles = [role for role, _ in entries]
    if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
        raise ConfigError(
            f"task.prompt: the messages of {location} are by {', '.join(roles) or 'system'}; write "
            "user and assistant in turn, the last by user"
        )
    texts = [text for _, text in entries]
    turns = tuple(zip(texts[:-1:2], texts[1::2], strict=True))
    return AskedPrompt(text=texts[-1], system=system, turns=turns, messages=True)


def _said(message: Any, column: str, location: str) -> tuple[str, str]:
    try:
        return read_message(message, "prompts")
    except ValueError as error:
        raise ConfigError(f"task.prompt: a message in '{column}' of {location} {error}") from None


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
