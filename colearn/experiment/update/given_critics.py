"""Handles critics that were trained in another run: determines how long these critics are frozen,
and recentres their values on the first returns.

If a critic was trained on the returns of one team, its values for another team with a higher or
lower mean return are wrong by a constant. The first returns of the new team determine this
constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from colearn.contract import AgentValues, Episodes
from colearn.errors import ConfigError
from colearn.value_model.explained_variance import Pair, pairs

from .critics import Critics

FOREIGN = 20.0
"""Maximum ratio between the standard deviations of new and old returns, and also the maximum
distance between the means of new and old returns in standard deviations. If the ratio or the
distance exceeds this limit, the new returns are assumed to be on another scale."""


@dataclass(frozen=True, slots=True)
class GivenCritics:
    """Scales of the returns, and freezing time, of value models that were trained in another
    run."""

    scales: Mapping[str, tuple[float, float]]
    """For each value model, the centre and standard deviation of the returns on which the value
    model was trained."""
    frozen: float
    """Fraction of the training budget during which the value models are frozen."""

    def still(self, done: float) -> bool:
        """Whether the value models are still frozen once the fraction `done` of the budget is
        used."""
        return done < self.frozen

    def recentre(self, critics: Critics, episodes: Episodes, values: Sequence[AgentValues]) -> None:
        """Shift the values of every value model by the mean of (return - value) over all of the
        model's readers.

        Errors: ConfigError, one line, for returns on another scale (`FOREIGN`).
        """
        by_model: dict[str, list[Pair]] = {}
        for reader, agents in critics.critic.readers(episodes[0].agents).items():
            own_values = [{a: v for a, v in by_agent.items() if a in agents} for by_agent in values]
            model_pairs = by_model.setdefault(critics.value_model(reader), [])
            model_pairs += pairs(episodes, own_values, of_state=critics.critic.of_state)
        for name, model_pairs in by_model.items():
            if model_pairs:
                _check_scale(name, [pair.actual for pair in model_pairs], *self.scales[name])
                by = float(np.mean([pair.actual - pair.value for pair in model_pairs]))
                critics.learners[name].shift(by)


def _check_scale(name: str, returns: Sequence[float], centre: float, deviation: float) -> None:
    mean, spread = float(np.mean(returns)), float(np.std(returns))
    far = abs(mean - centre) > FOREIGN * max(spread, deviation)
    wide = spread > FOREIGN * deviation or 0 < spread < deviation / FOREIGN
    if far or wide:
        raise ConfigError(
            f"critic.from: {name} was trained on returns of {centre:.3g} +- {deviation:.3g}, and "
            f"those of this run are {mean:.3g} +- {spread:.3g}; give one of this scale, or fit one "
            "with: colearn critic fit"
        )
