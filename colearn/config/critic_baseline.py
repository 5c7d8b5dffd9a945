"""Selects the default of `critic.baseline`."""

from __future__ import annotations

from colearn.contract import Parts
from colearn.contract.anneal import MEAN

from .settings import Config

_V = "v"


def with_critic_baseline(config: Config, parts: Parts, recorded: Config | None = None) -> Config:
    """Returns the config with `critic.baseline` set to its default if it is None.

    The default is `item` for a critic of its own (`critic.path`) that estimates V of a history as a
    mean of returns. It is `none` for all other critics:

    - A Q, with or without counterfactual alternatives: an actor learns from differences between the
      values of actions. The share c, which multiplies them, is fitted to returns instead of to such
      differences, and is 0 in the first iteration.
    - Values before tokens: c is fitted at an action's first token, although later tokens can
      predict more.
    - An expectile other than 1/2: the item means and c are fitted to mean returns.
    - A value head on the actor (`critic.share`).

    A critic given by `critic.from` has the baseline of its folder, and an algorithm without a
    critic has none: the config is then unchanged. A resumed run keeps the baseline of its
    `recorded` config.
    """
    critic = config.critic
    if critic is None or critic.baseline is not None or critic.from_ is not None:
        return config
    if recorded is not None and recorded.critic is not None:
        baseline = recorded.critic.baseline
    elif parts.critic is None:
        return config
    else:
        mean = parts.critic.value == _V and parts.value_loss.expectile == MEAN
        baseline = "item" if mean and critic.share is None else "none"
    return config.model_copy(update={"critic": critic.model_copy(update={"baseline": baseline})})
