"""The folder of a kept critic: weights as a classifier with one label, value head, critic.json."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from colearn.config import Named
from colearn.config.parts import build_part, part_name
from colearn.contract import Critic
from colearn.errors import ConfigError, reason_of
from colearn.text.masking import masked_settings

from .load import DTYPES
from .merging import merged
from .network import Network
from .value_head import ValueHead

CRITIC, HEAD = "critic.json", "value_head.safetensors"

_AGAIN = "export it again with: colearn export RUN --critics --to DIR"


class TurnWorth(BaseModel):
    """A critic's explained variance at one turn, on episodes that it was not trained on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: int
    values: int
    """Number of values compared with a return."""
    explained_variance: float | None
    """1 - Var(G - V) / Var(G), which ignores a constant bias; None where returns are equal."""
    r2: float | None
    """1 - mean (G - V)^2 / Var(G)."""


class CriticManifest(BaseModel):
    """`critic.json`: what a kept critic reads, and the scale of what it says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    value_model: str
    critic: str
    """Name of the part that makes its input."""
    reads: dict[str, Any] = {}
    """Settings of that part: kind of values, m_t, privileged information."""
    agents: tuple[str, ...]
    """The team, in the task's order."""
    readers: dict[str, tuple[str, ...]]
    """The readers of this value model, each with the agents that it values."""
    horizon: int | None = None
    """The task's turns, at most."""
    task: str
    task_settings: Annotated[dict[str, Any], AfterValidator(masked_settings)] = {}
    algorithm: str
    credit: str | dict[str, Any] = "team"
    """The rewards that its returns add up."""
    discount: float = 1.0
    """gamma, between turns."""
    centre: float
    """Of the returns that it was trained on."""
    deviation: float = Field(gt=0)
    bias: float
    """A value is centre + deviation * (logit + bias), plus the mean of `item_means`, if any."""
    item_means: dict[str, tuple[float, float]] = {}
    """Weighted sum and weight of the returns by reader and turn, and by reader, turn and item
    (`ItemMeans.state`), of a critic with `critic.baseline: item`."""
    observations: int = Field(default=0, ge=0)
    """Iterations whose returns have set centre and deviation."""
    max_length: int
    """Maximum length of a stream in tokens."""
    joint_actions: int = Field(ge=0)
    """Joint actions that it was trained on."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    weights: Literal["merged", "adapter"] = "merged"
    base: str | None = None
    """Path or hub name of the base model, where `weights` is an adapter on it."""
    explained: tuple[TurnWorth, ...] = ()
    """By turn, on held-out episodes of the team that it was trained beside."""

    @property
    def part(self) -> Critic:
        """The part that makes its input. Errors: ConfigError for one that is not installed."""
        part: Critic = build_part(Critic, Named(name=self.critic, **self.reads), CRITIC)
        return part

    def write(self, folder: Path) -> None:
        (folder / CRITIC).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def named_part(part: object) -> tuple[str, dict[str, Any]]:
    """The name of a part in a config, and all of its settings."""
    name = part_name(part)
    assert name is not None, "every part has a name"
    settings = {
        field.name: getattr(part, field.name)
        for field in fields(part)  # type: ignore[arg-type] # every part is a dataclass
        if field.init
    }
    return name, settings


def is_critic(path: str | Path) -> bool:
    """Whether a path is the folder of a kept critic."""
    return (Path(path) / CRITIC).is_file()


def read_critic(folder: Path, field: str) -> CriticManifest:
    """The manifest of a kept critic.

    Errors: ConfigError naming `field`, one line, where `folder` is none or the file is damaged.
    """
    path = folder / CRITIC
    if not path.is_file():
        raise ConfigError(f"{field}: no critic in {folder} (no {CRITIC}); {_AGAIN}")
    try:
        return CriticManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{field}: {path}: {where}: {first['msg']}; {_AGAIN}") from None


def head_numbers(head: ValueHead) -> dict[str, Any]:
    """The fields of a manifest that a value head decides."""
    centre, deviation, observations = head.scale.tolist()
    return {
        "centre": centre,
        "deviation": deviation,
        "observations": int(observations),
        "bias": head.linear.bias.item(),
    }


def save_critic(
    network: Network, folder: Path, *, dtype: str, base: str | None, pad: int | None
) -> None:
    """Write a critic's weights for transformers' classifiers with one label, or for peft on `base`.

    `network` is used up. `pad` is the tokenizer's padding: the label is read at the last token that
    is not `pad`. Errors: ConfigError for an architecture without such a classifier.
    """
    assert network.head is not None, "a critic has a value head"
    head = network.head
    save_file(
        {name: tensor.detach().cpu().contiguous() for name, tensor in head.state_dict().items()},
        folder / HEAD,
    )
    score = head.linear.weight.detach().cpu().clone()
    if base is not None:
        _save_adapter(network, folder, base, score)
        return
    causal: Any = network.base.causal.float()
    if network.adapter is not None:
        causal = merged(network.base.model, network.adapter)
    config = copy.deepcopy(causal.config)
    config.num_labels, config.pad_token_id = 1, pad
    model = _classifier(config)
    setattr(model, model.base_model_prefix, causal.base_model)
    model.score = nn.Linear(score.shape[1], 1, bias=False)
    model.score.weight = nn.Parameter(score)
    model.to(DTYPES[dtype]).save_pretrained(folder)


def load_head(folder: Path, head: ValueHead, field: str) -> None:
    """Copy the value head of a kept critic into `head`.

    Errors: ConfigError naming `field` for a damaged file, or a head of another width.
    """
    path = folder / HEAD
    try:
        head.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ConfigError(f"{field}: {path}: {reason_of(error)}; {_AGAIN}") from None


def _classifier(config: Any) -> Any:
    """An empty classifier of the architecture, without memory for its weights."""
    from transformers import AutoModelForSequenceClassification

    try:
        with torch.device("meta"):
            model: Any = AutoModelForSequenceClassification.from_config(config)
    except ValueError:
        model = None
    if model is None or not isinstance(getattr(model, "score", None), nn.Linear):
        raise ConfigError(
            f"--critics: transformers has no classifier with one label for {config.model_type}; "
            "export the adapter (--adapter), or train the critic on another architecture"
        )
    return model


def _save_adapter(network: Network, folder: Path, base: str, score: torch.Tensor) -> None:
    """adapter_config.json, which names `base`, and adapter_model.safetensors, in float32."""
    from peft import get_peft_model_state_dict

    assert network.adapter is not None, "checked before"
    model = network.base.model
    weights: Mapping[str, torch.Tensor] = get_peft_model_state_dict(
        model, adapter_name=network.adapter, save_embedding_layers=False
    )
    config = copy.deepcopy(model.peft_config[network.adapter])
    config.base_model_name_or_path, config.inference_mode = base, True
    config.task_type, config.modules_to_save = "SEQ_CLS", ["score"]
    if not isinstance(config.target_modules, str):
        config.target_modules = sorted(config.target_modules)
    config.save_pretrained(folder)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    save_file(
        {**tensors, "base_model.model.score.weight": score},
        folder / "adapter_model.safetensors",
        metadata={"format": "pt"},
    )
