"""Some of a run's models in a process of their own, spoken to by values that can be pickled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from colearn.config import Config, resolve
from colearn.contract import Generator, NetworkKey, Prepared, Request
from colearn.contract.learner import Accumulated, Objective
from colearn.contract.rows import Outputs, Row
from colearn.models.load import Tokenizers
from colearn.seeding import derive_seed
from colearn.types import Action

from .local import LocalHost

Asked = tuple[Request, int | None]
"""A request without its session and listener, and the number of its session."""
Answered = tuple[Action, int, int]
"""An action, and the number and length of the session that ends with it."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A player that a model of a worker plays."""

    agent: str
    generator: int
    """Index of its generator in the worker."""
    positions: int | None


class ModelWorker:
    """A `LocalHost` of some networks. Sessions and prepared rows stay here under numbers, until
    `drop`."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}
        self._numbers = itertools.count()

    def build(
        self, config: Config, agents: Sequence[str], keys: Sequence[NetworkKey]
    ) -> tuple[dict[str, Seat], dict[NetworkKey, int]]:
        """Load the networks `keys` of a run whose paths are folders; returns their players, and
        the number of trained parameters by learner.

        Errors: as for `HostKind.build`.
        """
        run = resolve(config, agents=agents)
        torch.manual_seed(derive_seed(config.run.seed, "torch"))
        self.host = LocalHost(run, Tokenizers(), keys=keys)
        self.generators = self.host.generators
        seats = {
            name: Seat(one.agent, self.generators.index(one.generator), one.positions)
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

    def follower(self, key: NetworkKey, method: str, *args: Any) -> Any:
        """The result of a follower's method."""
        return getattr(self.host.followers[key], method)(*args)

    def generate(
        self, generator: int, asked: Sequence[Asked], greedy: bool
    ) -> list[list[Answered]]:
        """Errors: as for the generator's `generate`."""
        requests = [
            request if number is None else replace(request, session=self._kept[number])
            for request, number in asked
        ]
        drawn = self.generators[generator].generate(requests, greedy=greedy)
        return [
            [(one.action, self._keep(one.session), one.session.length) for one in group]
            for group in drawn
        ]

    def sync(self, generator: int) -> dict[str, int | None]:
        """Load the learners' weights; returns their versions by player."""
        self.generators[generator].sync()
        return self.versions(generator)

    def versions(self, generator: int) -> dict[str, int | None]:
        """The version of each player's weights; None: the learner's live ones."""
        one: Generator = self.generators[generator]
        players = self.host.players.items()
        return {name: one.version(name) for name, player in players if player.generator is one}

    def drop(self, numbers: Sequence[int]) -> None:
        """Free sessions and prepared rows."""
        for number in numbers:
            del self._kept[number]

    def close(self) -> None:
        self._kept.clear()
        self.host.close()

    def _keep(self, value: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = value
        return number
