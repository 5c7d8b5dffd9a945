"""Bytes that a rollout and an evaluation really allocate: at most what the dry run counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.contract.worker import Worker
from colearn.estimate import estimate
from colearn.estimate.ledger import Ledger
from colearn.training.evaluation.evaluate import evaluate_team
from colearn.training.experience import TrainingPoint
from colearn.training.loop import Experiment

EPISODES = 6


@contextmanager
def in_worker_threads(ledger: Ledger) -> Iterator[None]:
    """A dispatch mode is active in its own thread alone, and generators work in theirs."""
    work = Worker._work

    def counted(worker: Worker[Any, Any]) -> None:
        with ledger:
            work(worker)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "_work", counted)
        yield


def allocated(at_once: int | None, model: str, folder: Path) -> dict[str, list[int]]:
    """Counted and real bytes above the weights, by phase."""
    config = load_config(
        {
            "task": {"name": "notes", "horizon": 2, "items": 3},
            "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
            "models": {"team": {"path": model}},
            "agents": {"*": {"model": "team", "sampling": {"max_tokens": 40}}},
            "train": {"episodes": EPISODES, "environment_steps": 1000, "at_once": at_once},
            "evaluation": {"episodes": EPISODES, "at_once": at_once},
            "run": {"device": "cpu"},
        }
    )
    counted = estimate(config)
    (network,) = counted.networks
    phases = counted.phases["cpu"]
    always = phases["checkpoint"] - 8 * network.trained
    run = Experiment(config, folder)
    plays: dict[str, Callable[[], object]] = {
        "rollout": lambda: run.experience.take(TrainingPoint(0, 0, 0.0)),
        "evaluation": lambda: evaluate_team(
            run.team.run.task,
            run.team.players,
            config.evaluation,
            seed=0,
            credit=run.team.run.parts.credit,
            cast=run.team.run.cast,
            processes=run.processes,
        ),
    }
    found: dict[str, list[int]] = {}
    for phase, play in plays.items():
        with Ledger() as ledger:
            for one in run.team.networks.values():
                for weight in one.base.causal.parameters():
                    ledger._note(weight.untyped_storage())
            weights = ledger.live
            ledger.begin()
            with in_worker_threads(ledger):
                play()
        found[phase] = [phases[phase] - always, ledger.peak - weights]
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "llama", "llama"))


def test_a_run_keeps_what_its_dry_run_promises(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, notes="tiny:Notes")
    together = allocated(None, model, tmp_path / "all")
    waves = allocated(2, model, tmp_path / "waves")
    for found in (together, waves):
        for counted, real in found.values():
            assert counted / 2 < real <= counted
    for phase in together:
        assert waves[phase][1] < together[phase][1] / 2
