"""A seat played by a language model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from colearn.contract import Ask, Generator, Player, Request, Spoken, Table
from colearn.errors import TaskError
from colearn.types import Action, Observation, Prompt

from .chat import ChatFormat


def no_version() -> int:
    """Of weights that nobody trains."""
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class LanguageTable(Table):
    """All players of one generator, who speak in one batch."""

    generator: Generator

    @property
    def place(self) -> Hashable:
        return self.generator.place

    def speak(self, asks: Sequence[Ask], *, greedy: bool = False) -> list[list[Spoken]]:
        requests = []
        versions = [ask.player.version() for ask in asks]
        for ask in asks:
            assert isinstance(ask.player, Language)
            requests.append(
                Request(
                    agent=ask.player.voice,
                    session=ask.memory,
                    tokens=ask.observation.tokens,
                    seeds=ask.seeds,
                    temperature=ask.player.temperature,
                    limits=ask.observation.limits,
                )
            )
        answers = self.generator.generate(requests, greedy=greedy)
        return [
            [Spoken(_versioned(one.action, version), one.session) for one in drawn]
            for version, drawn in zip(versions, answers, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Language(Player):
    """A voice of a generator, spoken to in a chat format."""

    own_table: LanguageTable
    voice: str
    """Its name in the generator."""
    chat: ChatFormat
    weights_version: Callable[[], int] = no_version
    """The updates that its model has made by now."""
    training_temperature: Callable[[float], float] | None = None
    """By the share of the training budget that is used; None: always that of its voice."""
    temperature: float | None = None
    """Instead of that of its voice."""
    positions: int | None = None
    """The longest text in tokens that its model reads; None: not said."""

    @property
    def table(self) -> LanguageTable:
        return self.own_table

    def read(self, prompt: Prompt, last: Action | None) -> Observation:
        found = read_prompt(self.chat, prompt, last)
        check_length(self.voice, len(found.tokens), self.positions)
        return found

    def spell(self, action: Action) -> Sequence[str]:
        return [self.chat.decode((token,)) for token in action.tokens]

    def at(self, done: float) -> Language:
        if self.training_temperature is None:
            return self
        return replace(self, temperature=self.training_temperature(done))

    def version(self) -> int:
        own = self.own_table.generator.version(self.voice)
        return self.weights_version() if own is None else own


def check_length(agent: str, tokens: int, positions: int | None) -> None:
    """Errors: TaskError for a prompt that no attention of the model spans."""
    if positions is not None and tokens > positions:
        raise TaskError(
            f"task.observe: agent '{agent}' was given {tokens} tokens, and its model reads "
            f"{positions}; show less, or name a model with a longer context"
        )


def read_prompt(chat: ChatFormat, prompt: Prompt, last: Action | None) -> Observation:
    """A prompt as the ids by which it enters a history in this format."""
    text = prompt.text
    if last is not None:
        found = chat.continuation(text, last)
    elif prompt.system is None and not prompt.turns:
        found = chat.open(text)
    else:
        found = chat.open_conversation(prompt)
    if not prompt.fresh and prompt.made_from is None and prompt.limits is None:
        return found
    return replace(
        found,
        fresh=prompt.fresh,
        made_from=prompt.made_from,
        limits=prompt.limits,
        system=prompt.system,
    )


def language_players(generator: Generator, chats: Mapping[str, ChatFormat]) -> dict[str, Language]:
    """Players of one generator, each the voice of its own name."""
    table = LanguageTable(generator)
    return {name: Language(table, name, chat) for name, chat in chats.items()}


def _versioned(action: Action, version: int) -> Action:
    return action if action.version == version else replace(action, version=version)
