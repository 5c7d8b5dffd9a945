"""Reads and writes the folder of a saved critic: weights as a one-label classifier, the value head,
and critic.json."""

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
from .network import Network, ValueHead
from .saved_folder import save_model

CRITIC, HEAD = "critic.json", "value_head.safetensors"

_AGAIN = "export it again with: colearn export RUN --critics --to DIR"


class TurnWorth(BaseModel):
    """Explained variance of a critic at one turn, on held-out episodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: int
    values: int
    """Number of values that were compared with a return."""
    explained_variance: float | None
    """Explained variance 1 - Var(G - V) / Var(G), which does not depend on a constant bias of V;
    None if all returns are equal."""
    r2: float | None
    """1 - mean (G - V)^2 / Var(G)."""


class CriticManifest(BaseModel):
    """`critic.json`: the inputs of a saved critic and the scale of its values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    value_model: str
    critic: str
    """Name of the critic part: the component that builds the critic's input."""
    reads: dict[str, Any] = {}
    """Settings of the critic part: the kind of values, and whether the critic's input contains m_t
    (global information) and privileged information."""
    agents: tuple[str, ...]
    """The team, in the task's order."""
    readers: dict[str, tuple[str, ...]]
    """For each reader of this value model, the agents whose values are predicted from that reader's
    input. A reader's input is the history of one agent or of the whole team."""
    horizon: int | None = None
    """Maximum number of turns of the task."""
    task: str
    task_settings: Annotated[dict[str, Any], AfterValidator(masked_settings)] = {}
    algorithm: str
    credit: str | dict[str, Any] = "team"
    """Credit assignment that defines the rewards summed in the critic's returns."""
    discount: float = 1.0
    """Discount gamma between turns."""
    centre: float
    """Centre of the returns that the critic was trained on."""
    deviation: float = Field(gt=0)
    bias: float
    """The network predicts centre + deviation * (logit + bias). With `item_means`, the value is the
    item's mean plus a fraction of this prediction."""
    item_means: dict[str, tuple[float, float]] = {}
    """Weighted sums of returns and total weights, by reader and turn, and by reader, turn and item
    (`ItemMeans.state`). Set only for a critic with `critic.baseline: item`."""
    observations: int = Field(default=0, ge=0)
    """Number of iterations whose returns have updated centre and deviation."""
    max_length: int
    """Maximum length of the critic's input in tokens."""
    joint_actions: int = Field(ge=0)
    """Number of joint actions that the critic was trained on."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    weights: Literal["merged", "adapter"] = "merged"
    base: str | None = None
    """Path or hub name of the base model, if `weights` is an adapter."""
    explained: tuple[TurnWorth, ...] = ()
    """Explained variance by turn, on held-out episodes of the team that the critic was trained
    with."""

    @property
    def part(self) -> Critic:
        """The critic part, which builds the critic's input. Errors: ConfigError if the part is not
        installed."""
        part: Critic = build_part(Critic, Named(name=self.critic, **self.reads), CRITIC)
        return part

    def write(self, folder: Path) -> None:
        (folder / CRITIC).write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def named_part(part: object) -> tuple[str, dict[str, Any]]:
    """Return the name and all settings of a component in a config."""
    name = part_name(part)
    assert name is not None, "every part has a name"
    settings = {
        field.name: getattr(part, field.name)
        for field in fields(part)  # type: ignore[arg-type] # every part is a dataclass
        if field.init
    }
    return name, settings


def is_critic(path: str | Path) -> bool:
    """Whether a path is the folder of a saved critic."""
    return (Path(path) / CRITIC).is_file()


def read_critic(folder: Path, field: str) -> CriticManifest:
    """Read the manifest of a saved critic.

    Errors: ConfigError naming `field`, one line, if `folder` does not contain a critic or the file
    is damaged.
    """
    path = folder / CRITIC
    if not path.is_file():
        raise ConfigError(f"{field}: no critic in {folder} (no {CRITIC}); {_AGAIN}")
    try:
        return CriticManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(f"{field}: {path}: {location}: {first['msg']}; {_AGAIN}") from None


def head_numbers(head: ValueHead) -> dict[str, Any]:
    """The fields of a manifest that come from the value head."""
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
    """Write a critic's weights in the format of transformers' one-label classifiers, or as a peft
    adapter on `base`.

    `network` cannot be used afterwards. `pad` is the tokenizer's padding id: the label is read at
    the last token that is not `pad`. Errors: ConfigError if transformers has no one-label
    classifier for the architecture.
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
    save_model(model.to(DTYPES[dtype]), folder)


def load_head(folder: Path, head: ValueHead, field: str) -> None:
    """Copy the value head of a saved critic into `head`.

    Errors: ConfigError naming `field` for a damaged file or a different width.
    """
    path = folder / HEAD
    try:
        head.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ConfigError(f"{field}: {path}: {reason_of(error)}; {_AGAIN}") from None


def _classifier(config: Any) -> Any:
    """A classifier of the architecture on the meta device, which allocates no memory for
    weights."""
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
    """Write adapter_config.json, which names `base`, and adapter_model.safetensors, in float32."""
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
