"""Seconds of generating by turn, in chains of eight turns."""

from __future__ import annotations

import time
from typing import Any

from vs_comlrl import SharedWords

from colearn.experiment.assemble import Assembly
from colearn.generate.transformers import TransformersGenerator
from colearn.rollout.grow import grow


class Eight(SharedWords):
    """Eight turns."""

    horizon = 8


def seconds_by_turn(chains: Assembly, count: int, seed: int) -> list[float]:
    """Processor seconds of both agents' generation in each turn, `count` chains at once."""
    spent: list[float] = []
    plain = TransformersGenerator.generate

    def timed(*given: Any, **settings: Any) -> Any:
        started = time.process_time()
        answer = plain(*given, **settings)
        spent.append(time.process_time() - started)
        return answer

    TransformersGenerator.generate = timed  # type: ignore[method-assign]
    try:
        grow(Eight(), list(range(count)), chains.players, chains.parts.rollout, seed=seed)
    finally:
        TransformersGenerator.generate = plain  # type: ignore[method-assign]
    assert len(spent) == 16, "eight turns of two agents"
    return [spent[n] + spent[n + 1] for n in range(0, 16, 2)]
