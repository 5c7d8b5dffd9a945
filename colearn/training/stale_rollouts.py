"""Stale rollouts: generators receive new weights every S updates, and a thread rolls out iterations
ahead of their updates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from colearn.contract import Learner, NetworkKey, WeightCopy
from colearn.contract.types import Tree
from colearn.rollout.counts import Counts

from .experience import Experience, TrainingPoint
from .processes import Grown

_FOLDER, _AT = "behaviour", "at.json"


@dataclass(slots=True)
class _Behaviour:
    """Weights that generators received, and the state of the run at that time."""

    at: TrainingPoint
    weights: dict[str, WeightCopy]
    """Copy of the weights of each actor."""

    def put(self) -> None:
        for weights in self.weights.values():
            weights.put()


@dataclass(kw_only=True)
class StaleRollouts(Experience):
    """Rolls out iterations in blocks of S = `staleness`. After every S-th update, generators
    receive the weights. The next S iterations are rolled out with these weights while further
    updates change the models.

    The first iteration is rolled out with the initial weights. Iteration t > 0 uses the weights of
    iteration S * floor((t - 1) / S), so the staleness is between 1 and S. The weights, items and
    seeds of an iteration do not depend on timing. An iteration is sampled at the temperature
    scheduled for the time of its update. The used fraction of the budget at that time is predicted
    from the mean use per iteration so far. Iterations that are rolled out with the initial weights
    use the initial temperature. A checkpoint holds the weights with which the pending iterations
    were rolled out; a resumed run rolls out these iterations again.
    """

    learners: Mapping[NetworkKey, Learner]
    publish: Callable[[], None]
    """Function that sends the learners' weights to all generators."""
    staleness: int
    lag: int = field(default=0, init=False)
    """Staleness of the trees that `take` returned last: the number of updates between the weights
    that sampled these trees and the newest weights."""
    _actors: dict[str, Learner] = field(init=False)
    _thread: ThreadPoolExecutor = field(init=False)
    _pending: dict[int, Future[Grown]] = field(default_factory=dict, init=False)
    _source: dict[int, TrainingPoint] = field(default_factory=dict, init=False)
    """For each pending iteration, the point in training at which generators received the weights
    for rolling out this iteration."""
    _behaviour: list[_Behaviour] = field(default_factory=list, init=False)
    """The last two sets of weights, newest last; the older set is needed while iterations that use
    it are pending."""
    _pool: Executor | None = field(default=None, init=False)
    _done: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._actors = {
            str(key): learner for key, learner in self.learners.items() if key.kind == "actor"
        }
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rollout")

    def take(
        self, at: TrainingPoint, *, pool: Executor | None = None
    ) -> tuple[Sequence[Tree[Any]], Counts]:
        self._pool = pool
        if at.iteration not in self._pending:  # the start of a run
            self._given(at)
            self._submit(at, at.iteration)
        if at.iteration % self.staleness == 0:
            start = self._behaviour[-1].at
            for ahead in range(1, self.staleness + 1):
                if at.iteration + ahead not in self._pending:
                    self._submit(start, at.iteration + ahead)
        future, source = self._pending[at.iteration], self._source[at.iteration]
        grown = self.processes.exchange(future.result)
        del self._pending[at.iteration], self._source[at.iteration]
        self.lag = at.iteration - source.iteration
        self._done = _expected(source, self.lag)
        return grown

    def sampled_at(self, at: TrainingPoint) -> float:
        return self._done

    def refresh(self, at: TrainingPoint) -> bool:
        if at.iteration % self.staleness:
            return False
        self.settle()
        self._given(at)
        return True

    def settle(self) -> None:
        wait(self._pending.values())  # failures are raised where the trees are taken

    def metrics(self) -> dict[str, float]:
        return {"staleness": float(self.lag)}

    def save(self, folder: Path) -> None:
        """Write the weights with which the pending iterations were rolled out."""
        needed = min((at.iteration for at in self._source.values()), default=None)
        for behaviour in self._behaviour:
            if behaviour.at.iteration == needed:
                for key, weights in behaviour.weights.items():
                    weights.save(folder / _FOLDER / key)
                steps = {key: weights.steps for key, weights in behaviour.weights.items()}
                numbers = {"at": asdict(behaviour.at), "steps": steps}
                (folder / _FOLDER / _AT).write_text(json.dumps(numbers))

    def restore(self, folder: Path, at: TrainingPoint) -> None:
        """Roll out the pending iterations of a checkpoint again; the learners must have loaded the
        checkpoint.

        Errors: CheckpointError for a file that is missing, truncated or from another model.
        """
        path = folder / _FOLDER
        if not at.iteration and not path.is_dir():
            return
        newest = self._snapshot(at)
        older = self._snapshot(at)
        numbers = json.loads((path / _AT).read_text())
        for key, weights in older.weights.items():
            weights.load(path / key, numbers["steps"][key])
        source = older.at = TrainingPoint(**numbers["at"])
        older.put()
        self.publish()
        self._behaviour = [older]
        last = -(-at.iteration // self.staleness) * self.staleness
        for iteration in range(at.iteration, last + 1):
            self._submit(source, iteration)
        self.settle()
        newest.put()
        self.publish()
        if at.iteration % self.staleness == 0:
            self._given(at)

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _given(self, at: TrainingPoint) -> None:
        """Record that generators now have the weights of `at`."""
        self._behaviour = [*self._behaviour[-1:], self._snapshot(at)]

    def _submit(self, source: TrainingPoint, iteration: int) -> None:
        ahead = iteration - source.iteration
        at = replace(
            source,
            iteration=iteration,
            episodes=source.episodes + ahead * self.count,
            done=_expected(source, ahead),
        )
        first, items = self.processes.share_of(self.draw(at))

        def grow() -> Grown:
            return self.grow(at, items, first=first, pool=self._pool)

        self._source[iteration] = source
        self._pending[iteration] = self._thread.submit(grow)

    def _snapshot(self, at: TrainingPoint) -> _Behaviour:
        return _Behaviour(at, {key: learner.copy() for key, learner in self._actors.items()})


def _expected(source: TrainingPoint, ahead: int) -> float:
    """Predicts the used fraction of the budget `ahead` iterations after `source`, under the
    assumption that an iteration uses as much of the budget as the mean so far."""
    if not source.iteration:
        return source.done
    return min(1.0, source.done * (source.iteration + ahead) / source.iteration)
