"""Typed settings of a run with every default; YAML overrides them.

    task:      {name: str_build, horizon: 2}
    algorithm: {name: collm_cc, discount: 1.0}
    models:    {"*": {path: Qwen/Qwen3-0.6B}}      # one model per agent, named after it
    agents:    {"*": {sampling: {max_tokens: 128}}}
    players:   {rival: {program: {name: legal}}}    # who may sit in a seat that is not its own
    critic:    {path: Qwen/Qwen3-0.6B}
    train:     {environment_steps: 4000}

Models are physical, agents logical; `agents.NAME.model` is the map phi between them. Several agents
may name one model (full sharing); models with the same path and LoRA share one frozen base.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    model_serializer,
    model_validator,
)

from colearn.anneal import left
from colearn.contract import Sampling

EACH = "*"
"""As a model's or an agent's name: the settings of everyone not named."""


def _device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|(cuda|xpu|npu|hpu)(:\d+)?", name):
        raise ValueError("no such device; use auto, cpu, cuda or cuda:1")
    return name


Device = Annotated[str, AfterValidator(_device)]


Decay = Annotated[float, Field(ge=0, lt=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class LoRASettings(_Settings):
    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    targets: str | list[str] = "all-linear"


class OptimizerSettings(_Settings):
    learning_rate: float = Field(default=5e-6, gt=0)
    head_learning_rate: float | None = Field(default=None, gt=0)
    """Of the value head alone, which starts from nothing; None: `learning_rate`."""
    weight_decay: float = Field(default=0.0, ge=0)
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    max_grad_norm: float = Field(default=1.0, gt=0, allow_inf_nan=True)
    """`.inf` clips nothing."""
    warmup_steps: int = Field(default=0, ge=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up: constant, or down to zero at the end of `train.environment_steps`."""


class ModelSettings(OptimizerSettings):
    path: str
    """A folder, a hub name, `base.NAME`, or `embedded` (`-tiny`, `-tiny-varied`, `-copy`,
    `-large`) for the small model made on this machine; `embedded:N` starts from other weights."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Compute type. Trained weights and optimiser state are float32 whatever it is."""
    lora: LoRASettings | None = None
    trained: bool = True
    """False: the model plays and never enters an update."""
    epochs: int | None = Field(default=None, ge=1)
    """Passes of this model over the iteration's experience; None goes with `train.epochs`."""
    minibatch: int | None = Field(default=None, ge=1)
    """Joint transitions per optimiser step of this model; None goes with `train.minibatch`."""
    device: Device | None = None
    """Where this model lives; None follows `run.device`."""


class SamplingSettings(_Settings):
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    max_tokens: int = Field(default=256, ge=1)
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()


class TemperatureAnneal(_Settings):
    """A training temperature that is held, then falls or rises on a straight line to the agent's
    own. `begin` and `end` are shares of `train.environment_steps`."""

    start: float = Field(ge=0.01)
    """Temperature of the first iteration, held until `begin`."""
    begin: float = Field(default=0.0, ge=0, lt=1)
    end: float = Field(default=1.0, gt=0, le=1)
    """Share after which it is `temperature`."""

    @model_validator(mode="after")
    def _in_order(self) -> TemperatureAnneal:
        if self.begin >= self.end:
            raise ValueError("begin must lie below end")
        return self


class TrainedSampling(SamplingSettings):
    """Sampling in a run. `temperature` is that of evaluation and deployment, and that of training
    unless `anneal` is set."""

    anneal: TemperatureAnneal | None = None

    @property
    def deployed(self) -> SamplingSettings:
        """What an exported agent is sampled with."""
        return SamplingSettings(**self.model_dump(exclude={"anneal"}, exclude_unset=True))

    def training_temperature(self, done: float) -> float:
        """The temperature of rollouts when the share `done` of the training budget is used."""
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


class Named(BaseModel):
    """`name` picks a registered class; the other keys are its own settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Chosen(Named):
    """`Named`, for which a plain text is the name of a part with its settings as they are."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @model_serializer
    def plain(self) -> str | dict[str, Any]:
        """As YAML holds it: the name alone where nothing else is set."""
        return {"name": self.name, **self.settings} if self.settings else self.name


class AgentSettings(_Settings):
    model: str = EACH
    """Name of the physical model that plays this agent; `*` is the one named after the agent."""
    program: Named | None = None
    """Code that plays it instead of a model: a registered name, or module:Class."""
    endpoint: str | None = None
    """The URL of an OpenAI-compatible server that plays it instead; `sampling` and `system` are
    sent with every request."""
    system: str | None = None
    """The role prompt, before everything else in the history."""
    chat: str = "auto"
    """`auto`: the tokenizer's chat template, `plain` where it has none; or a .jinja file."""
    template: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Arguments of the chat template, such as Qwen3's `enable_thinking: false`."""
    today: date = date(2024, 7, 26)
    """What a chat template is told that asks for the date, as Llama 3's do: a prompt must not
    change at midnight. The default is what those say themselves where there is no clock."""
    sampling: TrainedSampling = TrainedSampling()
    window: int | None = Field(default=None, ge=1)
    """C: keep the most recent C key/value pairs at the start of each turn; None keeps all."""

    @property
    def speaks(self) -> bool:
        """A language model of this run plays it."""
        return self.program is None and self.endpoint is None

    @property
    def chat_format(self) -> dict[str, Any]:
        """What `ChatFormat` takes beside a tokenizer."""
        return {name: getattr(self, name) for name in ("chat", "system", "template", "today")}

    @property
    def voice(self) -> dict[str, Any]:
        """What `Voice` takes beside what the model gives it."""
        drawn = self.sampling
        return {
            "sampling": Sampling(
                temperature=drawn.temperature,
                top_p=drawn.top_p,
                top_k=drawn.top_k,
                max_tokens=drawn.max_tokens,
                stop=drawn.stop,
            ),
            "window": self.window,
            "model": self.model,
            "training_temperature": drawn.training_temperature,
        }

    @property
    def request_fields(self) -> dict[str, Any]:
        """The fields of a chat completion for what is set; the server decides the rest.

        A run's config spells out everything, so its agents are sampled as in the run.
        """
        sampling = self.sampling.deployed
        fields = {name: getattr(sampling, name) for name in sorted(sampling.model_fields_set)}
        fields["stop"] = list(sampling.stop)
        return {name: value for name, value in fields.items() if value not in (None, [])}

    @model_validator(mode="after")
    def _one_player(self) -> AgentSettings:
        given = (self.model != EACH, self.program is not None, self.endpoint is not None)
        if sum(given) > 1:
            raise ValueError("set one of model, program and endpoint")
        if not self.speaks and self.sampling.anneal is not None:
            raise ValueError("sampling.anneal needs a model of this run; leave it out")
        return self


class CriticSettings(OptimizerSettings):
    learning_rate: float = Field(default=3e-6, gt=0)
    path: str | None = None
    share: str | None = None
    """Instead of `path`: `actor` puts the value head on each agent's own model."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    lora: LoRASettings | None = None
    device: Device | None = None
    max_length: int = Field(default=16384, ge=1)
    """Longest stream in tokens; a longer one is an error, never cut in silence."""
    readers: dict[str, str] = Field(default_factory=lambda: {EACH: EACH})
    """Which value model gives each reader's value; `*` as a reader is everyone not named, `*` as a
    model the one named after the reader. `{"*": team}` is one value model for all of them."""

    def value_model(self, reader: str) -> str:
        """The name of a reader's value model."""
        chosen = self.readers.get(reader, self.readers.get(EACH, EACH))
        return reader if chosen == EACH else chosen

    @model_validator(mode="after")
    def _one_source(self) -> CriticSettings:
        if (self.path is None) == (self.share is None):
            raise ValueError("set either path or share: actor")
        if self.share not in (None, "actor"):
            raise ValueError(f"share must be 'actor', got '{self.share}'")
        if self.share is not None and self.readers != {EACH: EACH}:
            raise ValueError("readers has no meaning with share; the heads sit on the actors")
        return self


class TrainSettings(_Settings):
    environment_steps: int = Field(default=4000, ge=1)
    """Joint actions executed in training: the budget at which algorithms are compared."""
    iterations: int | None = Field(default=None, ge=1)
    """At most so many iterations, which is how most papers count: where episodes end early, the
    joint actions of a budget make more of them. None: `environment_steps` alone decides."""
    episodes: int = Field(default=4, ge=1)
    """Items rolled out per iteration: the paper's buffer B."""
    epochs: int = Field(default=1, ge=1)
    """E: passes over the iteration's experience."""
    minibatch: int | None = Field(default=None, ge=1)
    """Joint transitions per optimiser step; None takes the whole iteration. Episodes stay whole."""
    target_kl: float | None = Field(default=None, gt=0)
    """No further epoch begins once an epoch has found a model, on average, this far from the policy
    that sampled: KL(policy at rollout || policy now) per token; 0.02 is usual."""
    token_budget: int = Field(default=16384, ge=1)
    """Padded tokens per micro-batch; it changes memory and speed, never the gradient."""


class HeadlineSettings(_Settings):
    metric: str
    """An evaluation metric: `return`, `turns` or one of the task's."""
    better: Literal["higher", "lower"] = "higher"


class EvaluationSettings(_Settings):
    every: int = Field(default=10, ge=1)
    """Iterations between evaluations; the first and the last state are always evaluated."""
    episodes: int | None = Field(default=None, ge=1)
    """Held-out items played; None plays the whole split once."""
    repeats: int = Field(default=1, ge=1)
    at_once: int | None = Field(default=None, ge=1)
    """Episodes played side by side; None plays all. 1 measures each response alone."""
    pass_at: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """The k of pass@k; an item needs at least k episodes (`repeats`)."""
    split: str = "test"
    greedy: bool = False
    exact: bool = False
    """On a finite task (`dpomdp`): also the exact value of the joint policy, `exact_return`."""
    headline: HeadlineSettings | None = None
    """The metric that the run is judged by, such as `{metric: nash_conv, better: lower}`; None
    takes the task's. The report and `--step best` follow it."""
    transcripts: int = Field(default=2, ge=0)
    """Episodes written out in full at each evaluation."""


class LearnerChoice(Chosen):
    name: str = "local"


class GeneratorChoice(Chosen):
    name: str = "transformers"


class HostChoice(Chosen):
    name: str = "local"


class RunSettings(_Settings):
    seed: int = 0
    device: Device = "auto"
    learner: LearnerChoice = LearnerChoice()
    """`local` or `deepspeed`, with its settings."""
    generator: GeneratorChoice = GeneratorChoice()
    """`transformers` or `vllm`, with its settings."""
    host: HostChoice = HostChoice()
    """Where models live: `local`, with its settings."""
    order: Literal["lockstep", "free"] = "lockstep"
    """How episodes advance: turn by turn together, bit for bit repeatable, or each on its own, so
    that a slow step or tool holds up nobody else."""
    step_workers: int = Field(default=0, ge=0)
    """Processes for `task.step`; 0 steps in this one."""
    trackers: tuple[Chosen, ...] = ()
    """Names, or sections with settings: `wandb`, `tensorboard`, one of another package."""
    checkpoint_every: int | None = Field(default=None, ge=1)
    """Iterations between checkpoints; None counts time alone."""
    checkpoint_minutes: float | None = Field(default=10.0, gt=0)
    """Minutes between checkpoints, from one end of an iteration to the next; None counts iterations
    alone. The best state, the last one and that of an interruption are kept in any case."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Newest ones; that of the best evaluation is kept beside them."""


class CompareSettings(_Settings):
    algorithms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Algorithm names, each with the settings (dotted keys) that differ for it."""
    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = Field(default=1, ge=1)
    """Runs side by side, each in a process of its own."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads per run; None divides the cores among the workers."""


class AlgorithmChoice(Named):
    name: str = "collm_cc"


class Config(_Settings):
    """One run, and how to compare several."""

    @property
    def voices(self) -> dict[str, AgentSettings]:
        """By name, the agents and players that a language model of this run plays."""
        everyone = {**self.agents, **self.players}
        return {name: settings for name, settings in everyone.items() if settings.speaks}

    task: Named
    wrapper: Chosen | None = None
    """Play the task by one of the prompt-based protocols (`parallel`, `pipeline`, `discussion`), or
    by one agent (`single`), instead of decentrally."""
    algorithm: AlgorithmChoice = AlgorithmChoice()
    base: str | dict[str, str] | None = None
    """The path of every model, and of the critic, that has none; or paths by name, for `path:
    base.NAME`."""
    models: dict[str, ModelSettings]
    agents: dict[str, AgentSettings] = Field(default_factory=lambda: {EACH: AgentSettings()})
    """By seat of the task: who plays it unless the cast says otherwise."""
    players: dict[str, AgentSettings] = Field(default_factory=dict)
    """Further players, who have no seat of their own: opponents, past selves, frozen partners."""
    cast: Named = Named(name="own")
    """Who sits in which seat: `own`, `swap`, `against` or `league`, with its settings."""
    critic: CriticSettings | None = None
    train: TrainSettings = TrainSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    run: RunSettings = RunSettings()
    compare: CompareSettings = CompareSettings()
