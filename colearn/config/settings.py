"""Typed settings of a run with every default; YAML overrides them.

    task:      {name: str_build, horizon: 2}
    algorithm: {name: collm_cc, discount: 1.0}
    models:    {"*": {path: Qwen/Qwen3-0.6B}}      # one model per agent, named after it
    agents:    {"*": {sampling: {max_tokens: 128}}}
    players:   {rival: {program: {name: legal}}}   # additional players, without a seat of their own
    critic:    {path: Qwen/Qwen3-0.6B}
    train:     {environment_steps: 4000}

Models are physical, agents logical; `agents.NAME.model` is the map phi between them. Several agents
may use one model (full sharing); models with the same path and LoRA share one frozen base.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from colearn.errors import ConfigError

from .agent_settings import AgentSettings
from .network_settings import CriticSettings, ModelSettings
from .section import EACH, Chosen, Device, Named, Section


class TrainSettings(Section):
    environment_steps: int = Field(default=4000, ge=1)
    """Training budget in joint actions, at which algorithms are compared."""
    iterations: int | None = Field(default=None, ge=1)
    """Maximum number of iterations, the usual budget in papers. If episodes end early, a budget in
    joint actions gives more iterations. None: `environment_steps` alone decides."""
    episodes: int = Field(default=4, ge=1, le=1_000_000)
    """Items rolled out per iteration: the paper's buffer B."""
    at_once: int | None = Field(default=None, ge=1)
    """Episodes rolled out in parallel, in each process; None: all of them. Affects memory and
    speed, not the experience."""
    epochs: int = Field(default=1, ge=1)
    """E: passes over the iteration's experience."""
    minibatch: int | None = Field(default=None, ge=1)
    """Joint transitions per optimiser step; None: the whole iteration. Episodes are not split."""
    target_kl: float | None = Field(default=None, gt=0)
    """Stop an iteration's epochs once an epoch's mean KL(policy at rollout || current policy) per
    token exceeds this; 0.02 is usual."""
    staleness: int = Field(default=0, ge=0)
    """S: iterations are rolled out while models update, with weights that are 1 to S updates old. 0
    rolls out between updates, with the newest weights."""
    token_budget: int = Field(default=2048, ge=1)
    """Padded tokens per micro-batch; affects memory and speed, not the gradient."""
    record: bool = False
    """Write the texts and rewards of all training episodes to trees.jsonl, from which
    `colearn critic fit` trains a critic."""


class HeadlineSettings(Section):
    metric: str
    """An evaluation metric: `return`, `turns` or a metric of the task."""
    better: Literal["higher", "lower"] = "higher"
    """Direction in which the metric improves."""


class EvaluationSettings(Section):
    every: int = Field(default=10, ge=1)
    """Iterations between evaluations; the first and the last state are always evaluated."""
    episodes: int | None = Field(default=None, ge=1, le=1_000_000)
    """Held-out items per evaluation; None: the whole split once."""
    repeats: int = Field(default=1, ge=1, le=1_000_000)
    """Episodes per item."""
    at_once: int | None = Field(default=None, ge=1)
    """Episodes in parallel, in each process; None: all. Fewer need less memory, and 1 measures each
    response time alone."""
    pass_at: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """The k of pass@k; an item needs at least k episodes (`repeats`)."""
    split: str = "test"
    """Split of the task's items that is evaluated: `train` or `test`."""
    greedy: bool = False
    """Decodes greedily instead of sampling."""
    exact: bool = False
    """On a finite task (`dpomdp`): also report the joint policy's exact value, `exact_return`."""
    headline: HeadlineSettings | None = None
    """The metric by which runs are compared, such as `{metric: nash_conv, better: lower}`; None:
    the task's. The report and `--step best` use it."""
    transcripts: int = Field(default=2, ge=0)
    """Episodes recorded in full at each evaluation."""


class LearnerChoice(Chosen):
    name: str = "local"


class GeneratorChoice(Chosen):
    name: str = "transformers"


class HostChoice(Chosen):
    name: str = "local"


class RunSettings(Section):
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Seed of every random number of the run."""
    device: Device = "auto"
    """Device of all models: `auto`, `cpu`, `mps`, `cuda`, `cuda:1`; xpu, npu and hpu work in the
    same way."""
    learner: LearnerChoice = LearnerChoice()
    """`local` or `deepspeed`, with its settings."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """CPU threads of torch. None: 1 if every model has fewer than four million parameters, else all
    cores, which a comparison divides among its `compare.workers`."""
    tf32: bool = True
    """On CUDA devices, products in float32 round their inputs to TF32, 10 bits after the point: at
    half the rate of bfloat16 instead of a 15th. Weights and sums stay float32."""
    generator: GeneratorChoice = GeneratorChoice()
    """`transformers` or `vllm`, with its settings. Unless set, it is `vllm` on a CUDA device with
    vLLM's package, if agents and models ask nothing that its engine lacks."""
    host: HostChoice = HostChoice()
    """Placement of models: `local` or `ray`, with its settings."""
    order: Literal["lockstep", "free"] = "lockstep"
    """Episode scheduling. `lockstep`: turn by turn together, reproducible bit for bit. `free`:
    independently, so that a slow step or tool does not delay other episodes."""
    step_workers: int = Field(default=0, ge=0, le=1024)
    """Worker processes for `task.step`; 0: step in the main process."""
    trackers: tuple[Chosen, ...] = ()
    """Trackers, by name or as sections: `wandb`, `trackio`, `tensorboard`, `csv`, or another
    package's."""
    callbacks: tuple[Chosen, ...] = ()
    """Callbacks, as sections: `early_stopping`, `own_metric`, `samples`, `push_to_hub`, or a
    `module:Class` of one's own."""
    checkpoint_every: int | None = Field(default=None, ge=1)
    """Iterations between checkpoints; None: by time only."""
    checkpoint_minutes: float | None = Field(default=10.0, gt=0)
    """Minutes between checkpoints, checked after each iteration; None: by iterations only. The
    best, the last and an interrupted state are always saved."""
    restarts: int = Field(default=0, ge=0)
    """How often a run continues automatically from its last complete iteration after a generation
    server or a worker process was lost."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Number of newest checkpoints to keep, in addition to the best."""


_MOST = 10_000
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**63)], ...], Field(max_length=_MOST)]


class CompareSettings(Section):
    algorithms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Algorithm names, each with its own overrides (dotted keys)."""
    seeds: Seeds = (0, 1, 2)
    """Seeds of every algorithm."""
    workers: int = Field(default=1, ge=1, le=1024)
    """Number of parallel runs, one process each."""


def first_seeds(count: int, name: str) -> tuple[int, ...]:
    """The seeds of a comparison that says how many: 0 to `count` - 1.

    Errors: ConfigError for fewer than one and for more than a comparison can have.
    """
    if not 1 <= count <= _MOST:
        raise ConfigError(
            f"{name} {count}: is how many seeds, 1 to {_MOST:,}; choose which with "
            f"compare.seeds=[{max(0, count)}]"
        )
    return tuple(range(count))


class TaskChoice(Named):
    """A task's `name` and its settings, or the name alone. The path of a graph's YAML file selects
    the task `workflow` with this graph."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        section = {"name": given} if isinstance(given, str) else given
        name = section.get("name") if isinstance(section, dict) else None
        if not (isinstance(name, str) and name.endswith((".yaml", ".yml"))):
            return section
        if "graph" in section:
            raise ValueError(f"name and graph both name a file, {name} and {section['graph']}")
        return {**section, "name": "workflow", "graph": name}


class AlgorithmChoice(Named):
    name: str = "collm_cc"


class Config(Section):
    """Settings of one run, and of a comparison of several."""

    @property
    def language_agents(self) -> dict[str, AgentSettings]:
        """Agents and players that a language model of this run plays, by name."""
        everyone = {**self.agents, **self.players}
        return {name: settings for name, settings in everyone.items() if settings.speaks}

    task: TaskChoice
    """The task's `name` and its settings; or its name alone, or the path of a graph's YAML file."""
    wrapper: Chosen | None = None
    """Play the task with a prompt-based protocol (`parallel`, `pipeline`, `discussion`) or with one
    agent (`single`) instead of decentralised execution."""
    algorithm: AlgorithmChoice = AlgorithmChoice()
    """The algorithm's `name`, `discount`, and a section for each of its parts."""
    base: str | dict[str, str] | None = None
    """Default path of models and the critic; or paths by name, for `path: base.NAME`."""
    models: dict[str, ModelSettings]
    """Physical models by name; `"*"` is one model per agent."""
    agents: dict[str, AgentSettings] = Field(default_factory=lambda: {EACH: AgentSettings()})
    """Settings by the task's agents; a cast may seat other players."""
    players: dict[str, AgentSettings] = Field(default_factory=dict)
    """Additional players without a seat: opponents or frozen partners that a cast can assign."""
    cast: Named = Named(name="own")
    """Assignment of players to seats: `own`, `swap`, `against` or `league`, with its settings."""
    critic: CriticSettings | None = None
    """The value model; required by algorithms with a critic."""
    placement: dict[str, Device] = Field(default_factory=dict)
    """Devices by model name, such as `{alice: cuda:0, critic: cuda:1}`: `critic` is every value
    model, `critic-NAME` one of several. Models on different devices update at the same time."""
    train: TrainSettings = TrainSettings()
    """Budget and batches of training."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """When and how the team is evaluated."""
    run: RunSettings = RunSettings()
    """Seed, devices, engines, trackers and checkpoints."""
    compare: CompareSettings = CompareSettings()
    """Algorithms and seeds of a comparison."""
