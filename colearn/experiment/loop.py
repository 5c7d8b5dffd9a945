"""The loop: roll out, score, update, evaluate, checkpoint. It knows no algorithm."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import colearn
from colearn.config import Config
from colearn.models.load import resolve_device
from colearn.rollout.collect import collect
from colearn.rollout.validate import validate_items
from colearn.seeding import derive_rng, derive_seed
from colearn.types import Tree

from .assemble import Assembly, assemble
from .checkpoint import Progress, list_checkpoints, load_checkpoint, save_checkpoint
from .evaluate import evaluate_team, transcript
from .processes import Processes
from .record import Record
from .trackers import open_trackers
from .update import Updater

Report = Callable[[Progress, dict[str, float]], None]
"""Told after every update and evaluation how far the run is, with the latest numbers."""


class Experiment:
    """One algorithm on one task with one seed, in one folder.

    The same config gives the same run, bit for bit on the CPU, whether it was interrupted or not:
    everything drawn is a function of the seed and the iteration.
    """

    def __init__(self, config: Config, folder: Path, *, resume: bool = False) -> None:
        self.processes = Processes(resolve_device(config.run.device))
        self.record = Record(folder, config, resume=resume, writes=self.processes.main)
        torch.manual_seed(derive_seed(config.run.seed, "torch"))
        self.parts: Assembly = assemble(config)
        self.items = list(validate_items(self.parts.task.items("train"), "train"))
        self.record.open()
        self.config = self.parts.config
        self.folder = folder
        self.progress = Progress()
        found = list_checkpoints(folder / "checkpoints")
        if resume and found:
            self.progress = load_checkpoint(found[-1], self.parts.learners)
            for generator in self.parts.generators:
                generator.sync()
        self.record.rewind(self.progress.iteration or -1)
        self._started = datetime.now(UTC).isoformat(timespec="seconds")

    def run(self, report: Report | None = None) -> dict[str, Any]:
        """Train to the end of the budget, or evaluate once where nothing is learned; gives what
        run.json holds."""
        report = report or (lambda _, __: None)
        self._write_run("running")
        trackers = open_trackers(
            self.config.run.trackers if self.processes.main else (),
            self.folder,
            self.config.model_dump(mode="json"),
        )
        with self._pool() as pool, contextlib.ExitStack() as stack:
            for tracker in trackers:
                stack.callback(tracker.close)
            for generator in self.parts.generators:
                stack.callback(generator.close)
            if self.progress.iteration == 0:
                report(self.progress, self._evaluate(pool, trackers))
            updater = self.parts.updater
            if updater is None:
                self._save()
            while (
                updater is not None
                and self.progress.environment_steps < self.config.train.environment_steps
            ):
                report(self.progress, self._iteration(updater, pool, trackers))
                at = self.progress.iteration
                over = self.progress.environment_steps >= self.config.train.environment_steps
                if over or at % self.config.evaluation.every == 0:
                    report(self.progress, self._evaluate(pool, trackers))
                every = self.config.run.checkpoint_every
                if over or (every is not None and at % every == 0):
                    self._save()
        return self._write_run("finished")

    def _iteration(
        self, updater: Updater, pool: Executor | None, trackers: Sequence[Any]
    ) -> dict[str, float]:
        started = time.perf_counter()
        progress, train = self.progress, self.config.train
        first, items = self.processes.share_of(self._draw_items())
        trees, counts = self.processes.exchange(
            *collect(
                self.parts.task,
                items,
                self.parts.players,
                self.parts.parts.rollout,
                seed=derive_seed(self.config.run.seed, "train"),
                first_episode=progress.episodes + first,
                pool=pool,
            )
        )
        rolled = time.perf_counter()
        done = progress.environment_steps / train.environment_steps
        metrics = updater.update(trees, progress.iteration, done)
        for generator in self.parts.generators:
            generator.sync()
        progress.iteration += 1
        progress.episodes += train.episodes
        progress.environment_steps += counts.joint_actions
        progress.generations += counts.generations
        progress.generated_tokens += counts.tokens
        progress.updates += int(metrics.pop("optimizer_steps"))
        ended = time.perf_counter()
        progress.wall_seconds += ended - started
        metrics |= {
            "return": _mean_return(trees),
            "seconds/rollout": rolled - started,
            "seconds/update": ended - rolled,
            "tokens_per_action": counts.tokens / counts.generations,
        }
        self._line("update", metrics, trackers)
        return metrics

    def _draw_items(self) -> list[Any]:
        """The next items of an endless sequence of shuffled passes over the training items."""
        first, chosen = self.progress.episodes, []
        for place in range(first, first + self.config.train.episodes):
            turn, number = divmod(place, len(self.items))
            order = derive_rng(self.config.run.seed, "items", turn).permutation(len(self.items))
            chosen.append(self.items[int(order[number])])
        return chosen

    def _evaluate(self, pool: Executor | None, trackers: Sequence[Any]) -> dict[str, float]:
        found = evaluate_team(
            self.parts.task,
            self.parts.players,
            self.config.evaluation,
            seed=self.config.run.seed,
            processes=self.processes,
            pool=pool,
        )
        if self.parts.exact is not None:
            found.metrics.update(self.parts.exact.metrics())
        self._line("evaluation", found.metrics, trackers)
        shown = found.trees[: self.config.evaluation.transcripts]
        self.record.episodes(
            {"iteration": self.progress.iteration, **transcript(self.parts.task, tree)}
            for tree in shown
        )
        return {f"evaluation/{key}": value for key, value in found.metrics.items()}

    def _line(self, kind: str, metrics: dict[str, float], trackers: Sequence[Any]) -> None:
        progress = self.progress
        self.record.metrics(
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
        for tracker in trackers:
            named = {f"{kind}/{key}": value for key, value in metrics.items()}
            tracker.log(named, step=progress.environment_steps)

    def _save(self) -> None:
        save_checkpoint(
            self.folder / "checkpoints",
            self.parts.learners,
            self.progress,
            keep=self.config.run.keep_checkpoints,
            processes=self.processes,
        )

    @contextlib.contextmanager
    def _pool(self) -> Iterator[Executor | None]:
        if not self.config.run.step_workers:
            yield None
            return
        with ProcessPoolExecutor(self.config.run.step_workers) as pool:
            yield pool

    def _write_run(self, status: str) -> dict[str, Any]:
        evaluations = self.record.evaluations()
        progress, task = self.progress, self.parts.task
        fields: dict[str, Any] = {
            "status": status,
            "algorithm": self.config.algorithm.name,
            "task": self.config.task.name,
            "seed": self.config.run.seed,
            "agents": list(task.agents),
            "models": {name: model.path for name, model in self.config.models.items()},
            "parameters": {
                name.removeprefix("actor-"): sum(p.numel() for p in network.trained().values())
                for name, network in self.parts.networks.items()
                if name in self.parts.learners
            },
            "version": colearn.__version__,
            "started": self._started,
            "peak_memory_bytes": _peak_memory(),
            "iterations": progress.iteration,
            "joint_actions": progress.environment_steps,
            "rollouts": progress.episodes,
            "optimum": getattr(task, "optimum", None),
            "first": evaluations[0]["metrics"] if evaluations else {},
            "last": evaluations[-1]["metrics"] if evaluations else {},
            **{k: v for k, v in asdict(progress).items() if k not in ("iteration", "episodes")},
        }
        self.record.run(**fields)
        return fields


def _mean_return(trees: Sequence[Tree[Any]]) -> float:
    return float(np.mean([tree.returns(1.0)[0] for tree in trees]))


def _peak_memory() -> int:
    """Bytes: of the accelerator where one is used, else of this process."""
    if torch.accelerator.is_available():
        return int(torch.accelerator.max_memory_allocated())
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
