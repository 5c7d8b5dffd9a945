"""Holds some of a run's models in a separate process; all arguments and results can be pickled."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from colearn.config import Config, resolve
from colearn.contract import NetworkKey, TokenAnswer, TokenRequest
from colearn.contract.learner import Accumulated, Objective
from colearn.contract.rows import Outputs, Row
from colearn.contract.seeding import derive_seed
from colearn.models.load import Tokenizers, resolve_device
from colearn.rollout.agents import Language

from .local_team import local_team

SentRequest = tuple[TokenRequest, int | None]
"""A pair of a request, without the history that the request continues, and the number under which
the worker stores this history."""
SentAnswer = tuple[TokenAnswer, int]
"""A pair: an answer, and the number under which the worker stores the answer's history."""


@dataclass(frozen=True, slots=True)
class WorkerPlayer:
    """A player whose model is in a worker."""

    engine: int
    """Index of the player's engine in the worker."""
    adapter: str | None
    positions: int | None


@dataclass(frozen=True, slots=True)
class WorkerModels:
    """What a worker has loaded."""

    players: Mapping[str, WorkerPlayer]
    sizes: Mapping[NetworkKey, int]
    """Number of trained parameters by learner."""


@dataclass(frozen=True, slots=True)
class Rank:
    """The rank of a process among the processes of one worker."""

    number: int
    processes: int
    address: str
    """Address of the first process."""
    port: int

    def enter(self) -> None:
        """Set the environment variables with which torch and accelerate connect processes. A
        process sees only its own devices, so its local rank is 0."""
        os.environ |= {
            "RANK": str(self.number),
            "WORLD_SIZE": str(self.processes),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


class ModelWorker:
    """A `Team` of some networks, in a worker or in one process of a worker. Stores copies of
    weights, and histories (with which engines find KV caches). Each stored object has a number and
    is kept until `drop` is called with this number. Two calls may run at the same time if one of
    them is `generate`."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}
        self._numbers = itertools.count()

    def build(
        self,
        config: Config,
        agents: Sequence[str],
        keys: Sequence[NetworkKey],
        rank: Rank | None = None,
    ) -> WorkerModels:
        """Load the networks `keys` of a run in which all model paths are folders.

        rank: the rank of this process, if the worker has several processes.
        Errors: as for `HostKind.build`.
        """
        run = resolve(config, agents=agents, auto=resolve_device("auto").type)
        if rank is not None:
            rank.enter()
        torch.manual_seed(derive_seed(config.run.seed, "torch"))
        self.team = local_team(run, Tokenizers(), keys=keys)
        self.engines = self.team.engines
        for engine in self.engines:
            engine.lags = run.algorithm.learns and config.train.staleness > 0
        return WorkerModels(
            {
                name: WorkerPlayer(
                    self.engines.index(player.engine), player.spec.adapter, player.spec.positions
                )
                for name, player in self._players.items()
            },
            {key: learner.size for key, learner in self.team.learners.items()},
        )

    def learner(self, key: NetworkKey, method: str, *args: Any) -> tuple[Any, int]:
        """Call a learner's method; returns the result and the learner's number of steps."""
        learner = self.team.learners[key]
        return getattr(learner, method)(*args), learner.steps

    def evaluate(self, key: NetworkKey, rows: Sequence[Row], reference: bool) -> list[Outputs]:
        return self.team.learners[key].evaluate(rows, reference=reference)

    def accumulate(self, key: NetworkKey, rows: Sequence[Row], objective: Objective) -> Accumulated:
        return self.team.learners[key].accumulate(rows, objective)

    def copy(self, key: NetworkKey) -> int:
        """Copy a learner's weights; returns the number under which the copy is stored."""
        return self._keep(self.team.learners[key].copy())

    def weight_copy(self, number: int, method: str, *args: Any) -> None:
        """Call a method of a stored copy of weights."""
        getattr(self._kept[number], method)(*args)

    def frozen_copy(self, key: NetworkKey, method: str, *args: Any) -> Any:
        """Call a method of a frozen copy and return the result."""
        return getattr(self.team.copies[key], method)(*args)

    def generate(self, engine: int, sent_requests: Sequence[SentRequest]) -> list[list[SentAnswer]]:
        """Answer a batch of requests. Errors: as for the engine's `generate`."""
        requests = [
            request if number is None else replace(request, continues=self._kept[number])
            for request, number in sent_requests
        ]
        answers = self.engines[engine].generate(requests)
        return [[(answer, self._keep(answer.history)) for answer in group] for group in answers]

    def sync(self, engine: int) -> dict[str, int | None]:
        """Load the learners' weights into an engine; returns the versions of these weights by
        player."""
        self.engines[engine].sync()
        return self.versions(engine)

    def rest(self, engine: int) -> None:
        """Call `rest` of an engine, because the engine's models are about to be updated."""
        self.engines[engine].rest()

    def versions(self, number: int) -> dict[str, int | None]:
        """The version of each player's weights; None: the learner's live weights."""
        engine = self.engines[number]
        players = self._players.items()
        return {name: engine.version(name) for name, player in players if player.engine is engine}

    def drop(self, numbers: Sequence[int]) -> None:
        """Free the objects that are stored under these numbers. Objects that `close` has freed are
        skipped: their handles may be collected later."""
        for number in numbers:
            self._kept.pop(number, None)

    def close(self) -> None:
        self._kept.clear()
        self.team.close()

    @property
    def _players(self) -> dict[str, Language]:
        players = self.team.players.items()
        return {name: player for name, player in players if isinstance(player, Language)}

    def _keep(self, value: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = value
        return number
