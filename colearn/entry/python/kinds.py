"""Types of `train`'s and `compare`'s arguments: tasks, algorithms, models, rewards, rows."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

from colearn.config import (
    AgentSettings,
    CriticSettings,
    EvaluationSettings,
    ModelSettings,
    RunSettings,
    TrainSettings,
)
from colearn.contract import Algorithm, Callback, DecPOMDP, RewardFunction

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Rewards: TypeAlias = Sequence[float | None] | Awaitable[Sequence[float | None]]
"""One reward per completion; None adds nothing to the total reward."""


class RewardOfColumns(Protocol):
    """A reward function whose parameters include columns of the data: `f(prompts, completions,
    answer, **kwargs)`."""

    def __call__(
        self, prompts: Any, completions: Any, /, *args: Any, **columns: Any
    ) -> Rewards: ...


class RewardByName(Protocol):
    """A reward function that names only the arguments that it reads: `f(completions, **kwargs)`."""

    def __call__(self, *, prompts: Any, completions: Any, **columns: Any) -> Rewards: ...


OneReward: TypeAlias = RewardFunction | RewardOfColumns | RewardByName | str
"""A function with TRL's signature, a part of `colearn.tasks.rewards`, or `module:function`."""
RewardGiven: TypeAlias = OneReward | Sequence[OneReward] | Mapping[str, Any]
"""The team's reward, several rewards that are summed, or a mapping by agent in which the key `team`
holds the team's reward."""

TaskGiven: TypeAlias = DecPOMDP[Any, Any] | type[DecPOMDP[Any, Any]] | str | Mapping[str, Any]
"""An object, a class, a name, or a section with `name` (a name or a class) and settings."""
AlgorithmGiven: TypeAlias = Algorithm | type[Algorithm] | str | Mapping[str, Any]
"""An object, a class, a name, or a section with `name` and settings."""

OneModel: TypeAlias = "str | Path | ModelSettings | Mapping[str, Any] | tuple[PreTrainedModel, PreTrainedTokenizerBase]"  # noqa: E501
"""A path, a section of settings, or a loaded model with its tokenizer."""
ModelsGiven: TypeAlias = "OneModel | Mapping[str, OneModel]"
"""One model for all agents, or a mapping by agent; `*` stands for all agents that are not named."""
CriticGiven: TypeAlias = "str | Path | CriticSettings | Mapping[str, Any] | tuple[PreTrainedModel, PreTrainedTokenizerBase]"  # noqa: E501
"""A path, a section of settings, or a loaded model with its tokenizer."""

Rows: TypeAlias = str | Path | Iterable[Mapping[str, Any]]
"""A file's path, a hub name, a list of dictionaries, or a `datasets.Dataset`."""
DataGiven: TypeAlias = Rows | Mapping[str, Any]
"""Rows, or a mapping with `train` and `test`."""


class Sections(TypedDict, total=False):
    """The other sections of a config, as objects or as mappings like the YAML sections."""

    agents: Mapping[str, AgentSettings | Mapping[str, Any]]
    """Settings by agent; `*` stands for all agents that are not named."""
    players: Mapping[str, AgentSettings | Mapping[str, Any]]
    """Additional players without a seat."""
    cast: Mapping[str, Any]
    """Assignment of players to seats."""
    wrapper: str | Mapping[str, Any]
    """A protocol around the task."""
    placement: Mapping[str, str]
    """Devices by model."""
    train: TrainSettings | Mapping[str, Any]
    """Budget and batches of training."""
    evaluation: EvaluationSettings | Mapping[str, Any]
    """Schedule and settings of evaluations."""
    run: RunSettings | Mapping[str, Any]
    """Seed, devices, engines, trackers and checkpoints."""


class Arguments(Sections, total=False):
    """Arguments that `train`, `Trainer` and `compare` have in common; None: left out."""

    models: ModelsGiven | None
    critic: CriticGiven | None
    reward: RewardGiven | None
    data: DataGiven | None
    callbacks: Sequence[Callback]
