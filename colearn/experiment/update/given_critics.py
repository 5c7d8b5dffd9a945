"""A critic that a run was given: its share of frozen updates, and its centre on the first returns.

A critic of one team's returns is off by a constant for another team, which earns more or less. The
first returns of the new team set this constant.
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
"""Returns whose deviation, or distance from the critic's centre in deviations, differs by more than
this factor are of another scale."""


@dataclass(frozen=True, slots=True)
class GivenCritics:
    """Known facts of given value models before the first update."""

    scales: Mapping[str, tuple[float, float]]
    """Centre and standard deviation of the returns that each was trained on, by value model."""
    frozen: float
    """Share of the training budget in which they keep their weights."""

    def still(self, done: float) -> bool:
        """Whether they keep their weights after the fraction `done` of the budget."""
        return done < self.frozen

    def recentre(self, critics: Critics, episodes: Episodes, values: Sequence[AgentValues]) -> None:
        """Shift every value model by the mean of return - `value`, over all of its readers.

        Errors: ConfigError, one line, for returns of another scale.
        """
        told: dict[str, list[Pair]] = {}
        for reader, agents in critics.critic.readers(episodes[0].tree.agents).items():
            own = [{a: v for a, v in one.items() if a in agents} for one in values]
            some = told.setdefault(critics.value_model(reader), [])
            some += pairs(episodes, own, of_state=critics.critic.of_state)
        for name, some in told.items():
            if some:
                _check_scale(name, [pair.actual for pair in some], *self.scales[name])
                by = float(np.mean([pair.actual - pair.value for pair in some]))
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
