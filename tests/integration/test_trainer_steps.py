"""A run that its program drives: step, evaluate, save, close; the numbers of the whole run."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import colearn
from colearn.algorithms.spiral_rae import SpiralRAE
from colearn.contract import Credit
from colearn.errors import ConfigError
from colearn.methods.credit.shared_reward import SharedReward
from colearn.runs.record import RunFolder
from colearn.training.interruption import Interrupted
from colearn.training.learners.learner import NetworkLearner
from tests.integration.test_objects import ROWS, SETTINGS, TEAM, TINY, even, measured

SMALL = {**SETTINGS, "train": {"environment_steps": 1000, "episodes": 1, "iterations": 3}}


def trainer(out: Path, **changes: Any) -> colearn.Trainer:
    return colearn.Trainer(
        TEAM, "magrpo", models=TINY, data=ROWS, reward=even, out=out, **{**SMALL, **changes}
    )


def weights(folder: Path) -> dict[str, Any]:
    """The tensors of the newest checkpoint's files, by file and name."""
    newest = colearn.open_run(folder).checkpoints.choose().path
    files = sorted(newest.rglob("*.safetensors"))
    return {f"{f.relative_to(newest)}:{k}": v for f in files for k, v in load_file(f).items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by `train()`, with an evaluation before each of its iterations and at its end."""
    return trainer(tmp_path_factory.mktemp("whole") / "run").train().folder


def iterations(folder: RunFolder) -> list[int]:
    """The iterations of a run's checkpoints."""
    return [one.iteration for one in folder.checkpoints.all()]


@dataclass(frozen=True, kw_only=True)
class Driven:
    """What a program saw of a run that it drove to the end."""

    folder: Path
    evaluations: list[float]
    """The return before each step and after the last; each state was evaluated twice."""
    saved: tuple[list[int], list[int]]
    """Iterations of the checkpoints after the first step, before and after `save`."""
    refused: str
    """The error of a step after the last."""


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Driven:
    out = tmp_path_factory.mktemp("driven") / "run"
    with trainer(out) as steps:
        seen = [steps.evaluate()["return"]]
        while not steps.over:
            steps.step()
            if steps.progress.iteration == 1:
                before = iterations(steps.record.folder)
                steps.save()
                saved = before, iterations(steps.record.folder)
            seen.append(steps.evaluate()["return"])
            assert steps.evaluate()["return"] == seen[-1]
        with pytest.raises(ConfigError) as refused:
            steps.step()
    return Driven(folder=out, evaluations=seen, saved=saved, refused=str(refused.value))


def test_steps_and_evaluations_equal_the_whole_run_bit_for_bit(whole: Path, driven: Driven) -> None:
    assert measured(driven.folder) == measured(whole)
    record = colearn.Result(colearn.read_run(colearn.open_run(driven.folder)))
    assert [value for _, value in record.curve()] == driven.evaluations
    mine, theirs = weights(driven.folder), weights(whole)
    assert mine.keys() == theirs.keys() and len(mine) > 4
    assert all(mine[name].equal(theirs[name]) for name in mine)
    assert colearn.open_run(driven.folder).record().status == "finished"


def test_an_evaluation_of_one_state_is_made_once(driven: Driven) -> None:
    lines = [line for line in measured(driven.folder) if line["kind"] == "evaluation"]
    assert len(lines) == len(driven.evaluations)


def test_save_writes_a_checkpoint_of_this_state(driven: Driven) -> None:
    assert driven.saved == ([0], [0, 1])


def test_a_step_behind_the_budget_is_one_line(driven: Driven) -> None:
    assert driven.refused.startswith("train: no iteration is left; raise train.")


def test_a_driven_run_that_is_left_early_is_resumed_by_train(whole: Path, tmp_path: Path) -> None:
    with trainer(tmp_path / "run") as steps:
        steps.evaluate()
        steps.step()
    assert colearn.open_run(tmp_path / "run").record().status == "interrupted"
    trainer(tmp_path / "run", resume=True).train()
    assert measured(tmp_path / "run") == measured(whole)


def test_an_error_in_the_program_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), trainer(tmp_path / "run") as steps:
        steps.step()
        steps.save()
        steps.step()
        raise ZeroDivisionError
    run = colearn.open_run(tmp_path / "run")
    assert run.record().status == "interrupted"
    assert iterations(run) == [1]


def test_a_run_knows_nothing_of_another_run_of_the_same_algorithm_object(tmp_path: Path) -> None:
    """Not what the moving baselines of its advantage have seen there."""

    @dataclass(frozen=True, kw_only=True)
    class Moving(SpiralRAE):
        credit: Credit = SharedReward()

    algorithm = Moving()
    for name in ("one", "other"):
        out = tmp_path / name
        given: Any = {"models": TINY, "data": ROWS, "reward": even, "out": out}
        with colearn.Trainer(TEAM, algorithm, **given, **SETTINGS) as steps:
            assert steps.team.run.algorithm is algorithm
            steps.step()
            assert any(steps.progress.baselines.values())
    assert measured(tmp_path / "one") == measured(tmp_path / "other")


def test_a_signal_in_a_step_is_raised_behind_it_and_the_next_step_goes_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no model has taken a step before the signal."""
    before = signal.getsignal(signal.SIGINT)
    merged, interrupted = NetworkLearner._merged, list[bool]()
    with trainer(tmp_path / "run") as steps:

        def told(*given: Any) -> Any:
            if steps.progress.iteration == 1 and not interrupted:
                interrupted.append(True)
                signal.raise_signal(signal.SIGINT)
            return merged(*given)

        monkeypatch.setattr(NetworkLearner, "_merged", told)
        steps.evaluate()
        steps.step()
        steps.evaluate()
        with pytest.raises(Interrupted):
            steps.step()
        assert (steps.progress.iteration, signal.getsignal(signal.SIGINT)) == (2, before)
        steps.evaluate()
        while not steps.over:
            steps.step()
            steps.evaluate()
    assert measured(tmp_path / "run") == measured(whole)
