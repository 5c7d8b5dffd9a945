"""A saved critic, loaded to score episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colearn.contract import AgentValues, Critic, Episodes
from colearn.contract.rows import Outputs, Row
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.critic.stream import text_ids
from colearn.models.load import load_base, load_tokenizer, resolve_device
from colearn.models.network import Network, ValueHead
from colearn.runs.record.transcript_tree import transcript_tree
from colearn.training.learners.batch import evaluate

from .critic_folder import CriticManifest, critic_folder, read_critic
from .critics import Critics
from .explained_variance import TurnWorth, pairs, worth_by_turn
from .item_means import ItemMeans

_TOKENS = 4096
"""Maximum number of tokens in one forward pass, padding included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCritic:
    """A value model outside the run that trained it. Because the value model reads text, it can
    score any team on the same task."""

    manifest: CriticManifest
    network: Network
    critics: Critics
    """Reads the network."""

    @property
    def critic(self) -> Critic:
        """The critic part, which builds the network's input."""
        return self.critics.critic

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
        unread = (None,) * len(tree.nodes)
        return {
            agent: list(by_agent.get(agent, unread)[turns])
            for agents in self.manifest.readers.values()
            for agent in agents
        }

    def worth(self, episodes: Episodes) -> tuple[TurnWorth, ...]:
        """Return the explained variance of these episodes' returns at each turn."""
        values = self.values(episodes)
        return worth_by_turn(pairs(episodes, values, of_state=self.critic.of_state))

    def values(self, trees: Sequence[Tree[Any]]) -> list[AgentValues]:
        """Return the values of every tree, keyed by agent and node.

        Errors: ConfigError if a token sequence is longer than the critic's limit.
        """
        means = ItemMeans(self.manifest.item_means) if self.manifest.item_means else None
        return self.critics.values(trees, item_means=means)


class _Evaluated:
    """Forward passes of a network that is not trained."""

    def __init__(self, network: Network) -> None:
        self.network = network

    def evaluate(self, rows: Sequence[Row]) -> list[Outputs]:
        return evaluate(self.network, rows, token_budget=_TOKENS)


def load_critic(folder: str | Path, *, device: str = "auto") -> LoadedCritic:
    """Load a critic that `colearn export --critics` or `colearn critic fit` wrote, or a critic on
    the hub.

    Errors: ConfigError, one line, if the folder contains no critic or a damaged critic.
    """
    path = critic_folder(str(folder))
    manifest = read_critic(path, str(folder))
    part = manifest.part
    place = resolve_device(device, "device")
    base = load_base(
        str(path),
        compute=manifest.dtype,
        trained=False,
        device=place,
        field=str(folder),
        head=False,
    )
    head = ValueHead(base.config.hidden_size).to(place)
    head.load(path, str(folder))
    network = Network(base, head=head)
    learners: dict[str, Any] = {manifest.value_model: _Evaluated(network)}
    return LoadedCritic(
        manifest=manifest,
        network=network,
        critics=Critics(
            critic=part,
            learners=learners,
            tokenize=text_ids(load_tokenizer(str(path), field=str(folder))),
            max_length=manifest.max_length,
            value_model=dict.fromkeys(manifest.readers, manifest.value_model).get,
        ),
    )
