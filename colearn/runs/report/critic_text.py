"""Input text of a run's critic at each turn of a recorded episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.config import build_algorithm, load_config
from colearn.contract.types import Node
from colearn.errors import ConfigError
from colearn.methods.critic.stream import StreamCritic, piece_tag
from colearn.registry import without_own_code
from colearn.runs.record import Episode, Run
from colearn.runs.record.transcript_tree import transcript_tree


def critic_of(run: Run) -> StreamCritic | None:
    """The critic of a run, if it reads a stream of texts and is not the user's own code."""
    try:
        with without_own_code():
            critic = build_algorithm(load_config(run.folder.settings())).parts().critic
    except (ConfigError, KeyError):
        return None
    return critic if isinstance(critic, StreamCritic) else None


def critic_texts(critic: StreamCritic, episode: Episode, run: Run) -> tuple[dict[str, str], ...]:
    """For each turn, the text that the turn adds to the critic's input, by the name of the input:
    `team`, or an agent. The texts of all turns so far are the whole input."""
    agents = tuple(
        dict.fromkeys((*run.record.agents, *(a for t in episode.turns for a in t.agents)))
    )
    tree = transcript_tree(episode.model_dump(), agents)
    return tuple(_added(critic, node, critic.readers(agents)) for node in tree.nodes[:-1])


def _added(critic: StreamCritic, node: Node[Any], readers: Mapping[str, Any]) -> dict[str, str]:
    texts = {}
    for reader in readers:
        pieces = [(role, node.turn - 1, text) for role, text in critic.done(node, reader)]
        pieces += [(role, node.turn, text) for role, text in critic.seen(node, reader)]
        texts[reader] = "".join(piece_tag(role, turn) + text for role, turn, text in pieces)
    return {reader: text.lstrip("\n") for reader, text in texts.items() if text}
