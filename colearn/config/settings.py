"""Typed settings of a run with all defaults; YAML overrides the defaults.

    task:      {name: str_build, horizon: 2}
    algorithm: {name: collm_cc, discount: 1.0}
    models:    {"*": {path: Qwen/Qwen3-0.6B}}      # one model per agent, named after it
    agents:    {"*": {sampling: {max_tokens: 128}}}
    players:   {rival: {program: {name: legal}}}   # additional players, without a seat of their own
    critic:    {path: Qwen/Qwen3-0.6B}
    train:     {environment_steps: 4000}

Models are physical and agents are logical; `agents.NAME.model` maps an agent to its model (the map
phi). Several agents may use one model (full sharing); models with the same path and LoRA share one
frozen base.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from colearn.errors import ConfigError

from .agent_settings import AgentSettings
from .network_settings import CriticSettings, ModelSettings
from .strict_section import EACH, Chosen, Device, Named, Section


class TrainSettings(Section):
    environment_steps: int = Field(default=4000, ge=1)
    """Training budget as a number of joint actions; algorithms are compared at equal budgets."""
    iterations: int | None = Field(default=None, ge=1)
    """Maximum number of iterations; most papers give the budget in iterations. If episodes end
    early, a budget in joint actions allows more iterations. None: only `environment_steps` limits
    training."""
    episodes: int = Field(default=4, ge=1, le=1_000_000)
    """Number of items rolled out per iteration, called the buffer size B in the CoLLM paper."""
    at_once: int | None = Field(default=None, ge=1)
    """Maximum number of episodes rolled out in parallel in each process; None: all. This limit
    affects memory and speed, not the experience."""
    epochs: int = Field(default=1, ge=1)
    """E: number of passes over the iteration's experience."""
    minibatch: int | None = Field(default=None, ge=1)
    """Size of an optimiser step's data in units of `minibatch_unit`; None: all transitions of the
    iteration. Episodes are not split."""
    minibatch_unit: Literal["joint_actions", "episodes"] = "joint_actions"
    """Unit of every `minibatch`, also of the critic's own. Where episodes end early, a
    size in joint actions gives fewer optimiser steps, and a size in episodes as many as ever."""
    target_kl: float | None = Field(default=None, gt=0)
    """Stops an iteration's epochs once an epoch's mean KL(policy at rollout || current policy) per
    token exceeds this value; 0.02 is common."""
    staleness: int = Field(default=0, ge=0)
    """Maximum staleness S. If S > 0, iterations are rolled out during updates, with weights that
    are 1 to S updates old. If S is 0, rollouts run between updates, with the newest weights."""
    token_budget: int | None = Field(default=None, ge=1)
    """Maximum number of tokens per micro-batch, including padding; affects memory and speed, not
    the gradient. None: 8,192 if all models are on CUDA devices, else 2,048."""
    joint_passes: bool | None = None
    """Whether adapters on one frozen base are trained in joint passes: the base's layers run once
    for the rows of all adapters; affects memory and speed, not the gradient. None: only if all
    models are on CUDA devices."""
    record: bool = False
    """Whether to write the texts and rewards of all training episodes to trees.jsonl; `colearn
    critic fit` trains a critic on this file."""


class HeadlineSettings(Section):
    metric: str
    """An evaluation metric: `return`, `turns` or a metric of the task."""
    better: Literal["higher", "lower"] = "higher"
    """Direction in which the metric improves."""


class EvaluationSettings(Section):
    every: int = Field(default=10, ge=1)
    """Number of iterations between evaluations; the first and the last state are always
    evaluated."""
    episodes: int | None = Field(default=None, ge=1, le=1_000_000)
    """Number of held-out items per evaluation; None: every item of the split once."""
    repeats: int = Field(default=1, ge=1, le=1_000_000)
    """Number of episodes per item."""
    at_once: int | None = Field(default=None, ge=1)
    """Maximum number of episodes in parallel in each process; None: all. Smaller values need less
    memory; 1 measures response times without concurrent episodes."""
    pass_at: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Values of k for pass@k; an item needs at least k episodes (`repeats`). The task's metric
    `pass` must be 1 or 0, or None for an episode that is not scored and does not count."""
    split: str = "test"
    """Split of the task's items for evaluation: `train` or `test`."""
    greedy: bool = False
    """Whether to decode greedily instead of sampling."""
    exact: bool = False
    """Whether to report also the exact value of the joint policy, as `exact_return`; requires a
    finite task (`dpomdp`)."""
    headline: HeadlineSettings | None = None
    """The headline metric for comparing runs, such as `{metric: nash_conv, better: lower}`; None:
    the task's headline. The report and `--step best` use this metric."""
    transcripts: int = Field(default=2, ge=0)
    """Number of episodes recorded in full at each evaluation."""


class LearnerChoice(Chosen):
    name: str = "local"


class GeneratorChoice(Chosen):
    name: str = "transformers"


class HostChoice(Chosen):
    name: str = "local"


class RunSettings(Section):
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of all random numbers of the run."""
    device: Device = "auto"
    """Device of all models: `auto`, `cpu`, `mps`, `cuda`, `cuda:1`; the names of xpu, npu and hpu
    devices have the same form."""
    learner: LearnerChoice = LearnerChoice()
    """Learner: `local` or `deepspeed`, with its settings."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Number of torch's CPU threads. None: 1 if every model has fewer than four million parameters,
    else all cores; a comparison divides the cores among its `compare.workers`."""
    tf32: bool = True
    """Whether matrix multiplications in float32 on CUDA devices round their inputs to TF32, with 10
    mantissa bits. Matrix multiplications with TF32 run at 1/2 of the speed of bfloat16; without
    TF32 they run at 1/15 of the speed of bfloat16. Weights and sums remain in float32."""
    generator: GeneratorChoice = GeneratorChoice()
    """Generator: `transformers`, `vllm` or `vllm_server`, with its settings. Default: `vllm` on a
    CUDA device if vLLM is installed and supports all agents and models, else `transformers`."""
    host: HostChoice = HostChoice()
    """Placement of models: `local` or `ray`, with its settings."""
    order: Literal["lockstep", "free"] = "lockstep"
    """Scheduling of episodes. `lockstep`: all episodes advance together, turn by turn, and results
    are reproducible bit for bit. `free`: episodes advance independently, so that a slow step or
    tool does not delay other episodes."""
    step_workers: int = Field(default=0, ge=0, le=1024)
    """Number of worker processes for `task.step`; 0: steps run in the main process."""
    trackers: tuple[Chosen, ...] = ()
    """Trackers, by name or as sections: `wandb`, `tensorboard`, or a tracker of another package."""
    callbacks: tuple[Chosen, ...] = ()
    """Callbacks, by name or as sections: `early_stopping`, `own_metric`, `samples`, or a custom
     `module:Class`."""
    checkpoint_every: int | None = Field(default=None, ge=1)
    """Number of iterations between checkpoints; None: by time only."""
    checkpoint_minutes: float | None = Field(default=10.0, gt=0)
    """Minutes between checkpoints, checked after each iteration; None: by iterations only. The best
    state, the last state and the state at an interruption are always saved."""
    restarts: int = Field(default=0, ge=0)
    """Maximum number of times that a run restarts automatically from its last complete iteration
    after losing a generation server or a worker process."""
    folders: tuple[str, ...] = ()
    """Folders in which the config's modules and relative paths are looked for, in order. Default:
    the folder of the config's file, then the current one. A run records them, so that it can be
    evaluated and exported from elsewhere."""
    accept_changes: bool = False
    """Whether to continue a run or a comparison although the code, data, models or programs that
    its config names have changed. Otherwise a change is an error. The record keeps what changed,
    and the report states it; a run's config does not keep this setting."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Number of most recent checkpoints to keep, in addition to the best one."""


_MOST = 10_000
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(max_length=_MOST)]


class CompareSettings(Section):
    algorithms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Algorithms to compare: maps the name of each algorithm to overrides (dotted keys) for this
    algorithm."""
    seeds: Seeds = (0, 1, 2)
    """Seeds of every algorithm."""
    workers: int = Field(default=1, ge=1, le=1024)
    """Number of parallel runs, one process each."""


def first_seeds(count: int, name: str) -> tuple[int, ...]:
    """Returns the seeds of a comparison whose settings give a number of seeds: 0 to `count` - 1.

    Errors: ConfigError for fewer than one seed or for more seeds than a comparison allows.
    """
    if not 1 <= count <= _MOST:
        raise ConfigError(
            f"{name} {count}: is how many seeds, 1 to {_MOST:,}; choose which with "
            f"compare.seeds=[{max(0, count)}]"
        )
    return tuple(range(count))


class TaskChoice(Named):
    """A task's `name` and its settings, or the name alone. The path of a YAML file with a graph
    selects the task `workflow` with this graph."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        section = {"name": value} if isinstance(value, str) else value
        name = section.get("name") if isinstance(section, dict) else None
        if not (isinstance(name, str) and name.endswith((".yaml", ".yml"))):
            return section
        if "graph" in section:
            raise ValueError(f"name and graph both name a file, {name} and {section['graph']}")
        return {**section, "name": "workflow", "graph": name}


class AlgorithmChoice(Named):
    name: str = "collm_cc"

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class Config(Section):
    """Settings of one run, or of a comparison of several runs."""

    @property
    def language_agents(self) -> dict[str, AgentSettings]:
        """Agents and players that a language model of this run plays, by name."""
        all_agents = {**self.agents, **self.players}
        return {name: settings for name, settings in all_agents.items() if settings.speaks}

    task: TaskChoice
    """The task's `name` and settings, or only the task's name, or the path of a YAML file with a
    graph."""
    wrapper: Chosen | None = None
    """A wrapper around the task. Wrappers replace decentralised execution: with `parallel`,
    `pipeline` or `discussion` the team follows a prompt-based protocol; with `single` one agent
    plays the task."""
    algorithm: AlgorithmChoice = AlgorithmChoice()
    """The algorithm's `name`, `discount`, and a section for each of its parts; or only its name."""
    base: str | dict[str, str] | None = None
    """Default path of all models and the critic; or several paths by name, from which a model
    selects one path as `base.NAME`."""
    models: dict[str, ModelSettings]
    """Physical models by name; `"*"` stands for one model per agent."""
    agents: dict[str, AgentSettings] = Field(default_factory=lambda: {EACH: AgentSettings()})
    """Settings of the task's agents, by agent; a cast may assign other players to the seats."""
    players: dict[str, AgentSettings] = Field(default_factory=dict)
    """Additional players without a seat: opponents or frozen partners that a cast can assign."""
    cast: Named = Named(name="own")
    """Assignment of players to seats: `own`, `swap`, `against` or `league`, with its settings."""
    critic: CriticSettings | None = None
    """The value model; required by algorithms with a critic."""
    placement: dict[str, Device] = Field(default_factory=dict)
    """Devices by model name, such as `{alice: cuda:0, critic: cuda:1}`. The name `critic` stands
    for every value model, and `critic-NAME` stands for one of several value models. Models on
    different devices are updated at the same time."""
    train: TrainSettings = TrainSettings()
    """Budget and batches of training."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """Schedule and settings of evaluations."""
    run: RunSettings = RunSettings()
    """Seed, devices, engines, trackers and checkpoints."""
    compare: CompareSettings = CompareSettings()
    """Algorithms and seeds of a comparison."""
