"""A saved critic, loaded to score episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from colearn.config import LoRASettings
from colearn.contract import AgentValues, Critic, Episodes, Tokenize, Values
from colearn.critic.stream import text_ids
from colearn.errors import ConfigError, reason_of
from colearn.learn.score import evaluate
from colearn.models.adapter_folder import WEIGHTS, adapter_config, base_of
from colearn.models.base import Base
from colearn.models.critic_folder import CriticManifest, TurnWorth, load_head, read_critic
from colearn.models.load import load_base, load_tokenizer, resolve_device
from colearn.models.network import Network, ValueHead
from colearn.text.notes import note
from colearn.types import Tree

from .explained_variance import pairs, worth_by_turn
from .item_means import ItemMeans, baselined, scaled
from .transcript_tree import transcript_tree

_ADAPTER = "critic"
_TOKENS = 4096
"""Maximum number of tokens in one forward pass, padding included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCritic:
    """A value model outside the run that trained it. Because the value model reads text, it can
    score any team on the same task."""

    manifest: CriticManifest
    critic: Critic
    network: Network
    tokenize: Tokenize

    def score(self, episode: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """Return the values, by agent and turn, of an episode in the format of episodes.jsonl.

        The value at turn t is V of the joint history before the joint action, or Q of the joint
        action. The value is None if the agent has no value at turn t.
        Errors: ConfigError if the episode has agents that the critic does not know, or if the
        critic reads token ids.
        """
        if self.critic.reads_ids:
            raise ConfigError(
                f"{self.manifest.value_model}: this critic reads the agents' token ids, which a "
                "transcript has not; give trees to `values`"
            )
        tree = transcript_tree(episode, self.manifest.agents)
        (by_agent,) = self.values([tree])
        turns = slice(0, -1) if self.critic.of_state else slice(1, None)
        return {agent: list(series[turns]) for agent, series in by_agent.items()}

    def worth(self, episodes: Episodes) -> tuple[TurnWorth, ...]:
        """Return the explained variance of these episodes' returns at each turn."""
        values = self.values(episodes)
        return worth_by_turn(pairs(episodes, values, of_state=self.critic.of_state))

    def values(self, trees: Sequence[Tree[Any]]) -> list[AgentValues]:
        """Return the values of every tree, keyed by agent and node.

        Errors: ConfigError if a token sequence is longer than the critic's limit.
        """
        limit = self.manifest.max_length
        item_means = ItemMeans(self.manifest.item_means)
        offsets = (
            [item_means.of_tree(self.critic, tree) for tree in trees] if item_means.state else []
        )
        by_tree: list[dict[str, Values]] = []
        for number, tree in enumerate(trees):
            by_agent: dict[str, Values] = {}
            for reader in self.manifest.readers:
                row = self.critic.row(tree, reader, self.tokenize, limit=limit)
                if offsets:
                    agents = self.critic.readers(tree.agents)[reader]
                    row = baselined(row, self.critic, tree, agents, offsets[number])
                (outputs,) = evaluate(self.network, [row], token_budget=_TOKENS)
                by_agent |= self.critic.values(tree, reader, row, outputs.values.tolist())
            by_tree.append(by_agent)
        if not offsets:
            return list(by_tree)
        return scaled(self.critic, trees, by_tree, offsets, item_means.shares(self.critic, trees))


def load_critic(folder: str | Path, *, device: str = "auto") -> LoadedCritic:
    """Load a critic that `colearn export --critics` or `colearn critic fit` wrote, or a critic on
    the hub.

    Errors: ConfigError, one line, if the folder contains no critic or a damaged critic.
    """
    path = critic_folder(str(folder))
    manifest = read_critic(path, str(folder))
    note_without_shares(manifest, str(folder))
    part = manifest.part
    place = resolve_device(device, "device")
    base = load_base(
        str(path) if manifest.base is None else base_of(str(path), str(folder), weights=True),
        compute=manifest.dtype,
        trained=False,
        device=place,
        field=str(folder),
        head=False,
    )
    if manifest.base is not None:
        _adapt(base, path, str(folder))
    head = ValueHead(base.config.hidden_size).to(place)
    load_head(path, head, str(folder))
    return LoadedCritic(
        manifest=manifest,
        critic=part,
        network=Network(base, None if manifest.base is None else _ADAPTER, head),
        tokenize=tokenizer_of(str(path), str(folder)),
    )


def note_without_shares(manifest: CriticManifest, field: str) -> None:
    """Tell the user, in one line that begins with `field`, if a critic with item means was exported
    without the shares of its network."""
    if ItemMeans(manifest.item_means).lacks_shares:
        note(
            f"{field}: this critic has means by item without the network's share, as exported by "
            "an earlier version; its values are the means alone, until a run that it is given to "
            "has fitted the share"
        )


def tokenizer_of(path: str, field: str) -> Tokenize:
    """Return `text_ids` of the tokenizer of the model in a folder. Errors: ConfigError naming
    `field`."""
    return text_ids(load_tokenizer(path, field=field))


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


def _adapt(base: Base, folder: Path, field: str) -> None:
    """Load a critic's adapter onto its base. Errors: ConfigError if the adapter does not fit."""
    from peft import set_peft_model_state_dict

    config = adapter_config(str(folder), field)
    try:
        lora = LoRASettings(
            rank=config["r"], alpha=config["lora_alpha"], targets=config["target_modules"]
        )
        weights = load_file(folder / WEIGHTS)
        weights.pop("base_model.model.score.weight")  # stored in the value head's file
        base.add_adapter(_ADAPTER, lora)
        unexpected = set_peft_model_state_dict(
            base.model, weights, adapter_name=_ADAPTER
        ).unexpected_keys
        if unexpected:
            raise ValueError(f"the base has no place for {unexpected[0]}")
    except (OSError, SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise ConfigError(
            f"{field}: the adapter does not load ({reason_of(error)}); export the critic again"
        ) from None
