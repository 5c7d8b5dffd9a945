"""Input text of a run's critic at each turn of a recorded episode."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
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
    nodes = transcript_tree(episode.model_dump(), agents).nodes
    readers = critic.readers(agents)
    return tuple(_added(critic, now, after, readers) for now, after in pairwise(nodes))


def _added(
    critic: StreamCritic, now: Node[Any], after: Node[Any], readers: Mapping[str, Any]
) -> dict[str, str]:
    """The texts up to where the critic reads the value of a turn: V before the joint action, and Q
    after it."""
    texts = {}
    for reader in readers:
        seen = [(role, now.turn, text) for role, text in critic.seen(now, reader)]
        node = now if critic.of_state else after
        done = [(role, node.turn - 1, text) for role, text in critic.done(node, reader)]
        pieces = [*done, *seen] if critic.of_state else [*seen, *done]
        texts[reader] = "".join(piece_tag(role, turn) + text for role, turn, text in pieces)
    return {reader: text.lstrip("\n") for reader, text in texts.items() if text}
