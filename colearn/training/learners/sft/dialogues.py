"""Converts dialogues of agents to token ids; the labels are the agent's answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from colearn.errors import ConfigError, nearest
from colearn.programs.files.regular import read_regular
from colearn.rollout.agents import ChatFormat, dialogue_spans
from colearn.text.json_value import numbered_lines, read_row
from colearn.text.media import media_problem
from colearn.text.message import read_message

_WEIGHTS = (
    *("weight", "loss", "trainable", "train"),
    *("loss_weight", "loss_scale", "loss_mask", "step_loss_mask"),
)
"""Fields of a message or a row by which other trainers weigh an answer, or leave it out of the
loss."""
_ROW_LEFT_OUT = ("tools", "functions", "chat_template_kwargs")
"""Row fields that raise an error, because a template would read them."""

IGNORED = -100
"""Label of a token that is excluded from the loss, as in torch and TRL."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """An agent's observations and answers, turn by turn."""

    agent: str
    turns: tuple[tuple[str, str], ...]
    """(user, assistant) texts."""
    system: str | None = None
    """A system message that replaces the agent's role prompt."""
    where: str = field(default="", compare=False)
    """The line of the data, as errors name it."""


def read_dialogues(path: Path, agents: Collection[str]) -> list[Dialogue]:
    """Read rows {"agent": NAME, "messages": [...]} from a JSON-lines file. If there is only one
    agent, the name may be omitted.

    Errors: ConfigError naming the line.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--data {path}: {error}; name a .jsonl file") from None
    dialogues = [
        _dialogue(line, agents, f"--data: line {number} of {path}")
        for number, line in numbered_lines(text)
    ]
    if not dialogues:
        raise ConfigError(f"--data {path}: holds no rows; add some")
    return dialogues


def token_row(dialogue: Dialogue, chat: ChatFormat) -> dict[str, list[int]]:
    """Return `input_ids` of the whole dialogue, rendered by the template, and `labels`. Each
    labelled range begins after a prompt and includes the end token of the answer."""
    form = chat if dialogue.system is None else chat.under(dialogue.system)
    ids: list[int] = []
    labels: list[int] = []
    for span in dialogue_spans(form, dialogue.turns, ended=True):
        ids += span.tokens
        labels += span.tokens if span.answer else [IGNORED] * len(span.tokens)
    return {"input_ids": ids, "labels": labels}


def _dialogue(line: str, agents: Collection[str], location: str) -> Dialogue:
    try:
        row = read_row(line)
    except ValueError as error:
        raise ConfigError(f"{location} {error}; write one JSON object per line") from None
    if not isinstance(row, Mapping) or not isinstance(row.get("messages"), list):
        raise ConfigError(f"{location}: has no list of messages; write agent and messages")
    if (problem := media_problem(row)) is not None:
        raise ConfigError(f"{location}: {problem}")
    for name in _ROW_LEFT_OUT:
        if row.get(name):
            raise ConfigError(
                f"{location}: has {name}, which is not read; write tools into the system text, and "
                "what a template needs into agents.*.template"
            )
    _check_weights(row, f"{location}:")
    agent = row.get("agent", next(iter(agents)) if len(agents) == 1 else None)
    if agent not in agents:
        raise ConfigError(f"{location}: no agent {agent!r}; {nearest(str(agent), agents)}")
    turns = [_said(message, location) for message in row["messages"]]
    system = turns.pop(0)[1] if turns and turns[0][0] == "system" else None
    roles = [role for role, _ in turns]
    if not roles or roles != ["user", "assistant"] * (len(roles) // 2):
        raise ConfigError(
            f"{location}: the messages are by {', '.join(roles) or 'nobody'}; write user and "
            "assistant in turn, the last by assistant"
        )
    texts = [text for _, text in turns]
    return Dialogue(agent, tuple(zip(texts[::2], texts[1::2], strict=True)), system, location)


def _said(message: Any, location: str) -> tuple[str, str]:
    try:
        role, content = read_message(message, "rows")
    except ValueError as error:
        raise ConfigError(f"{location}: a message {error}") from None
    _check_weights(message, f"{location}: a message")
    return role, content


def _check_weights(fields: Mapping[str, Any], holder: str) -> None:
    for name in _WEIGHTS:
        if fields.get(name) not in (None, 1):
            raise ConfigError(
                f"{holder} has the {name} {fields[name]!r:.20}; every answer is trained alike, so "
                f"end the dialogue before it, or leave {name} out"
            )
