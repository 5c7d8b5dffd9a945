"""A run from Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from colearn.contract import Callback
from colearn.errors import ShortTraceback
from colearn.experiment.loop import Experiment

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
from .run_progress import RunProgress
from .settings import config_from


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
        models: ModelsGiven | None = None,
        critic: CriticGiven | None = None,
        reward: RewardGiven | None = None,
        data: DataGiven | None = None,
        out: str | Path | None = None,
        callbacks: Sequence[Callback] = (),
        seed: int | None = None,
        resume: bool = False,
        **settings: Unpack[Sections],
    ) -> None:
        """Arguments and errors: as for `train`."""
        with ShortTraceback():
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
            self._objects = names.objects
            super().__init__(config, folder, resume=resume)
            names.tell(folder)

    def train(self) -> Result:
        """Trains until the budget is used up, with the config's evaluations and checkpoints. Shows
        the progress and returns the result.

        Errors: as for `run`.
        """
        with ShortTraceback(), RunProgress(self.assembly.run.config) as progress:
            record = self.run(progress.started(self))
            progress.ended(record.ending)
        return read_result(self.folder, self._objects)
