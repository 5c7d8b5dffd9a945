"""Training loop: rollout, update, evaluation, checkpoints; independent of the algorithm."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import nan
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from colearn.config import Config, build_algorithm, with_critic_baseline
from colearn.contract.checked_task import CheckedTask
from colearn.contract.global_switches import SwitchState, checked
from colearn.contract.seeding import derive_seed
from colearn.contract.types import Tree
from colearn.errors import ConfigError, ModelLost, ServerLost, WorkerLost
from colearn.models.load import resolve_device
from colearn.rollout.counts import Counts
from colearn.rollout.size import oversized
from colearn.runs.record import Best, Progress, RunFolder, RunRecord, RunWriter
from colearn.runs.record.place import named_folder
from colearn.text.notes import note

from .checkpoint_manager import CheckpointManager
from .default_generator import with_default_generator
from .evaluation.evaluate import evaluate_run, exact_evaluator, headline_value
from .experience import Experience, TrainingPoint
from .garbage import few_collections
from .interruption import Interrupted, Interruption
from .iteration_metrics import RunClock, rollout_metrics
from .listeners import Listeners
from .load_team import load_team
from .part_states import restore_parts, settle_cast, store_parts
from .processes import Processes
from .run_summary import RunStatus, RunSummary
from .stale_rollouts import StaleRollouts
from .step_workers import StepWorkers, step_workers
from .team import Team
from .update.build_updater import build_updater
from .update.updater import Updater

Report = Callable[[Progress, dict[str, float]], None]
"""Called after every update and evaluation with the progress and the latest metrics."""

_BUILDING = threading.RLock()
"""Held while a run is built. The global random generator, and the functions of torch that
transformers replaces while it reads a model, are those of all threads: two runs that were built at
once would draw other weights, or none."""


class Experiment:
    """One run, recorded in a folder: trains an algorithm on a task with one seed.

    On the CPU, runs with the same config are identical bit for bit, even after an interruption,
    because all randomness is a function of the seed and the iteration.
    """

    def __init__(self, config: Config, folder: str | Path, *, resume: bool = False) -> None:
        folder = named_folder(folder).absolute()  # code of the user may change the current one
        device = resolve_device(config.run.device)
        self.processes = Processes(device)
        before = RunFolder(folder)
        recorded = before.config() if resume and before.status != "not started" else None
        config = with_default_generator(
            config, device.type, recorded=recorded, tells=self.processes.main
        )
        config = with_critic_baseline(
            config, build_algorithm(config).checked_parts(), recorded=recorded
        )
        self.record = RunWriter(folder, config, resume=resume, writes=self.processes.main)
        with _BUILDING, contextlib.ExitStack() as resources:
            resources.callback(self.record.close)
            self._opened = resources.enter_context(contextlib.ExitStack())
            torch.manual_seed(derive_seed(config.run.seed, "torch"))
            self.team: Team = load_team(config)
            run = self.team.run
            for closes in (run.task.close, self.team.close):
                resources.callback(closes)
            self.updater = build_updater(self.team)
            self.exact = exact_evaluator(self.team)
            self.clock = RunClock(self.team)
            items = CheckedTask(run.task).items("train")
            self.record.open()
            self.folder = folder
            self.checkpoints = CheckpointManager(self.record, self.team, self.processes)
            resumed = self.checkpoints.load() if resume else None
            self._summary = RunSummary(self.record, self.team, resumed=resume)
            self.record.rewind(resumed)
            self.progress = resumed or Progress()
            if resumed is None:
                run.parts.advantage.restore({})
                store_parts(self.progress, run, self.updater)  # a given critic has means by item
            else:
                self._publish()
                restore_parts(resumed, run, self.updater)
            self.experience = self._experience(items)
            resources.callback(lambda: self.experience.close())
            if resumed is not None:
                self.experience.restore(self.checkpoints.loaded, self._at)
            self.checkpoints.experience = self.experience
            self.listeners = Listeners(run, self.record, self.processes, self.progress)
            self._resources = resources.pop_all()
        self._resumed, self._started = resume, False
        self._pool: StepWorkers | None = None
        self.interruption = Interruption(self.processes)

    def _experience(self, items: Sequence[Any]) -> Experience:
        run = self.team.run
        staleness = run.config.train.staleness if run.algorithm.learns else 0
        source: Callable[..., Experience] = Experience
        if staleness:
            for generator in self.team.engines:
                generator.lags = True
            learners, publish = self.team.learners, self._publish
            source = partial(StaleRollouts, learners=learners, publish=publish, staleness=staleness)
        return source(
            task=run.task,
            items=items,
            players=self.team.players,
            rollout=run.parts.rollout,
            credit=run.parts.credit,
            cast=run.cast,
            seed=run.config.run.seed,
            count=run.config.train.episodes,
            order=run.config.run.order,
            processes=self.processes,
            at_once=run.config.train.at_once,
        )

    def _publish(self) -> None:
        """Send the learners' weights to all generators. Errors: an error on one rank is raised on
        all ranks."""
        self.processes.all_of(self.team.publish)

    def run(self, report: Report | None = None) -> RunRecord:
        """Train to the end of the budget, with evaluations and checkpoints as configured, or
        evaluate once if the algorithm does not learn. Returns the content of run.json.

        Errors: Interrupted on Ctrl-C or SIGTERM, ServerLost and WorkerLost, all raised after the
        state is saved; ModelLost, raised without saving; CheckpointError if a file cannot be
        written.
        """
        report = report or (lambda _, __: None)
        with self.interruption, self._resources:
            try:
                self.start()
                self._train(report)
            except Interrupted:
                self._save()
                self._write_run("interrupted")
                raise
            except ModelLost:  # its weights are gone, and the others' may have moved
                self._write_run("interrupted")
                raise
            return self._write_run("finished")

    def start(self) -> None:
        """Open a run's resources: trackers and worker processes. `run`, `step`,
        `evaluate` and `save` call it."""
        if self._started:
            return
        self._started = True
        run, opened = self.team.run, self._opened
        self._write_run("running")
        self._pool = opened.enter_context(step_workers(run.config.run.step_workers, run.task))
        opened.enter_context(few_collections())
        opened.callback(self.listeners.end)
        self.listeners.start(resumed=self._resumed)
        if self._pool is not None:
            self._summary.elsewhere = self._pool.costs
        if not self.progress.iteration:
            self._tell_large_iteration()

    @property
    def over(self) -> bool:
        """Whether no iteration is left, because the budget is used up, a callback has stopped the
        run, or the algorithm does not learn."""
        stopped = self.listeners.stop is not None
        return self.updater is None or stopped or self._done >= 1.0

    def step(self) -> dict[str, float]:
        """Run one iteration, which consists of rollout and update; returns the iteration's metrics.

        Errors: ConfigError if no iteration is left (`over`); otherwise as for `run`. After
        Interrupted, the state is the state after a complete iteration.
        """
        if self.over:
            raise ConfigError("train: no iteration is left; raise train.environment_steps")
        with self._driven():
            return self._iteration()

    def evaluate(self) -> dict[str, float]:
        """Evaluate the current state and return the metrics; each state is evaluated only once.
        Saves the state if its headline metric is the best so far."""
        with self._driven():
            if self.progress.evaluated == self.progress.iteration:
                line = self.record.folder.evaluations()[-1]
                return {
                    name: nan if value is None else value for name, value in line.metrics.items()
                }
            metrics, improved = self._evaluate()
            if improved:
                with self.interruption.held():
                    self._save()
            return metrics

    def save(self) -> None:
        """Write a checkpoint of the current state, unless this state was already saved."""
        with self._driven(), self.interruption.held():
            self._save()

    def close(self) -> RunRecord:
        """Save the state and end the run; a run that is not `over` can be resumed. Returns the
        content of run.json."""
        with self._resources:
            self.save()
            return self._write_run("finished" if self.over else "interrupted")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Call `close`. After an error, nothing is saved, because an incomplete iteration may have
        changed the state."""
        if exception is None or isinstance(exception, Interrupted):
            self.close()
            return
        with self._resources:
            self._write_run("interrupted")

    def trees(self) -> list[Tree[Any]]:
        """Returns the trees of the next update, grown with the current weights. The run's state
        does not change: the next update grows the same trees again."""
        return self.experience.grow(self._at, self.experience.draw(self._at))[0]

    @property
    def _at(self) -> TrainingPoint:
        return TrainingPoint(self.progress.iteration, self.progress.episodes, self._done)

    @property
    def _done(self) -> float:
        """Used fraction of the training budget: the larger of the fractions in joint actions and in
        iterations."""
        train, progress = self.team.run.config.train, self.progress
        share = progress.environment_steps / train.environment_steps
        if train.iterations is None:
            return share
        return max(share, progress.iteration / train.iterations)

    @contextlib.contextmanager
    def _driven(self) -> Iterator[None]:
        with self.interruption:
            self.start()
            yield

    def _train(self, report: Report) -> None:
        while True:
            over = self.over
            improved = False
            if self._evaluation_due(over):
                metrics, improved = self._evaluate()
                report(self.progress, {f"evaluation/{k}": value for k, value in metrics.items()})
            over = over or self.over
            if over or improved or self.checkpoints.due(self.progress):
                with self.interruption.held():
                    self._save()
            if over:
                return
            report(self.progress, self._iteration())

    def _save(self) -> None:
        checkpoint = self.checkpoints.save(self.progress)
        if checkpoint is not None:
            self.listeners.saved(checkpoint)

    @contextlib.contextmanager
    def _kept_if_lost(self) -> Iterator[None]:
        """Context manager that saves the state of the last complete iteration if a server or a
        worker is lost. The state is saved only if all ranks have detected the loss. If the state is
        not saved, the run continues from the last checkpoint."""
        try:
            yield
        except (ServerLost, WorkerLost) as error:
            if self.processes.count == 1 or error.everywhere:
                self._save()
                self._write_run("interrupted")
            raise

    def _evaluation_due(self, over: bool) -> bool:
        """Whether this state is due for evaluation and was not already evaluated before a
        resume."""
        at = self.progress.iteration
        due = over or at % self.team.run.config.evaluation.every == 0
        return due and self.progress.evaluated != at

    def _iteration(self) -> dict[str, float]:
        updater = self.updater
        assert updater is not None, "a run without an updater is over"
        staleness = self.team.run.config.train.staleness
        started, switches = time.perf_counter(), SwitchState(generating=staleness > 0)
        with self._kept_if_lost():
            trees, counts = self.experience.take(self._at, pool=self._pool)
        rolled = time.perf_counter()
        self.listeners.rollout(trees)
        switches.check("the code of the task or of the algorithm's parts")
        if not self.team.run.config.train.staleness:
            with self._kept_if_lost():
                self.team.rest()
        with self._kept_if_lost(), self.interruption.held():
            metrics = self._update(updater, trees, counts, started, rolled)
        switches.check("the code of the algorithm's parts")
        return metrics

    def _tell_large_iteration(self) -> None:
        """Report on stderr that one iteration may exceed the budget."""
        run = self.team.run
        line = oversized(
            run.task,
            self.experience.items,
            run.parts.rollout,
            episodes=run.config.train.episodes,
            budget=run.budget,
        )
        if line is not None:
            note(f"train.environment_steps: {line}")

    def _update(
        self,
        updater: Updater,
        trees: Sequence[Tree[Any]],
        counts: Counts,
        started: float,
        rolled: float,
    ) -> dict[str, float]:
        """Run the part of an iteration that changes the state, and write its line of metrics."""
        progress, train = self.progress, self.team.run.config.train
        metrics = updater.update(
            trees, progress.iteration, self._at.done, self.experience.sampled_at(self._at)
        )
        settle_cast(self.team, trees)
        store_parts(progress, self.team.run, updater)
        progress.iteration += 1
        progress.episodes += train.episodes
        progress.environment_steps += counts.joint_actions
        progress.generations += counts.generations
        progress.generated_tokens += counts.tokens
        progress.updates += int(metrics.pop("optimizer_steps"))
        lost: ServerLost | None = None
        try:
            if self.experience.refresh(self._at):
                self._publish()
        except ServerLost as error:  # raised once the iteration is complete, and then kept
            lost = error
        ended = time.perf_counter()
        progress.wall_seconds += ended - started
        metrics |= {
            **rollout_metrics(trees, counts, self.team.run),
            **self.clock.metrics(started, rolled, ended),
            **self.experience.metrics(),
        }
        self.listeners.update(trees, metrics, updater.critic_line)
        if lost is not None:
            raise lost
        return metrics

    def _evaluate(self) -> tuple[dict[str, float], bool]:
        """Evaluate the current state. Returns the metrics, and whether the headline metric is the
        best so far."""
        self.experience.settle()
        with self._kept_if_lost():
            if self.team.run.config.train.staleness:
                self._publish()
            with checked("the code of the task"):
                evaluation = evaluate_run(self.team, self.exact, self.processes, self._pool)
        progress, headline = self.progress, self.team.run.headline
        with self.interruption.held():
            self.listeners.evaluation(evaluation.trees, evaluation.metrics)
            value = headline_value(evaluation, headline)
            progress.evaluated = progress.iteration
            improved = headline.improves(value, progress.best.value if progress.best else None)
            if improved:
                progress.best = Best(iteration=progress.iteration, value=value)
        return evaluation.metrics, improved

    def _write_run(self, status: RunStatus) -> RunRecord:
        return self._summary.write(status, self.progress, stopped=self.listeners.stop)
