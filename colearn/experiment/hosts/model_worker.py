"""Some of a run's models in a process of their own, spoken to by values that can be pickled."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from colearn.config import Config, resolve
from colearn.contract import NetworkKey, Prepared, TokenAnswer, TokenEngine, TokenRequest
from colearn.contract.learner import Accumulated, Objective
from colearn.contract.rows import Outputs, Row
from colearn.contract.seeding import derive_seed
from colearn.models.load import Tokenizers

from .local import LocalHost

SentRequest = tuple[TokenRequest, int | None]
"""A request without listener and the history that it continues, and the number of that history."""
SentAnswer = tuple[TokenAnswer, int]
"""An answer, and the number under which its history is kept."""


@dataclass(frozen=True, slots=True)
class WorkerPlayer:
    """A player that a model of a worker plays."""

    agent: str
    engine: int
    """Index of its engine in the worker."""
    adapter: str | None
    positions: int | None


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a process among those of its worker."""

    number: int
    processes: int
    address: str
    """Where the first of them is reached."""
    port: int

    def enter(self) -> None:
        """Set the variables by which torch and accelerate let processes find each other; a
        process sees its own devices only, so that it is the first of its machine."""
        os.environ |= {
            "RANK": str(self.number),
            "WORLD_SIZE": str(self.processes),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


class ModelWorker:
    """A `LocalHost` of some networks: a worker, or one of its processes. Histories, by which
    engines find their KV caches, prepared rows and copies of weights stay here under numbers, until
    `drop`. Two calls may run at the same time if one of them is `generate`."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}
        self._numbers = itertools.count()

    def build(
        self,
        config: Config,
        agents: Sequence[str],
        keys: Sequence[NetworkKey],
        rank: Rank | None = None,
    ) -> tuple[dict[str, WorkerPlayer], dict[NetworkKey, int]]:
        """Load the networks `keys` of a run whose paths are folders; returns their players, and
        the number of trained parameters by learner.

        rank: its place, if the worker has several processes.
        Errors: as for `HostKind.build`.
        """
        run = resolve(config, agents=agents)
        if rank is not None:
            rank.enter()
        torch.manual_seed(derive_seed(config.run.seed, "torch"))
        self.host = LocalHost(run, Tokenizers(), keys=keys)
        self.engines = self.host.engines
        for engine in self.engines:
            engine.lags = run.algorithm.learns and config.train.staleness > 0
        seats = {
            name: WorkerPlayer(
                one.agent, self.engines.index(one.engine), one.spec.adapter, one.spec.positions
            )
            for name, one in self.host.players.items()
        }
        return seats, dict(self.host.parameters)

    def learner(self, key: NetworkKey, method: str, *args: Any) -> tuple[Any, int]:
        """The result of a learner's method, and its number of steps."""
        learner = self.host.learners[key]
        return getattr(learner, method)(*args), learner.steps

    def evaluate(
        self, key: NetworkKey, groups: Sequence[Sequence[Row]], reference: bool
    ) -> list[list[Outputs]]:
        return self.host.learners[key].evaluate(groups, reference=reference)

    def prepare(self, key: NetworkKey, groups: Sequence[Sequence[Row]]) -> int:
        """The number under which a learner's prepared rows are kept."""
        return self._keep(self.host.learners[key].prepare(groups))

    def accumulate(self, key: NetworkKey, prepared: int, objective: Objective) -> Accumulated:
        rows: Prepared = self._kept[prepared]
        return self.host.learners[key].accumulate(rows, objective)

    def copy(self, key: NetworkKey) -> int:
        """The number under which a copy of a learner's weights is kept."""
        return self._keep(self.host.learners[key].copy())

    def weight_copy(self, number: int, method: str, *args: Any) -> None:
        """Calls a method of a copy of weights."""
        getattr(self._kept[number], method)(*args)

    def frozen_copy(self, key: NetworkKey, method: str, *args: Any) -> Any:
        """The result of a frozen copy's method."""
        return getattr(self.host.copies[key], method)(*args)

    def generate(self, engine: int, sent: Sequence[SentRequest]) -> list[list[SentAnswer]]:
        """The answers to a batch. Errors: as for the engine's `submit`."""
        requests = [
            request if number is None else replace(request, continues=self._kept[number])
            for request, number in sent
        ]
        answers = asyncio.run(_submitted(self.engines[engine], requests))
        return [[(one, self._keep(one.history)) for one in group] for group in answers]

    def sync(self, engine: int) -> dict[str, int | None]:
        """Load the learners' weights; returns their versions by player."""
        self.engines[engine].sync()
        return self.versions(engine)

    def rest(self, engine: int) -> None:
        """Tell an engine that its models update now."""
        self.engines[engine].rest()

    def versions(self, engine: int) -> dict[str, int | None]:
        """The version of each player's weights; None: the learner's live ones."""
        one = self.engines[engine]
        players = self.host.players.items()
        return {name: one.version(name) for name, player in players if player.engine is one}

    def drop(self, numbers: Sequence[int]) -> None:
        """Free what is kept under these numbers."""
        for number in numbers:
            del self._kept[number]

    def close(self) -> None:
        self._kept.clear()
        self.host.close()

    def _keep(self, value: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = value
        return number


async def _submitted(
    engine: TokenEngine, requests: Sequence[TokenRequest]
) -> list[list[TokenAnswer]]:
    """The answers to requests that the engine receives together."""
    return list(await asyncio.gather(*map(engine.submit, requests)))
