"""`train` executes one run from Python objects; a `Trainer` executes it in steps, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from colearn.config import Config, load_config
from colearn.contract import Callback
from colearn.errors import ShortTraceback
from colearn.training.loop import Experiment, Report
from colearn.training.restarts import run_with_restarts

from .kinds import (
    AlgorithmGiven,
    Arguments,
    CriticGiven,
    DataGiven,
    ModelsGiven,
    RewardGiven,
    Sections,
    TaskGiven,
)
from .named import Names
from .place import run_folder
from .result import Result, read_result
from .run_progress import RunProgress
from .settings import settings_from


def train(
    task: TaskGiven | None = None,
    algorithm: AlgorithmGiven = "collm_cc",
    *,
    models: ModelsGiven | None = None,
    critic: CriticGiven | None = None,
    reward: RewardGiven | None = None,
    data: DataGiven | None = None,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    seed: int | None = None,
    resume: bool = False,
    **settings: Unpack[Sections],
) -> Result:
    """Train a team, show the progress and return the result of the run.

    task: a DecPOMDP object or class, a name, or a section with `name` and settings; None: the task
    `dataset`, with `data` and `reward`. algorithm: a name, or an object of `colearn.algorithms`
    with parts replaced. models: a path, a pair (transformers model, tokenizer), a section, or a
    mapping by agent to any of these. critic: the critic's model, for algorithms with a critic;
    accepts the same forms as a single model in `models`. reward: one or several reward functions
    with TRL's signature, for use with `data`. data: rows as a list of dictionaries, a
    `datasets.Dataset` or a path; or a mapping with `train` and `test`. out: the run's folder; None:
    a new one under runs/. callbacks: callbacks of `colearn.training.callbacks`, or user-defined
    callbacks, in addition to the entries of `run.callbacks`. resume: continue the run in `out`;
    pass the same objects again. settings: other sections of a config (`agents`, `train`,
    `evaluation`, `run`, ...).

    Errors: ConfigError or TaskError, one line that names the argument and the remedy; also the
    errors of `Experiment`.
    """
    with ShortTraceback():
        arguments: Arguments = {
            "models": models,
            "critic": critic,
            "reward": reward,
            "data": data,
            "callbacks": callbacks,
            **settings,
        }
        given = _given_run(task, algorithm, out, seed, resume, arguments)
        progress = RunProgress(given.config)

        def started(experiment: Experiment) -> Report:
            given.names.tell(given.folder)
            return progress.started(experiment)

        record = run_with_restarts(given.config, given.folder, resume=resume, started=started)
        progress.ended(record.ending)
        return read_result(given.folder, given.names.objects)


class Trainer(Experiment):
    """A run from Python objects, with the same arguments as `colearn.train`. Execute the whole run
    with `train()`, or execute it in steps:

        with Trainer(task, models=...) as trainer:
            while not trainer.over:
                metrics = trainer.step()
            trainer.evaluate()

    Execution in steps gives the same numbers as `train()`, bit for bit.

    The run's config records importable objects by name. It records any other object as
    `object:NAME`; to resume the run, pass that object again.
    """

    def __init__(
        self,
        task: TaskGiven | None = None,
        algorithm: AlgorithmGiven = "collm_cc",
        *,
        out: str | Path | None = None,
        seed: int | None = None,
        resume: bool = False,
        **arguments: Unpack[Arguments],
    ) -> None:
        """Arguments and errors: as for `train`."""
        with ShortTraceback():
            given = _given_run(task, algorithm, out, seed, resume, arguments)
            self._objects = given.names.objects
            super().__init__(given.config, given.folder, resume=resume)
            given.names.tell(given.folder)

    def train(self) -> Result:
        """Trains until the budget is used up, with the config's evaluations and checkpoints. Shows
        the progress and returns the result.

        Errors: as for `run`.
        """
        progress = RunProgress(self.team.run.config)
        with ShortTraceback():
            record = self.run(progress.started(self))
            progress.ended(record.ending)
        return read_result(self.folder, self._objects)


@dataclass(frozen=True, slots=True)
class _GivenRun:
    config: Config
    folder: Path
    names: Names


def _given_run(
    task: TaskGiven | None,
    algorithm: AlgorithmGiven,
    out: str | Path | None,
    seed: int | None,
    resume: bool,
    arguments: Arguments,
) -> _GivenRun:
    """Returns a run's config, its folder, and the names of the objects in the config."""
    names = Names()
    settings = settings_from(task, names, arguments, seed)
    config = load_config({**settings, "algorithm": names.algorithm(algorithm)})
    return _GivenRun(config, run_folder(config, out, resume=resume), names)
