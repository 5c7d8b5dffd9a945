"""Selects the returns that determine a value head's scale (`value_loss.rescale`)."""

from __future__ import annotations

from math import isnan

from colearn.contract import Episodes, Learner
from colearn.methods.values.critics import Learns
from colearn.methods.values.item_means import Offsets
from colearn.training.learners.reader import Reader


def head_returns(
    heads: Reader, learns: Learns, episodes: Episodes, baselines: Offsets | None
) -> list[tuple[Learner, list[float]]]:
    """Returns the episode returns for each value head of the models `heads`: the returns of the
    trained agents whose values the head predicts, minus `baselines` if given. Omits heads without
    any value."""
    assert heads.critic is not None, "models with value heads have a critic"
    by_model: dict[str, tuple[Learner, list[float]]] = {}
    for number, episode in enumerate(episodes):
        for reader, agents in heads.critic.readers(episode.agents).items():
            name = heads.model_of(episode, reader)
            if name is None:
                continue
            _, earned = by_model.setdefault(name, (heads.learners[name], []))
            for agent in agents:
                if not learns(episode, agent):
                    continue  # a rival's returns
                returns = episode.returns_of(agent)
                means = {} if baselines is None else baselines[number].get(agent, {})
                earned += [
                    returns[node.index] - means.get(node.turn - 1, 0.0)
                    for node in episode.nodes
                    if agent in node.actions and not isnan(returns[node.index])
                ]
    return [(learner, earned) for learner, earned in by_model.values() if earned]
