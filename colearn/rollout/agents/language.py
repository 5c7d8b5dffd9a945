"""Agents that a language model plays: their settings, and players that convert prompts to tokens
with a chat format and sample actions from a token engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from colearn.contract import (
    ActionRequest,
    Learner,
    Player,
    Sampling,
    TokenAnswer,
    TokenEngine,
    TokenHistory,
    TokenRequest,
    WindowExceeded,
)
from colearn.contract.types import Action, Observation
from colearn.errors import ConfigError

from .chat_format import ChatFormat
from .token_bytes import token_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Settings of an agent that a language model plays, as used by the generator, the update, exact
    evaluation and the dry run."""

    sampling: Sampling = field(default_factory=Sampling)
    window: int | None = None
    model: str | None = None
    """Name of the model that plays the agent."""
    adapter: str | None = None
    """Name of the agent's adapter on that model."""
    chat: ChatFormat | None = None
    """Chat format; None if the tokenizer is not needed or not on this machine."""
    positions: int | None = None
    """Maximum length of the model's input in tokens; None: unknown."""
    training_temperature: Callable[[float], float] | None = None
    """Temperature as a function of the used fraction of the training budget; None: the temperature
    of `sampling`."""

    def temperature_at(self, done: float) -> float:
        """Return the rollout temperature after the fraction `done` of the training budget."""
        if self.training_temperature is None:
            return self.sampling.temperature
        return self.training_temperature(done)

    @property
    def chat_format(self) -> ChatFormat:
        """The value of `chat`, which must be set."""
        assert self.chat is not None, "this spec was made without a tokenizer"
        return self.chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Language(Player):
    """A player that samples the actions of one agent from an engine, with prompts in the agent's
    chat format."""

    engine: TokenEngine
    agent: str
    """The agent's name in the engine."""
    spec: AgentSpec
    learner: Learner | None = None
    """Learner of the agent's model, whose steps are the version of the weights; None if the model
    is not trained."""
    temperature: float | None = None
    """Temperature that replaces the temperature of the agent's spec; None: no replacement."""
    truncates: bool = True
    """Whether a history that is too long for the agent's model ends only the episode. If False, a
    history that is too long ends the run."""

    @property
    def positions(self) -> int | None:
        return self.spec.positions

    @property
    def sampling_temperature(self) -> float | None:
        return self.spec.sampling.temperature if self.temperature is None else self.temperature

    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        """In the free order; in lockstep, `token_request` and `completed` surround one batch of all
        agents.

        Errors: ConfigError if an observation exceeds the agent's context window.
        """
        version = self.version()
        return self.completed(
            request, await self.engine.submit(self.token_request(request)), version
        )

    def completed(
        self, request: ActionRequest, answers: Sequence[TokenAnswer], version: int
    ) -> list[TokenAnswer]:
        """Add to the engine's answers the version of the weights that sampled them, and the
        reasoning tag that the prompt opened."""
        opened = self._opened(request)
        return [
            TokenAnswer(_completed(answer.action, version, opened), answer.history, answer.seconds)
            for answer in answers
        ]

    def read(self, observation: Observation, last: Action | None) -> Observation:
        return with_tokens(self.spec.chat_format, observation, last)

    def spell(self, action: Action) -> Sequence[bytes]:
        return token_bytes(self.spec.chat_format, action.tokens)

    def at(self, done: float) -> Language:
        if self.spec.training_temperature is None:
            return self
        return replace(self, temperature=self.spec.training_temperature(done))

    def version(self) -> int:
        version = self.engine.version(self.agent)
        if version is not None:
            return version
        return 0 if self.learner is None else self.learner.steps

    def token_request(self, request: ActionRequest) -> TokenRequest:
        """Return the request to the engine. Errors: as for `act`."""
        before: TokenHistory | None = request.history
        history = extended(self.agent, before, request.observation.tokens, self.spec.window)
        return TokenRequest(
            agent=self.agent,
            history=history,
            continues=before,
            sampling=self._sampling(request, len(history)),
            seeds=request.seeds,
        )

    def _opened(self, request: ActionRequest) -> str:
        return self.spec.chat_format.opened_reasoning(request.observation.whole)

    def _sampling(self, request: ActionRequest, tokens: int) -> Sampling:
        """Return the sampling parameters of this action, after a history of `tokens` tokens."""
        room = None if self.positions is None else self.positions - tokens
        sampling = self.spec.sampling.within(request.observation.limits, room)
        temperature = sampling.temperature if self.temperature is None else self.temperature
        if request.greedy:
            temperature = 0.0
        if temperature == sampling.temperature:
            return sampling
        return replace(sampling, temperature=temperature)


def extended(
    agent: str, history: TokenHistory | None, tokens: Sequence[int], window: int | None
) -> TokenHistory:
    """Extend an agent's history by the next observation. Errors: ConfigError if the observation
    exceeds the context window."""
    try:
        return (TokenHistory() if history is None else history).observe(tokens, window)
    except WindowExceeded:
        raise ConfigError(
            f"agents.{agent}.window: an observation of {len(tokens)} tokens exceeds the window of "
            f"{window}; raise it"
        ) from None


def with_tokens(chat: ChatFormat, observation: Observation, last: Action | None) -> Observation:
    """Add the token ids that an observation adds to a history in this format. In a context that has
    begun, an observation has no system text and no earlier turns."""
    if last is not None:
        tokens = chat.continuation(observation.text, last).tokens
        return replace(observation, tokens=tokens, system=None, turns=())
    if observation.system is None and not observation.turns:
        return replace(observation, tokens=chat.open(observation.text).tokens)
    return replace(observation, tokens=chat.open_conversation(observation))


def _completed(action: Action, version: int, opened: str) -> Action:
    """Add to a sampled action the version of the sampling weights, and the reasoning tag that the
    prompt opened."""
    if action.version == version and not opened:
        return action
    return Action(
        text=opened + action.text,
        tokens=action.tokens,
        logprobs=action.logprobs,
        finish=action.finish,
        version=version,
    )
