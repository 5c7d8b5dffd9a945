"""Language-model players: they read prompts in a chat format and sample from a generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from colearn.contract import (
    Ask,
    Generator,
    Listener,
    Player,
    ProgramEpisodes,
    Request,
    Sampled,
    Spoken,
    Table,
)
from colearn.types import Action, Limits, Observation, Prompt

from .chat import ChatFormat


def no_version() -> int:
    """The version of untrained weights."""
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class LanguageTable(Table):
    """All players of one generator, which batches their requests."""

    generator: Generator

    async def say(self, ask: Ask, *, greedy: bool = False) -> list[Spoken]:
        head = _head(ask)
        return _spoken(await self.generator.submit(_request(ask), greedy=greedy), head)


@dataclass(frozen=True, slots=True)
class Language(Player):
    """One agent of a generator, prompted in a chat format."""

    own_table: LanguageTable
    voice: str
    """The agent's name in the generator."""
    chat: ChatFormat
    weights_version: Callable[[], int] = no_version
    """Returns the number of updates of its model so far."""
    training_temperature: Callable[[float], float] | None = None
    """Temperature by the used fraction of the training budget; None: the voice's, constant."""
    temperature: float | None = None
    """Temperature that replaces the voice's."""
    positions: int | None = None
    """Maximum length of its model's input in tokens; None: unknown."""
    own_temperature: float | None = None
    """The voice's temperature; None: unknown."""
    truncates: bool = True
    """Whether a history that does not fit its model ends the episode; else the run."""

    @property
    def sampling_temperature(self) -> float | None:
        return self.own_temperature if self.temperature is None else self.temperature

    @property
    def table(self) -> LanguageTable:
        return self.own_table

    def read(self, prompt: Prompt, last: Action | None) -> Observation:
        return read_prompt(self.chat, prompt, last)

    def spell(self, action: Action) -> Sequence[str]:
        return [self.chat.decode((token,)) for token in action.tokens]

    def at(self, done: float) -> Language:
        if self.training_temperature is None:
            return self
        return replace(self, temperature=self.training_temperature(done))

    def version(self) -> int:
        version = self.own_table.generator.version(self.voice)
        return self.weights_version() if version is None else version


def read_prompt(chat: ChatFormat, prompt: Prompt, last: Action | None) -> Observation:
    """A prompt as the token ids that it adds to a history in this format."""
    text = prompt.text
    if last is not None:
        observation = chat.continuation(text, last)
    elif prompt.system is None and not prompt.turns:
        observation = chat.open(text)
    else:
        observation = chat.open_conversation(prompt)
    if not prompt.fresh and prompt.made_from is None and prompt.limits is None:
        return observation
    return replace(
        observation,
        fresh=prompt.fresh,
        made_from=prompt.made_from,
        limits=prompt.limits,
        system=prompt.system,
    )


def language_players(generator: Generator, chats: Mapping[str, ChatFormat]) -> dict[str, Language]:
    """Players of one generator, one for each name in `chats`."""
    table = LanguageTable(generator)
    return {name: Language(table, name, chat) for name, chat in chats.items()}


class _Head(NamedTuple):
    """What an action's text and version begin with when its player is asked."""

    version: int
    """Version of the player's weights."""
    opened: str
    """The text with which the prompt opened reasoning, which the action is inside of."""


def _head(ask: Ask) -> _Head:
    assert isinstance(ask.player, Language)
    opened = ask.player.chat.opened_reasoning(ask.observation.text)
    return _Head(ask.player.version(), opened)


def _request(ask: Ask) -> Request:
    assert isinstance(ask.player, Language)
    return Request(
        agent=ask.player.voice,
        session=ask.memory,
        tokens=ask.observation.tokens,
        seeds=ask.seeds,
        temperature=ask.player.temperature,
        limits=_limits(ask),
        listener=_listener(ask),
    )


def _limits(ask: Ask) -> Limits | None:
    """The observation's limits, and the room that the history leaves for the answer."""
    given, positions = ask.observation.limits, ask.player.positions
    if positions is None:
        return given
    history = 0 if ask.memory is None else ask.memory.length
    room = positions - history - len(ask.observation.tokens)
    if given is None:
        return Limits(room)
    return replace(given, max_tokens=min(room, given.max_tokens or room))


def _spoken(drawn: Sequence[Sampled], head: _Head) -> list[Spoken]:
    return [Spoken(_completed(one.action, head), one.session, one.seconds) for one in drawn]


def _listener(ask: Ask) -> Listener | None:
    if len(ask.seeds) > 1:
        return None
    listener = ProgramEpisodes.of(ask.task).listener(ask.state, ask.seat)
    if listener is not None and (opened := _head(ask).opened):
        listener(opened)
    return listener


def _completed(action: Action, head: _Head) -> Action:
    if action.version == head.version and not head.opened:
        return action
    return replace(action, text=head.opened + action.text, version=head.version)
