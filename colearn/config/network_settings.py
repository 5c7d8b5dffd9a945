"""Settings of the networks: the agents' models and the critic's models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from colearn.contract.rotary import steady_positions

from .strict_section import EACH, Section

Decay = Annotated[float, Field(ge=0, lt=1)]


class LoRASettings(Section):
    rank: int = Field(default=16, ge=1, le=65_536)
    """Rank of the adapter."""
    alpha: float = Field(default=32.0, gt=0)
    """Scale of the adapter: its output is multiplied by alpha / rank."""
    targets: str | list[str] = "all-linear"
    """Layers with an adapter: peft's `all-linear`, a list of layer names, or a regular expression
    that must match a layer's full name. `embed_tokens` and `lm_head` are allowed."""


class OptimizerSettings(Section):
    learning_rate: float = Field(default=5e-6, gt=0, le=1000.0)
    """Learning rate of AdamW after the warm-up."""
    head_learning_rate: float | None = Field(default=None, gt=0, le=1000.0)
    """Learning rate of the value head, which starts untrained; None: `learning_rate`."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay of AdamW."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay rates of AdamW's moments."""
    max_grad_norm: float = Field(default=1.0, gt=0, allow_inf_nan=True)
    """Maximum gradient norm; `.inf` disables clipping."""
    warmup_steps: int = Field(default=0, ge=0)
    """Number of optimiser steps over which the learning rate increases linearly from 0."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after the warm-up: constant, or linear or cosine decay to zero at the end of
    `train.environment_steps`."""


class TrainedNetworkSettings(OptimizerSettings):
    checkpointing: bool = False
    """Activation checkpointing: the forward pass saves only the inputs of layers, and the backward
    pass recomputes the other activations. The gradients are the same; an update takes about a third
    more time and much less memory."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Compute type; float16 is only for models that are not trained. Trained weights, value heads
    and optimiser state are always float32."""
    lora: LoRASettings | None = None
    """Low-rank adapter on a frozen base; None trains all weights."""
    quantization: Literal["nf4"] | None = None
    """4-bit quantization of a frozen base (QLoRA), by bitsandbytes; None: stored in `dtype`."""


class ModelSettings(TrainedNetworkSettings):
    path: str
    """A folder, a hub name, or `base.NAME`; or `embedded`, optionally with the suffix `-tiny`,
    `-tiny-varied`, `-copy` or `-large`, for a small model that is built locally. `embedded:N`
    selects the N-th initial weights."""
    trained: bool = True
    """False: the model acts but is never updated."""
    teacher: str | None = None
    """Path of a model of the same tokenizer, in the form of `path`, that `algorithm.loss.teacher`
    distils into this model; or the URL of a vLLM server of such a model."""


class CriticSettings(TrainedNetworkSettings):
    learning_rate: float = Field(default=3e-6, gt=0, le=1000.0)
    """Learning rate of AdamW after the warm-up."""
    model_config = ConfigDict(serialize_by_alias=True)

    path: str | None = None
    """Path of the value model, in the form of `models.NAME.path`."""
    share: str | None = None
    """Replaces `path`: `actor` adds a value head to the model of each agent. The heads are trained
    with the settings of `models`, such as `models.NAME.head_learning_rate`."""
    from_: str | None = Field(default=None, alias="from")
    """The critic with which training starts; replaces `path`. The value is a folder written by
    `colearn export --critics` or `colearn critic fit`, or a hub repository."""
    frozen: float = Field(default=0.0, ge=0, le=1)
    """Fraction of `train.environment_steps` during which the critic given by `from` is frozen: with
    1, this critic is never trained; with 0, it is trained from the start."""
    foreign: bool = False
    """Whether to accept a critic in `from` that was trained for another task, team or horizon."""
    max_length: int = Field(default=16384, ge=1)
    """Maximum length of the value model's input in tokens. An input that exceeds this limit, or the
    model's context, raises an error."""
    baseline: Literal["none", "item"] | None = None
    """`item`: the value is the sum of two terms. The first term is a running mean of returns by
    item and turn, which excludes the current episode's return. For a new item, the first term is
    the mean over all items at that turn. The second term is the network's estimate of the residual,
    multiplied by the share that best predicted the returns of new episodes. `none`: the value is
    the network's output, as in the papers. None: the baseline of the critic given by `from`;
    without `from`, `item` for a critic with `path` that estimates V of a history as a mean, and
    `none` for Q, counterfactual Q, values before tokens, expectiles other than 1/2 and `share`."""
    epochs: int | None = Field(default=None, ge=1)
    """Number of passes of the critic over the iteration's experience; None: `train.epochs`."""
    minibatch: int | None = Field(default=None, ge=1)
    """Size of an optimiser step's data for the critic, in units of `train.minibatch_unit`; None:
    `train.minibatch`."""
    head: Literal["trained", "ridge"] = "trained"
    """`ridge`: the language model is frozen, and each update solves the value head in closed form
    by ridge regression on the hidden states, at the cost of one forward pass."""
    replay: int = Field(default=1, ge=1)
    """Number of most recent updates, including the current update, whose experience `head: ridge`
    fits. Returns of previous updates are off-policy, because earlier policies earned them."""
    warmup_iterations: int = Field(default=0, ge=0)
    """Number of initial iterations that train only the critic; the actors keep their weights."""
    readers: dict[str, str] = Field(default_factory=lambda: {EACH: EACH})
    """Maps a critic's readers to the names of their value models. A reader estimates the values of
    one agent or of all agents: a centralised critic has one reader, `team`; a decentralised critic
    has one reader per agent. The reader `*` stands for all readers that are not named. The model
    `*` stands for a model with the reader's name. `{"*": team}` uses one value model, `team`, for
    all readers."""

    @property
    def item_baseline(self) -> bool:
        """Whether the critic's values include means by item and turn."""
        return self.baseline == "item"

    @property
    def own_schedule(self) -> bool:
        """Whether the critic has other epochs or minibatches than the actors, and is trained before
        them."""
        return self.head == "ridge" or self.epochs is not None or self.minibatch is not None

    def longest_stream(self, architecture: Any) -> int:
        """`max_length`, or the number of positions of a model with this transformers config if that
        is smaller."""
        positions = steady_positions(architecture.get_text_config())
        return self.max_length if positions is None else min(self.max_length, positions)

    def value_model(self, reader: str) -> str:
        """The name of the value model of `reader`."""
        chosen = self.readers.get(reader, self.readers.get(EACH, EACH))
        return reader if chosen == EACH else chosen

    @model_validator(mode="after")
    def _one_source(self) -> CriticSettings:
        if (self.path is None and self.from_ is None) == (self.share is None):
            raise ValueError("set either path or share: actor, or from")
        if self.from_ is None and (self.frozen or self.foreign):
            raise ValueError("frozen and foreign describe a given critic; set from, or leave them")
        solved = self.head == "ridge"
        if solved and (self.epochs or self.minibatch or self.lora is not None):
            raise ValueError(
                "head: ridge is solved once an update and trains nothing else; leave epochs, "
                "minibatch and lora out"
            )
        if self.replay > 1 and not solved:
            raise ValueError("replay is for a head that is solved; set head: ridge, or leave it")
        if self.frozen and self.warmup_iterations:
            raise ValueError("a frozen critic has no iterations alone; leave warmup_iterations out")
        if self.share not in (None, "actor"):
            raise ValueError(f"share must be 'actor', got '{self.share}'")
        for name, field in type(self).model_fields.items() if self.share is not None else ():
            value, usual = getattr(self, name), field.get_default(call_default_factory=True)
            if name != "share" and value != usual and (name, value) != ("baseline", "none"):
                raise ValueError(
                    f"{name} needs a critic of its own; set path, not share: value heads on the "
                    "actors have the settings of models"
                )
        return self
