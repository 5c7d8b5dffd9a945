"""Seconds of generating by turn, in chains of eight turns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from vs_comlrl import SharedWords

from colearn.engines.transformers import TransformersEngine
from colearn.rollout.grow import grow
from colearn.training.team import Team


class Eight(SharedWords):
    """Eight turns."""

    horizon = 8


@contextmanager
def generation_seconds() -> Iterator[list[float]]:
    """A list that gets the processor seconds of each time that an engine begins and ends its work
    inside the block."""
    spent: list[float] = []
    plain = TransformersEngine._prepared

    @contextmanager
    def timed(engine: TransformersEngine) -> Iterator[None]:
        started = time.process_time()
        with plain(engine):
            yield
        spent.append(time.process_time() - started)

    with patch.object(TransformersEngine, "_prepared", timed):
        yield spent


def seconds_by_turn(chains: Team, count: int, seed: int) -> list[float]:
    """Processor seconds of both agents' generation in each turn, `count` chains at once."""
    with generation_seconds() as spent:
        grow(Eight(), list(range(count)), chains.players, chains.run.parts.rollout, seed=seed)
    assert len(spent) == 16, "eight turns of two agents"
    return [spent[n] + spent[n + 1] for n in range(0, 16, 2)]
