"""The loop: roll out, score, update, evaluate, checkpoint. It knows no algorithm."""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch

import colearn
from colearn.config import Config, build_tracker
from colearn.errors import ConfigError, TaskError, nearest
from colearn.models.load import resolve_device
from colearn.record import Best, Line, Progress, RunRecord, RunWriter
from colearn.record.transcript import transcript
from colearn.rollout.counts import Counts
from colearn.rollout.transition import items_of
from colearn.seeding import derive_seed
from colearn.types import Tree

from .assemble import Assembly, assemble
from .evaluation.evaluate import evaluate_team
from .evaluation.played import mean_objective, mean_returns
from .experience import At, Experience, Now, TrainingEpisodes
from .garbage import few_collections
from .interruption import Interrupted, Interruption
from .keeper import Keeper
from .processes import Processes
from .update.updater import Updater

Report = Callable[[Progress, dict[str, float]], None]
"""Told after every update and evaluation how far the run is, with the latest numbers."""


class Experiment:
    """One algorithm on one task with one seed, in one folder.

    The same config gives the same run, bit for bit on the CPU, whether it was interrupted or not:
    everything drawn is a function of the seed and the iteration.
    """

    def __init__(self, config: Config, folder: str | Path, *, resume: bool = False) -> None:
        folder = Path(folder)
        self.processes = Processes(resolve_device(config.run.device))
        self.record = RunWriter(folder, config, resume=resume, writes=self.processes.main)
        with contextlib.ExitStack() as undo:
            undo.callback(self.record.close)
            torch.manual_seed(derive_seed(config.run.seed, "torch"))
            self.parts: Assembly = assemble(config)
            items = items_of(self.parts.task, "train")
            self.record.open()
            self.config = self.parts.config
            self.folder = folder
            self.keeper = Keeper(
                self.record,
                self.parts.learners,
                self.config.run,
                self.processes,
                self.parts.followers,
            )
            found = self.keeper.load() if resume else None
            self.record.rewind(found)
            if found is not None:
                self.parts.host.publish()
            undo.pop_all()
        self.episodes = TrainingEpisodes(
            task=self.parts.task,
            items=items,
            players=self.parts.players,
            rollout=self.parts.parts.rollout,
            credit=self.parts.parts.credit,
            cast=self.parts.cast,
            seed=self.config.run.seed,
            count=self.config.train.episodes,
            order=self.config.run.order,
        )
        self.experience: Experience = Now(self.episodes, self.processes)
        self.headline = self.parts.run.headline
        self.progress = found or Progress()
        self.parts.parts.advantage.restore(self.progress.baselines)
        self.parts.cast.restore(self.progress.cast)
        self.interruption = Interruption(self.processes)
        self._started = datetime.now(UTC).isoformat(timespec="seconds")

    def run(self, report: Report | None = None) -> RunRecord:
        """Train to the end of the budget, or evaluate once where nothing is learned; gives what
        run.json holds.

        Errors: Interrupted on Ctrl-C or SIGTERM, once the state is kept; CheckpointError where a
        file cannot be written.
        """
        report = report or (lambda _, __: None)
        with contextlib.closing(self.record), self.interruption:
            try:
                self._write_run("running")
                self._train(report)
            except Interrupted:
                self.keeper.save(self.progress)
                self._write_run("interrupted")
                raise
            return self._write_run("finished")

    def trees(self) -> list[Tree[Any]]:
        """What the next update would learn from: the trees of its iteration, grown by the weights
        as they are now. Nothing changes: the run draws the same ones again."""
        return self.episodes.grow(self._at, self.episodes.draw(self._at))[0]

    @property
    def _at(self) -> At:
        return At(self.progress.iteration, self.progress.episodes, self._done)

    @property
    def _done(self) -> float:
        """The share of the training budget that is used: of its joint actions or its iterations,
        whichever ends it first."""
        train, progress = self.config.train, self.progress
        share = progress.environment_steps / train.environment_steps
        if train.iterations is None:
            return share
        return max(share, progress.iteration / train.iterations)

    def _train(self, report: Report) -> None:
        plain = self.config.model_dump(mode="json")
        chosen = self.config.run.trackers if self.processes.main else ()
        trackers = [build_tracker(one, self.folder, plain) for one in chosen]
        with self._pool() as pool, few_collections(), contextlib.ExitStack() as stack:
            for tracker in trackers:
                stack.callback(tracker.close)
            stack.callback(self.parts.host.close)
            stack.callback(self.experience.close)
            for player in self.parts.players.values():
                stack.callback(player.close)
            updater = self.parts.updater
            over = False
            while not over:
                over = updater is None or self._done >= 1.0
                improved = False
                if self._evaluation_due(over):
                    improved = self._evaluate(report, pool, trackers)
                if over or improved or self.keeper.due(self.progress):
                    with self.interruption.held():
                        self.keeper.save(self.progress)
                if updater is not None and not over:
                    report(self.progress, self._iteration(updater, pool, trackers))

    def _evaluation_due(self, over: bool) -> bool:
        """Whether this state is to be evaluated and has not been, before an interruption."""
        at = self.progress.iteration
        due = over or at % self.config.evaluation.every == 0
        return due and self.progress.evaluated != at

    def _iteration(
        self, updater: Updater, pool: Executor | None, trackers: Sequence[Any]
    ) -> dict[str, float]:
        started = time.perf_counter()
        trees, counts = self.experience.take(self._at, pool=pool)
        rolled = time.perf_counter()
        with self.interruption.held():
            return self._update(updater, trees, counts, started, rolled, trackers)

    def _update(
        self,
        updater: Updater,
        trees: Sequence[Tree[Any]],
        counts: Counts,
        started: float,
        rolled: float,
        trackers: Sequence[Any],
    ) -> dict[str, float]:
        """Everything that changes the state, and the line that tells of it."""
        progress, train = self.progress, self.config.train
        metrics = updater.update(trees, progress.iteration, self._at.done)
        if self.parts.cast.pool:
            self._settle(trees)
        self.parts.host.publish()
        progress.baselines = dict(self.parts.parts.advantage.state())
        progress.iteration += 1
        progress.episodes += train.episodes
        progress.environment_steps += counts.joint_actions
        progress.generations += counts.generations
        progress.generated_tokens += counts.tokens
        progress.updates += int(metrics.pop("optimizer_steps"))
        self.experience.published(self._at)
        ended = time.perf_counter()
        progress.wall_seconds += ended - started
        metrics |= {
            **mean_returns(trees, self.parts.task.pays),
            **mean_objective(trees, self.parts.parts.credit),
            "seconds/rollout": rolled - started,
            "seconds/update": ended - rolled,
            "tokens_per_action": counts.tokens / counts.generations,
        }
        self._line("update", metrics, trackers)
        return metrics

    def _settle(self, trees: Sequence[Tree[Any]]) -> None:
        """Tell the cast what came of its seats; it says which past self the models become."""
        slot = self.parts.cast.settle(self.parts.parts.credited(trees))
        if slot is not None:
            for follower in self.parts.past[slot].values():
                follower.follow()
        self.progress.cast = dict(self.parts.cast.state())

    def _evaluate(self, report: Report, pool: Executor | None, trackers: Sequence[Any]) -> bool:
        """Whether it is the best evaluation so far."""
        found = evaluate_team(
            self.parts.task,
            self.parts.players,
            self.config.evaluation,
            seed=self.config.run.seed,
            credit=self.parts.parts.credit,
            cast=self.parts.cast,
            processes=self.processes,
            pool=pool,
        )
        if self.parts.exact is not None:
            found.metrics.update(self.parts.exact.metrics())
        progress, headline = self.progress, self.headline
        if headline.metric not in found.metrics:
            raise ConfigError(
                f"evaluation.headline: no metric '{headline.metric}'; "
                f"{nearest(headline.metric, found.metrics)}"
            )
        value = found.metrics[headline.metric]
        improved = headline.improves(value, progress.best.value if progress.best else None)
        shown = found.trees[: self.config.evaluation.transcripts]
        with self.interruption.held():
            progress.evaluated = progress.iteration
            if improved:
                progress.best = Best(iteration=progress.iteration, value=value)
            episodes = [
                {"iteration": progress.iteration, **transcript(self.parts.task, tree)}
                for tree in shown
            ]
            self.record.episodes(episodes)
            for tracker in trackers:
                tracker.transcripts(episodes, step=progress.environment_steps)
            self._line("evaluation", found.metrics, trackers)
        report(progress, {f"evaluation/{key}": value for key, value in found.metrics.items()})
        return improved

    def _line(self, kind: str, metrics: dict[str, float], trackers: Sequence[Any]) -> None:
        progress = self.progress
        self.record.metrics(
            Line.model_validate(
                {
                    "kind": kind,
                    "iteration": progress.iteration,
                    "environment_steps": progress.environment_steps,
                    "generated_tokens": progress.generated_tokens,
                    "updates": progress.updates,
                    "wall_seconds": progress.wall_seconds,
                    "metrics": metrics,
                }
            )
        )
        for tracker in trackers:
            named = {f"{kind}/{key}": value for key, value in metrics.items()}
            tracker.log(named, step=progress.environment_steps)

    @contextlib.contextmanager
    def _pool(self) -> Iterator[Executor | None]:
        if not self.config.run.step_workers:
            yield None
            return
        # Ctrl-C reaches the workers, too, and is this process's to answer
        quiet = (signal.SIGINT, signal.SIG_IGN)
        with ProcessPoolExecutor(
            self.config.run.step_workers, initializer=signal.signal, initargs=quiet
        ) as pool:
            try:
                yield pool
            except BrokenProcessPool:
                raise TaskError(
                    "task.step: a worker ended in the middle of a step (killed, out of memory, or "
                    "ended by the task); set run.step_workers to 0 to see where"
                ) from None

    def _write_run(self, status: Literal["running", "interrupted", "finished"]) -> RunRecord:
        evaluations = self.record.folder.evaluations()
        progress, task = self.progress, self.parts.task
        record = RunRecord(
            status=status,
            algorithm=self.config.algorithm.name,
            task=self.config.task.name,
            seed=self.config.run.seed,
            agents=tuple(task.agents),
            models={name: model.path for name, model in self.config.models.items()},
            parameters={
                key.model if key.kind == "actor" else str(key): sum(
                    p.numel() for p in network.trained().values()
                )
                for key, network in self.parts.networks.items()
                if key in self.parts.learners
            },
            version=colearn.__version__,
            started=self._started,
            wall_seconds=progress.wall_seconds,
            peak_memory_bytes=_peak_memory(),
            iterations=progress.iteration,
            rollouts=progress.episodes,
            environment_steps=progress.environment_steps,
            joint_actions=progress.environment_steps,
            generations=progress.generations,
            generated_tokens=progress.generated_tokens,
            updates=progress.updates,
            optimum=task.optimum,
            headline=self.headline,
            best=progress.best,
            first=evaluations[0].metrics if evaluations else {},
            last=evaluations[-1].metrics if evaluations else {},
        )
        self.record.run(record)
        return record


def _peak_memory() -> int:
    """Bytes: of the accelerator where one is used, else of this process."""
    if torch.accelerator.is_available():
        return int(torch.accelerator.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
