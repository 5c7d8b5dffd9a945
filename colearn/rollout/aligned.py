"""Shapes whose joint actions pair the j-th action of each agent with the j-th of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.contract import Rollout
from colearn.errors import ConfigError


class Aligned(Rollout):
    """K actions per acting agent make K joint actions, so a node has K children."""

    def joint_actions(self, counts: Mapping[str, int]) -> Sequence[Mapping[str, int]]:
        return [dict.fromkeys(counts, number) for number in range(max(counts.values(), default=0))]


def check_samples(samples: int) -> None:
    """Errors: ConfigError where a node would get no child."""
    if samples < 1:
        raise ConfigError(f"algorithm.samples: must be 1 or more, got {samples}; set 2 or more")
