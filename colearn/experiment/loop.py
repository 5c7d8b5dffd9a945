"""Training loop: rollout, update, evaluation, checkpoints; independent of the algorithm."""

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
from colearn.contract.timeline import Timed, Timeline
from colearn.errors import ConfigError, ServerLost, WorkerLost, nearest
from colearn.models.load import resolve_device
from colearn.record import Best, Line, Progress, RunRecord, RunWriter
from colearn.record.time_use import time_use
from colearn.record.transcript import transcript
from colearn.rollout.counts import Counts
from colearn.rollout.transition import items_of
from colearn.seeding import derive_seed
from colearn.types import Tree

from .ahead import Ahead
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
"""Called after every update and evaluation with the progress and the latest metrics."""


class Experiment:
    """One run: an algorithm on a task with a seed, recorded in a folder.

    On the CPU the same config gives the same run bit for bit, interrupted or not: all randomness is
    a function of the seed and the iteration.
    """

    def __init__(self, config: Config, folder: str | Path, *, resume: bool = False) -> None:
        folder = Path(folder)
        self.processes = Processes(resolve_device(config.run.device))
        self.record = RunWriter(folder, config, resume=resume, writes=self.processes.main)
        with contextlib.ExitStack() as undo:
            undo.callback(self.record.close)
            torch.manual_seed(derive_seed(config.run.seed, "torch"))
            self.parts: Assembly = assemble(config)
            undo.callback(self.parts.task.close)
            self.timeline = Timeline()
            self._timed = _timed(self.parts)
            for name, one in self._timed.items():
                one.timeline, one.timed_as = self.timeline, name
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
            resumed = self.keeper.load() if resume else None
            self._costs = self.record.folder.record().costs if resume else {}
            self.record.rewind(resumed)
            if resumed is not None:
                self.parts.host.publish()
            self.progress = resumed or Progress()
            self.parts.parts.advantage.restore(self.progress.baselines)
            self.parts.cast.restore(self.progress.cast)
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
            self.experience: Experience = self._experience()
            undo.callback(self.experience.close)
            if resumed is not None:
                self.experience.restore(self.keeper.newest, self._at)
            self.keeper.experience = self.experience
            undo.pop_all()
        self.headline = self.parts.run.headline
        self.interruption = Interruption(self.processes)
        self._started = datetime.now(UTC).isoformat(timespec="seconds")

    def _experience(self) -> Experience:
        staleness = self.config.train.staleness if self.parts.updater is not None else 0
        if not staleness:
            return Now(self.episodes, self.processes)
        for generator in self.parts.generators:
            generator.lags = True
        publish = self.parts.host.publish
        return Ahead(self.episodes, self.processes, self.parts.learners, publish, staleness)

    def run(self, report: Report | None = None) -> RunRecord:
        """Train to the end of the budget, or evaluate once if the algorithm does not learn; returns
        the content of run.json.

        Errors: Interrupted on Ctrl-C or SIGTERM, after saving the state; ServerLost and WorkerLost
        likewise; CheckpointError if a file cannot be written.
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
        """The trees of the next update, grown with the current weights. The run's state does not
        change: it draws the same trees again."""
        return self.episodes.grow(self._at, self.episodes.draw(self._at))[0]

    @property
    def _at(self) -> At:
        return At(self.progress.iteration, self.progress.episodes, self._done)

    @property
    def _done(self) -> float:
        """Used fraction of the training budget, in joint actions or iterations, whichever ends the
        run first."""
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
            stack.callback(self.parts.task.close)
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

    @contextlib.contextmanager
    def _kept_if_lost(self) -> Iterator[None]:
        """Keep the state if a server or a worker is lost: it is that of a complete iteration.
        Other ranks do not know of the loss, so that with several the last checkpoint has to do."""
        try:
            try:
                yield
            except BrokenProcessPool:
                raise WorkerLost(
                    "task.step: a worker process died during a step (killed, out of memory, or "
                    "ended by the task); set run.step_workers to 0 to see where"
                ) from None
        except (ServerLost, WorkerLost):
            if self.processes.count == 1:
                self.keeper.save(self.progress)
                self._write_run("interrupted")
            raise

    def _evaluation_due(self, over: bool) -> bool:
        """Whether this state is due for evaluation and was not evaluated before a resume."""
        at = self.progress.iteration
        due = over or at % self.config.evaluation.every == 0
        return due and self.progress.evaluated != at

    def _iteration(
        self, updater: Updater, pool: Executor | None, trackers: Sequence[Any]
    ) -> dict[str, float]:
        started = time.perf_counter()
        with self._kept_if_lost():
            trees, counts = self.experience.take(self._at, pool=pool)
        rolled = time.perf_counter()
        with self._kept_if_lost(), self.interruption.held():
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
        progress.baselines = dict(self.parts.parts.advantage.state())
        progress.iteration += 1
        progress.episodes += train.episodes
        progress.environment_steps += counts.joint_actions
        progress.generations += counts.generations
        progress.generated_tokens += counts.tokens
        progress.updates += int(metrics.pop("optimizer_steps"))
        lost: ServerLost | None = None
        try:
            if self.experience.refresh(self._at):
                self.parts.host.publish()
            self.experience.published(self._at)
        except ServerLost as error:  # raised once the iteration is complete, and then kept
            lost = error
        ended = time.perf_counter()
        progress.wall_seconds += ended - started
        metrics |= {
            **mean_returns(trees, self.parts.task.pays),
            **mean_objective(trees, self.parts.parts.credit),
            "seconds/rollout": rolled - started,
            "seconds/update": ended - rolled,
            **time_use(self.timeline.take(started, ended), self._timed, ended - started),
            "tokens_per_action": counts.tokens / counts.generations,
            **self.experience.metrics(),
        }
        self._line("update", metrics, trackers)
        if lost is not None:
            raise lost
        return metrics

    def _settle(self, trees: Sequence[Tree[Any]]) -> None:
        """Report the episodes to the cast, and copy the models into the slot it chooses."""
        slot = self.parts.cast.settle(self.parts.parts.credited(trees))
        if slot is not None:
            for follower in self.parts.past[slot].values():
                follower.follow()
        self.progress.cast = dict(self.parts.cast.state())

    def _evaluate(self, report: Report, pool: Executor | None, trackers: Sequence[Any]) -> bool:
        """Evaluate; returns whether it is the best evaluation so far."""
        self.experience.settle()
        with self._kept_if_lost():
            if self.config.train.staleness:
                self.parts.host.publish()
            evaluation = evaluate_team(
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
            evaluation.metrics.update(self.parts.exact.metrics())
        progress, headline = self.progress, self.headline
        if headline.metric not in evaluation.metrics:
            raise ConfigError(
                f"evaluation.headline: no metric '{headline.metric}'; "
                f"{nearest(headline.metric, evaluation.metrics)}"
            )
        value = evaluation.metrics[headline.metric]
        improved = headline.improves(value, progress.best.value if progress.best else None)
        shown = evaluation.trees[: self.config.evaluation.transcripts]
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
            self._line("evaluation", evaluation.metrics, trackers)
        report(progress, {f"evaluation/{key}": value for key, value in evaluation.metrics.items()})
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
            yield pool

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
            costs=self._all_costs(),
            first=evaluations[0].metrics if evaluations else {},
            last=evaluations[-1].metrics if evaluations else {},
        )
        self.record.run(record)
        return record

    def _all_costs(self) -> dict[str, float]:
        """Costs of the task's services in this process and, if resumed, in the ones before."""
        costs = self.parts.task.costs()
        return {n: self._costs.get(n, 0.0) + costs.get(n, 0.0) for n in {**self._costs, **costs}}


def _timed(parts: Assembly) -> dict[str, Timed]:
    """Generators and learners by their names in the timeline: a model's learner has the model's
    name, one of several generators that of its first player."""
    timed: dict[str, Timed] = {}
    players = parts.host.players.items()
    for generator in parts.generators:
        first = next(name for name, hosted in players if hosted.generator is generator)
        several = len(parts.generators) > 1
        timed[f"generator/{first}" if several else "generator"] = generator
    for key, learner in parts.learners.items():
        timed[f"critic/{key.model}" if key.kind == "critic" else key.model] = learner
    return timed


def _peak_memory() -> int:
    """Peak memory in bytes: of the accelerator if one is used, else of this process."""
    if torch.accelerator.is_available():
        return int(torch.accelerator.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
