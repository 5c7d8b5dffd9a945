"""Reads and writes the folder of a saved critic: weights as a one-label classifier, the value head,
and critic.json, the manifest."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from safetensors.torch import save_file
from torch import nn

from colearn.config import Named, ResolvedRun
from colearn.config.parts import build_part, part_name
from colearn.contract import Critic, NetworkKey
from colearn.errors import ConfigError, reason_of
from colearn.models.digests import CRITIC
from colearn.models.folders import base_folders
from colearn.models.kept_change import Dtype, kept_type
from colearn.models.load import DTYPES, load_tokenizer, read_config
from colearn.models.merging import merged
from colearn.models.network import HEAD, Network
from colearn.models.saved_folder import save_model, save_tokenizer
from colearn.runs.record.checkpoints import Checkpoint
from colearn.text.masking import masked_settings
from colearn.training.learners.checkpoint_files import checkpoint_network

from .explained_variance import TurnWorth
from .item_means import ItemMeans

_AGAIN = "export it again with: colearn export RUN --critics --to DIR"


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
    dtype: Dtype = "float32"
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


def critic_folder(name: str) -> Path:
    """Return the folder of a critic; a critic on the hub is downloaded first.

    Errors: ConfigError if there is no such folder or repository.
    """
    path = Path(name)
    if path.is_dir() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        return path
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    try:
        return Path(snapshot_download(name))
    except (HTTPError, OSError, ValueError) as error:
        raise ConfigError(
            f"{name}: neither a folder here nor a repository of the hub ({reason_of(error)})"
        ) from None


def keep_critic(
    run: ResolvedRun,
    key: NetworkKey,
    checkpoint: Checkpoint,
    folder: Path,
    *,
    joint_actions: int,
    dtype: Dtype | None = None,
    option: str = "",
) -> CriticManifest:
    """Write the value model `key` of a run's checkpoint into an empty folder.

    run: must be resolved from a config that `with_given_critic` has processed. The other arguments
    are those of `write_critic`. Errors: as for `checkpoint_network` and `write_critic`.
    """
    settings = run.config.critic
    assert settings is not None, "a run with a value model has its settings"
    # an adapter is merged into weights that are not quantised
    path = base_folders(run, [key])[run.path(key)]
    changed: dict[str, Any] = {"path": path, "device": "cpu", "devices": {}, "quantization": None}
    config = run.config.model_copy(update={"critic": settings.model_copy(update=changed)})
    return write_critic(
        run,
        key,
        checkpoint_network(replace(run, config=config), key, checkpoint.path),
        folder,
        joint_actions=joint_actions,
        item_means=ItemMeans(checkpoint.progress.item_means if settings.item_baseline else {}),
        dtype=dtype,
        option=option,
    )


def write_critic(
    run: ResolvedRun,
    key: NetworkKey,
    network: Network,
    folder: Path,
    *,
    joint_actions: int,
    item_means: ItemMeans | None = None,
    explained: tuple[TurnWorth, ...] = (),
    dtype: Dtype | None = None,
    option: str = "",
) -> CriticManifest:
    """Write weights, tokenizer and manifest of a value model into an empty folder. `network` cannot
    be used afterwards.

    joint_actions: number of joint actions that the critic was trained on. dtype, option: the type
    that the user chose, and the option that chooses it (`kept_type`). Errors: as for `save_critic`.
    """
    settings = run.config.critic
    assert settings is not None and network.head is not None, "a run with a value model has both"
    path = base_folders(run, [key])[run.path(key)]
    tokenizer = load_tokenizer(path, field="critic.path")
    who = f"critic '{key.model}'"
    kept = kept_type(network, path, settings.dtype, who=who, chosen=dtype, option=option)
    description = described(run, key)
    centre, deviation, observations = network.head.scale.tolist()
    manifest = CriticManifest(
        **description,
        centre=centre,
        deviation=deviation,
        observations=int(observations),
        bias=network.head.linear.bias.item(),
        item_means=(item_means or ItemMeans()).of_readers(description["readers"]),
        max_length=settings.longest_stream(read_config(path, "critic.path")),
        joint_actions=joint_actions,
        dtype=kept,
        explained=explained,
    )
    save_critic(network, folder, dtype=manifest.dtype, pad=tokenizer.pad_token_id)
    save_tokenizer(tokenizer, folder)
    manifest.write(folder)
    return manifest


def described(run: ResolvedRun, key: NetworkKey) -> dict[str, Any]:
    """Return the manifest fields that a config determines: the critic's input, agents and predicted
    returns."""
    config, critic = run.config, run.parts.critic
    assert critic is not None, "a run with a value model has a critic"
    name, reads = _named(critic)
    credit, credited = _named(run.parts.credit)
    task = config.task.settings
    if config.wrapper is not None:
        task = {**task, "wrapper": config.wrapper.plain()}
    readers = critic.readers(run.agents)
    return {
        "value_model": key.model,
        "critic": name,
        "reads": reads,
        "agents": tuple(run.agents),
        "readers": {r: tuple(a) for r, a in readers.items() if run.value_models[r] == key.model},
        "horizon": run.task.horizon,
        "task": config.task.name,
        "task_settings": task,
        "algorithm": config.algorithm.name,
        "credit": {"name": credit, **credited} if credited else credit,
        "discount": run.parts.discount,
    }


def _named(part: object) -> tuple[str, dict[str, Any]]:
    """Return the name and all settings of a component in a config."""
    name = part_name(part)
    assert name is not None, "every part has a name"
    settings = {
        field.name: getattr(part, field.name)
        for field in fields(part)  # type: ignore[arg-type] # every part is a dataclass
        if field.init
    }
    return name, settings


def save_critic(network: Network, folder: Path, *, dtype: str, pad: int | None) -> None:
    """Write a critic's weights in the format of transformers' one-label classifiers.

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
            "train the critic on another architecture"
        )
    return model
