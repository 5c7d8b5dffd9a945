"""The simulated schedule against a small real run, from the seconds of its parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_staleness import _notes, config_of, folder  # noqa: F401 - fixtures

from colearn.estimate.schedule import simulate
from colearn.experiment.experience import TrainingEpisodes
from colearn.experiment.loop import Experiment
from colearn.experiment.update.updater import Updater


def timed(
    call: Callable[..., Any], seconds: list[float], *, waits: float = 0.0
) -> Callable[..., Any]:
    """The call, which also waits: for so long that a busy processor changes little."""

    def run(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            time.sleep(waits)
            return call(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - start)

    return run


@pytest.mark.parametrize("staleness", [0, 1, 2])
def test_an_iteration_takes_the_simulated_time_within_a_quarter(
    folder: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    staleness: int,
) -> None:
    changed = {"train.iterations": 12, "evaluation.every": 1000, "train.episodes": 4}
    config = config_of(folder, staleness, **changed)
    experiment = Experiment(config, tmp_path / "run")
    rollouts: list[float] = []
    updates: list[float] = []
    transfers: list[float] = []
    monkeypatch.setattr(
        TrainingEpisodes, "grow", timed(TrainingEpisodes.grow, rollouts, waits=0.25)
    )
    monkeypatch.setattr(Updater, "update", timed(Updater.update, updates, waits=0.2))
    host = experiment.assembly.host
    if staleness:  # the experience was given the method itself
        monkeypatch.setattr(experiment.experience, "_publish", timed(host.publish, transfers))
    monkeypatch.setattr(host, "publish", timed(host.publish, transfers))
    ends: list[float] = []

    def report(progress: Any, metrics: Any) -> None:
        if "seconds/update" in metrics:
            ends.append(time.perf_counter())

    experiment.run(report)
    assert len(updates) == len(ends) == 12
    measured = (ends[-1] - ends[0]) / 11
    simulated = simulate(
        rollouts, updates, transfer=sum(transfers) / len(transfers), staleness=staleness
    )
    print(f"\nstaleness {staleness}: {measured:.3f} s measured, {simulated.seconds:.3f} simulated")
    assert simulated.seconds == pytest.approx(measured, rel=0.25)
