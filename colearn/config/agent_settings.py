"""Settings of an agent: its player, the sampling of answers, and its history."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from colearn.contract import Sampling
from colearn.contract.anneal import left

from .strict_section import EACH, Named, Section


class SamplingSettings(Section):
    temperature: float = Field(default=1.0, ge=0)
    """Sampling temperature; 0 decodes greedily."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling: samples from the most likely tokens whose total probability reaches this
    value."""
    top_k: int | None = Field(default=None, ge=1, le=10_000_000)
    """Samples from the k most likely tokens; None: from all tokens."""
    max_tokens: int = Field(default=256, ge=1, le=10_000_000)
    """Maximum number of tokens in one answer."""
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Strings that end an answer. The answer's text includes the string that ended it."""


class TemperatureAnneal(Section):
    """A training temperature that is constant until `begin` and then anneals linearly to the
    agent's `temperature` at `end`. `begin` and `end` are fractions of `train.environment_steps`."""

    start: float = Field(ge=0.01)
    """Temperature until `begin`."""
    begin: float = Field(default=0.0, ge=0, lt=1)
    """Fraction of the budget at which annealing begins."""
    end: float = Field(default=1.0, gt=0, le=1)
    """Fraction of the budget at which the temperature reaches `temperature`."""

    @model_validator(mode="after")
    def _in_order(self) -> TemperatureAnneal:
        if self.begin >= self.end:
            raise ValueError("begin must lie below end")
        return self


class TrainedSampling(SamplingSettings):
    """Sampling settings in a run. `temperature` applies to evaluation and deployment, and also to
    training unless `anneal` is set. An agent whose model is trained cannot decode greedily."""

    anneal: TemperatureAnneal | None = None
    """Schedule of the training temperature; None: constant."""

    @property
    def deployed(self) -> SamplingSettings:
        """Sampling settings of an exported agent."""
        return SamplingSettings(**self.model_dump(exclude={"anneal"}, exclude_unset=True))

    def training_temperature(self, done: float) -> float:
        """Returns the rollout temperature that applies when the fraction `done` of the training
        budget has been used."""
        anneal = self.anneal
        if anneal is None:
            return self.temperature
        part = left(anneal.end - anneal.begin, max(0.0, done - anneal.begin))
        return self.temperature + part * (anneal.start - self.temperature)

    @model_validator(mode="after")
    def _above_zero(self) -> TrainedSampling:
        if self.anneal is not None and self.temperature == 0:
            raise ValueError("anneal needs a temperature above 0 at its end; set temperature")
        return self


class AgentSettings(Section):
    model: str = EACH
    """Name of the model that plays this agent; `*`: the model named after the agent."""
    program: Named | None = None
    """A program that plays the agent instead of a model: a registered name, or module:Class."""
    endpoint: str | None = None
    """URL of an OpenAI-compatible server that plays the agent instead of a model; every request
    includes `sampling` and `system`."""
    system: str | None = None
    """System prompt, at the start of the history."""
    chat: str = "auto"
    """The chat format: `auto`, `plain` or the path of a .jinja file. `auto` uses the tokenizer's
    chat template, or `plain` if the tokenizer has no chat template."""
    template: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Arguments of the chat template, such as Qwen3's `enable_thinking: false`."""
    today: date = date(2024, 7, 26)
    """Fixed date for chat templates that include the current date, such as Llama 3's, so that
    prompts do not change at midnight. The default is the default date of those templates."""
    sampling: TrainedSampling = TrainedSampling()
    """Sampling of answers."""
    window: int | None = Field(default=None, ge=1)
    """Window size C. At the start of each turn, only the most recent C positions of the KV cache
    are kept; None: all positions are kept."""
    overflow: Literal["truncate", "error"] = "truncate"
    """Behaviour if a history leaves no room for an answer in the model's context: `truncate` cuts
    the episode (see `algorithm.missing_turn_reward`), and `error` ends the run. The metric
    `overflow` reports the fraction of episodes that were cut in this way. A window does not shorten
    a history."""

    @property
    def speaks(self) -> bool:
        """Whether a language model of this run plays the agent."""
        return self.program is None and self.endpoint is None

    @property
    def chat_format(self) -> dict[str, Any]:
        """Arguments of `ChatFormat`, except the tokenizer."""
        return {name: getattr(self, name) for name in ("chat", "system", "template", "today")}

    @property
    def spec_fields(self) -> dict[str, Any]:
        """Arguments of `AgentSpec`, except the arguments that depend on the model."""
        sampling = self.sampling
        return {
            "sampling": Sampling(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                max_tokens=sampling.max_tokens,
                stop=sampling.stop,
            ),
            "window": self.window,
            "model": self.model,
            "training_temperature": sampling.training_temperature if sampling.anneal else None,
        }

    @property
    def request_fields(self) -> dict[str, Any]:
        """Returns the fields of a chat completion request for settings that are set explicitly; the
        server chooses the values of all other fields.

        The recorded config of a run sets all settings explicitly, so an agent that is loaded from a
        run samples as it did in the run.
        """
        sampling = self.sampling.deployed
        fields = {name: getattr(sampling, name) for name in sorted(sampling.model_fields_set)}
        fields["stop"] = list(sampling.stop)
        return {name: value for name, value in fields.items() if value not in (None, [])}

    @model_validator(mode="after")
    def _one_player(self) -> AgentSettings:
        choices = (self.model != EACH, self.program is not None, self.endpoint is not None)
        if sum(choices) > 1:
            raise ValueError("set one of model, program and endpoint")
        if not self.speaks and self.sampling.anneal is not None:
            raise ValueError("sampling.anneal needs a model of this run; leave it out")
        return self
