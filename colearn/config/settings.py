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

from colearn.contract import Sampling
from colearn.contract.anneal import left

from .seeds import Seeds

EACH = "*"
"""As a model's or agent's name: default settings of all that are not named."""


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
    rank: int = Field(default=16, ge=1, le=65_536)
    """Rank of the adapter."""
    alpha: float = Field(default=32.0, gt=0)
    """Scale of the adapter: its output is multiplied by alpha / rank."""
    targets: str | list[str] = "all-linear"
    """Layers with an adapter: peft's `all-linear`, a list of names, or a pattern (a regular
    expression) that the whole names match. `embed_tokens` and `lm_head` may be among them."""


class OptimizerSettings(_Settings):
    learning_rate: float = Field(default=5e-6, gt=0, le=1000.0)
    """Learning rate of AdamW after the warm-up."""
    head_learning_rate: float | None = Field(default=None, gt=0, le=1000.0)
    """Learning rate of the value head, which starts untrained; None: `learning_rate`."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay of AdamW."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay rates of AdamW's moments."""
    max_grad_norm: float = Field(default=1.0, gt=0, allow_inf_nan=True)
    """Gradient norm limit; `.inf` disables clipping."""
    warmup_steps: int = Field(default=0, ge=0)
    """Optimiser steps in which the learning rate rises linearly from 0."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """After the warm-up: constant, or decay to zero at the end of `train.environment_steps`."""


class TrainedNetworkSettings(OptimizerSettings):
    checkpointing: bool = False
    """Activation checkpointing: an update keeps the inputs of layers only and computes the rest
    again in backward. Same gradients in about a third more time, for much less memory."""


class ModelSettings(TrainedNetworkSettings):
    path: str
    """A folder, a hub name, `base.NAME`, or `embedded` (`-tiny`, `-tiny-varied`, `-copy`,
    `-large`) for the small model built on this machine; `embedded:N` uses initial weights N."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Compute type; float16 is for models that are not trained. Trained weights and optimiser state
    are always float32."""
    lora: LoRASettings | None = None
    """Low-rank adapter on a frozen base; None trains all weights."""
    quantization: Literal["nf4"] | None = None
    """Storage of a frozen base in 4 bits (QLoRA), by bitsandbytes; None keeps `dtype`."""
    trained: bool = True
    """False: the model acts but is never updated."""
    epochs: int | None = Field(default=None, ge=1)
    """Passes of this model over the iteration's experience; None: `train.epochs`."""
    minibatch: int | None = Field(default=None, ge=1)
    """Joint transitions per optimiser step of this model; None: `train.minibatch`."""
    device: Device | None = None
    """Device of this model; None: `run.device`."""


class SamplingSettings(_Settings):
    temperature: float = Field(default=1.0, ge=0)
    """Sampling temperature; 0 decodes greedily."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus: samples from the likeliest tokens with this total probability."""
    top_k: int | None = Field(default=None, ge=1, le=10_000_000)
    """Samples from the k likeliest tokens; None: from all."""
    max_tokens: int = Field(default=256, ge=1, le=10_000_000)
    """Token limit of one answer."""
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Texts that end an answer; the text stays in the answer."""


class TemperatureAnneal(_Settings):
    """A training temperature that is constant until `begin` and then anneals linearly to the
    agent's `temperature` at `end`, both fractions of `train.environment_steps`."""

    start: float = Field(ge=0.01)
    """Temperature up to `begin`."""
    begin: float = Field(default=0.0, ge=0, lt=1)
    """Share of the budget at which the change begins."""
    end: float = Field(default=1.0, gt=0, le=1)
    """Fraction of the budget from which on it is `temperature`."""

    @model_validator(mode="after")
    def _in_order(self) -> TemperatureAnneal:
        if self.begin >= self.end:
            raise ValueError("begin must lie below end")
        return self


class TrainedSampling(SamplingSettings):
    """Sampling in a run. `temperature` applies to evaluation and deployment, and to training unless
    `anneal` is set."""

    anneal: TemperatureAnneal | None = None
    """Schedule of the training temperature; None: constant."""

    @property
    def deployed(self) -> SamplingSettings:
        """Sampling settings of an exported agent."""
        return SamplingSettings(**self.model_dump(exclude={"anneal"}, exclude_unset=True))

    def training_temperature(self, done: float) -> float:
        """Rollout temperature after the fraction `done` of the training budget."""
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
    """`name` selects a registered class; the other keys are its settings."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


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


class Chosen(Named):
    """`Named` that may be a plain string: the name of a part with default settings."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @model_serializer
    def plain(self) -> str | dict[str, Any]:
        """The YAML form: the name alone if nothing else is set."""
        return {"name": self.name, **self.settings} if self.settings else self.name


class AgentSettings(_Settings):
    model: str = EACH
    """Name of this agent's physical model; `*`: the model named after the agent."""
    program: Named | None = None
    """A program that plays it instead of a model: a registered name, or module:Class."""
    endpoint: str | None = None
    """URL of an OpenAI-compatible server that plays it instead; every request includes `sampling`
    and `system`."""
    system: str | None = None
    """System prompt, at the start of the history."""
    chat: str = "auto"
    """`auto`: the tokenizer's chat template, or `plain` without one; or a .jinja file."""
    template: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Arguments of the chat template, such as Qwen3's `enable_thinking: false`."""
    today: date = date(2024, 7, 26)
    """The date for chat templates that include one, such as Llama 3's, so that prompts do not
    change at midnight. The default is the one in those templates."""
    sampling: TrainedSampling = TrainedSampling()
    """How answers are sampled."""
    window: int | None = Field(default=None, ge=1)
    """C: keep the most recent C KV-cache positions at the start of each turn; None keeps all."""
    overflow: Literal["truncate", "error"] = "truncate"
    """A history that leaves no room for an answer in its model ends the episode (`truncate`; the
    metric `overflow` counts them) or the run (`error`). A window does not shorten a history."""

    @property
    def speaks(self) -> bool:
        """Whether a language model of this run plays it."""
        return self.program is None and self.endpoint is None

    @property
    def chat_format(self) -> dict[str, Any]:
        """Arguments of `ChatFormat`, except the tokenizer."""
        return {name: getattr(self, name) for name in ("chat", "system", "template", "today")}

    @property
    def spec_fields(self) -> dict[str, Any]:
        """Arguments of `AgentSpec` that do not depend on the model."""
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
        """Request fields of a chat completion for the settings that are set; the server decides the
        rest.

        A run's recorded config sets all of them, so its agents sample as in the run.
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


class CriticSettings(TrainedNetworkSettings):
    learning_rate: float = Field(default=3e-6, gt=0, le=1000.0)
    """Learning rate of AdamW after the warm-up."""
    model_config = ConfigDict(serialize_by_alias=True)

    path: str | None = None
    """The value model, named as in `models.NAME.path`."""
    share: str | None = None
    """Instead of `path`: `actor` adds a value head to each agent's own model."""
    from_: str | None = Field(default=None, alias="from")
    """A critic to start from, which replaces `path`. The folder that `colearn export --critics` or
    `colearn critic fit` wrote, a hub's repository, or the folder of a run that has a critic."""
    frozen: float = Field(default=0.0, ge=0, le=1)
    """Share of `train.environment_steps` in which a given critic keeps its weights: 1 freezes it, 0
    trains it from the start."""
    foreign: bool = False
    """Accept a given critic of another task, team or horizon."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Compute type; the value head, trained weights and optimiser state are float32."""
    lora: LoRASettings | None = None
    """Low-rank adapter on a frozen base; None trains all weights."""
    quantization: Literal["nf4"] | None = None
    """Storage of a frozen base in 4 bits (QLoRA), by bitsandbytes; None keeps `dtype`."""
    device: Device | None = None
    """Device of the value models; None follows `run.device`."""
    devices: dict[str, Device] = Field(default_factory=dict)
    """Devices by value model, where they differ; the others are on `device`."""
    max_length: int = Field(default=16384, ge=1)
    """Maximum length of a stream in tokens; a longer stream is an error, and so is one that is
    longer than the model reads."""
    epochs: int | None = Field(default=None, ge=1)
    """Passes of the critic over the iteration's experience; None: `train.epochs`."""
    minibatch: int | None = Field(default=None, ge=1)
    """Joint transitions per optimiser step of the critic; None: `train.minibatch`."""
    baseline: Literal["none", "item"] | None = None
    """`item`: the value is a running mean of returns by item and turn, without the episode's own
    return, plus the network's estimate of the residual. An item that has not come up before has the
    mean of the turn. None: `none`; a given critic has its own."""
    head: Literal["trained", "ridge"] = "trained"
    """`ridge`: the language model keeps its weights, and each update solves the value head in
    closed form, by ridge regression on the hidden states. It costs a forward pass."""
    replay: int = Field(default=1, ge=1)
    """Number of updates whose experience `head: ridge` fits, the newest one included. The returns
    of those before it are off-policy: earlier policies earned them."""
    warmup_iterations: int = Field(default=0, ge=0)
    """Iterations at the start that train the critic alone; the actors keep their weights."""
    readers: dict[str, str] = Field(default_factory=lambda: {EACH: EACH})
    """Value model by reader. `*` as a reader stands for all agents that are not named. `*` as a
    model stands for the model named after the reader. `{"*": team}` is one value model for all
    readers."""

    @property
    def item_baseline(self) -> bool:
        """Whether means by item and turn are part of its values."""
        return self.baseline == "item"

    def longest_stream(self, architecture: Any) -> int:
        """`max_length`, or what a model of this transformers config reads if that is less."""
        text = architecture.get_text_config()
        positions: int | None = getattr(text, "max_position_embeddings", None)
        return self.max_length if positions is None else min(self.max_length, positions)

    def value_model(self, reader: str) -> str:
        """The name of a reader's value model."""
        chosen = self.readers.get(reader, self.readers.get(EACH, EACH))
        return reader if chosen == EACH else chosen

    @model_validator(mode="after")
    def _one_source(self) -> CriticSettings:
        if (self.path is None and self.from_ is None) == (self.share is None):
            raise ValueError("set either path or share: actor, or from")
        if self.from_ is None and (self.frozen or self.foreign):
            raise ValueError("frozen and foreign describe a given critic; set from, or leave them")
        solved = self.head == "ridge"
        needs_own_critic = self.epochs or self.minibatch or self.baseline or solved
        if self.share is not None and needs_own_critic:
            raise ValueError(
                "epochs, minibatch, baseline and head need a critic of its own; set path, not share"
            )
        if solved and (self.epochs or self.minibatch or self.lora is not None):
            raise ValueError(
                "head: ridge is solved once an update and trains nothing else; leave epochs, "
                "minibatch and lora out"
            )
        if self.replay > 1 and not solved:
            raise ValueError("replay is for a head that is solved; set head: ridge, or leave it")
        if self.from_ is not None and self.baseline is not None:
            raise ValueError("a given critic has its own baseline; leave baseline out, or from")
        if self.frozen and self.warmup_iterations:
            raise ValueError("a frozen critic has no iterations alone; leave warmup_iterations out")
        if self.share not in (None, "actor"):
            raise ValueError(f"share must be 'actor', got '{self.share}'")
        if self.share is not None and self.readers != {EACH: EACH}:
            raise ValueError("readers has no meaning with share; the heads sit on the actors")
        if self.share is not None and self.warmup_iterations:
            raise ValueError("warmup_iterations needs a critic of its own; set path, not share")
        return self


class TrainSettings(_Settings):
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


class HeadlineSettings(_Settings):
    metric: str
    """An evaluation metric: `return`, `turns` or a metric of the task."""
    better: Literal["higher", "lower"] = "higher"
    """Direction in which the metric improves."""


class EvaluationSettings(_Settings):
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


class RunSettings(_Settings):
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


class CompareSettings(_Settings):
    algorithms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Algorithm names, each with its own overrides (dotted keys)."""
    seeds: Seeds = (0, 1, 2)
    """Seeds of every algorithm."""
    workers: int = Field(default=1, ge=1, le=1024)
    """Number of parallel runs, one process each."""


class AlgorithmChoice(Named):
    name: str = "collm_cc"


class Config(_Settings):
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
