"""Selects the returns that determine a value head's scale (`value_loss.rescale`)."""

from __future__ import annotations

from math import isnan

from colearn.contract import Critic, Episodes, Learner
from colearn.value_model.item_means import Offsets

from .actors import Actors
from .critics import Critics


def head_returns(
    critic: Critic,
    value_models: Critics | None,
    actors: Actors,
    episodes: Episodes,
    baselines: Offsets | None,
) -> list[tuple[Learner, list[float]]]:
    """Returns the episode returns for each value head: the returns of the trained agents whose
    values the head predicts, minus `baselines` if given. Omits heads without any value. If
    `value_models` is None, the heads are on the `actors`."""
    heads: dict[str, tuple[Learner, list[float]]] = {}
    for number, episode in enumerate(episodes):
        for reader, agents in critic.readers(episode.agents).items():
            if value_models is not None:
                name: str | None = value_models.value_model(reader)
                learners = value_models.learners
            else:
                name, learners = actors.model(episode, reader), actors.learners
            if name is None:
                continue
            _, earned = heads.setdefault(name, (learners[name], []))
            for agent in agents:
                if actors.model(episode, agent) is None:
                    continue  # a rival's returns
                returns = episode.returns_of(agent)
                means = {} if baselines is None else baselines[number].get(agent, {})
                earned += [
                    returns[node.index] - means.get(node.turn - 1, 0.0)
                    for node in episode.nodes
                    if agent in node.actions and not isnan(returns[node.index])
                ]
    return [(learner, earned) for learner, earned in heads.values() if earned]
