"""`train` executes one run from Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from colearn.contract import Callback
from colearn.errors import ShortTraceback

from .kinds import (
    AlgorithmGiven,
    CriticGiven,
    DataGiven,
    ModelsGiven,
    RewardGiven,
    Sections,
    TaskGiven,
)
from .place import run_folder
from .result import Result, read_result
from .settings import config_from

if TYPE_CHECKING:
    from colearn.experiment.loop import Experiment, Report


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
    a new one under runs/. callbacks: callbacks of `colearn.experiment.callbacks`, or user-defined
    callbacks, in addition to the entries of `run.callbacks`. resume: continue the run in `out`;
    pass the same objects again. settings: other sections of a config (`agents`, `train`,
    `evaluation`, `run`, ...).

    Errors: ConfigError or TaskError, one line that names the argument and the remedy; also the
    errors of `Experiment`.
    """
    with ShortTraceback():
        from colearn.experiment.restarts import run_with_restarts  # loads torch

        from .run_progress import RunProgress

        config, names = config_from(
            task,
            algorithm,
            models=models,
            critic=critic,
            reward=reward,
            data=data,
            callbacks=callbacks,
            seed=seed,
            sections=settings,
        )
        folder = run_folder(config, out, resume=resume)
        with RunProgress(config) as progress:

            def started(experiment: Experiment) -> Report:
                names.tell(folder)
                return progress.started(experiment)

            record = run_with_restarts(config, folder, resume=resume, started=started)
            progress.ended(record.ending)
        return read_result(folder, names.objects)
