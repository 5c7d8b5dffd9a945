"""Restarts: a run that lost a server or a worker continues from its last complete iteration; a run
that lost a model continues from its last checkpoint."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

from colearn.config import Config
from colearn.errors import ColearnError, ModelLost, ServerLost, WorkerLost
from colearn.runs.record import RunRecord
from colearn.runs.record.folder import RUN
from colearn.text.launcher import relaunches
from colearn.text.notes import note

from .loop import Experiment, Report


def run_with_restarts(
    config: Config,
    folder: str | Path,
    *,
    resume: bool = False,
    started: Callable[[Experiment], Report | None] = lambda _: None,
) -> RunRecord:
    """Run an experiment to its end. After the loss of a server, worker or model, the experiment is
    rebuilt from its checkpoint, at most `run.restarts` times. Processes that torchrun has restarted
    resume in the same way.

    started: a function that is called with every new experiment and returns the function that
    receives the experiment's reports. Neither function may keep a reference to the experiment,
    since the models are freed before the next experiment loads.
    Errors: as for `Experiment` and `Experiment.run`; the last loss if no restart is left.
    """
    resume = resume or relaunches() > 0
    restarts = 0
    while True:
        try:
            return _run(config, folder, resume, started)
        except (ModelLost, ServerLost, WorkerLost) as error:
            if restarts == config.run.restarts:
                raise
            reason = str(error).partition(";")[0]
        resume = (Path(folder) / RUN).exists()  # not if it was lost while models were loaded
        restarts += 1
        gc.collect()  # the lost experiment's models
        note(f"restart {restarts} of {config.run.restarts}: {reason}")


def _run(
    config: Config,
    folder: str | Path,
    resume: bool,
    started: Callable[[Experiment], Report | None],
) -> RunRecord:
    experiment = Experiment(config, folder, resume=resume)
    try:
        return experiment.run(started(experiment))
    except (ModelLost, ServerLost, WorkerLost):
        raise  # what the folder holds can be resumed
    except ColearnError:
        experiment.record.discard()
        raise
