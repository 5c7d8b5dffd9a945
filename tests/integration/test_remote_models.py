"""What a host asks of models in workers: versions, greedy actions, threads, random state, ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from asking import token_request
from pickled_host import PickledWorkers
from test_remote_host import LOCAL, PICKLED, config_of

from colearn.config import load_config, resolve
from colearn.errors import CheckpointError, ConfigError, ModelLost
from colearn.models.folders import with_folders
from colearn.training.hosts.model_worker import ModelWorker
from colearn.training.loop import Experiment


def test_greedy_actions_of_workers_are_those_of_this_process(tmp_path: Path) -> None:
    drawn = {}
    for name, host in {"here": LOCAL, "there": PICKLED}.items():
        run = Experiment(config_of(host), tmp_path / name)
        hosted = run.team.players["agent_1"]
        for greedy in (False, True):
            request = token_request(
                {"agent_1": hosted.spec},
                "agent_1",
                (1, 2, 3),
                tuple(range(8)),
                temperature=0.0 if greedy else 50.0,
            )
            sampled = asyncio.run(hosted.engine.submit(request))
            drawn[name, greedy] = [one.action.tokens for one in sampled]
    assert drawn["here", True] == drawn["there", True]
    assert len(set(drawn["there", True])) == 1 < len(set(drawn["there", False]))


def test_models_in_two_workers_update_at_the_same_time_and_those_in_one_take_turns(
    tmp_path: Path,
) -> None:
    apart = Experiment(config_of(PICKLED), tmp_path / "apart").team
    both = threading.Barrier(2, timeout=600)
    met = apart.together(dict.fromkeys(apart.learners, both.wait))
    assert sorted(met.values()) == [0, 1]
    shared = Experiment(config_of(PICKLED, "adapters two ahead"), tmp_path / "shared").team
    threads = shared.together(dict.fromkeys(shared.learners, threading.get_ident))
    assert len(set(threads.values())) == 1 and len(threads) == 3


def test_a_workers_random_numbers_follow_from_the_runs_seed(tmp_path: Path) -> None:
    drawn = []
    for state in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(state)
            run = with_folders(resolve(config_of(PICKLED)))
            ModelWorker().build(run.config, run.agents, run.networks)
            drawn.append(torch.rand(1).item())
    assert drawn[0] == drawn[1]


def test_a_checkpoint_that_a_worker_wrote_elsewhere_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ModelWorker.learner

    def elsewhere(self: ModelWorker, key: Any, method: str, *args: Any) -> Any:
        return (None, 1) if method == "save" else whole(self, key, method, *args)

    monkeypatch.setattr(ModelWorker, "learner", elsewhere)
    (learner, *_) = Experiment(config_of(PICKLED), tmp_path / "run").team.learners.values()
    with pytest.raises(CheckpointError, match=r"^run\.host: .* give --out a folder") as error:
        learner.save(tmp_path / "checkpoint")
    assert "\n" not in str(error.value)


def test_every_worker_is_closed_also_behind_one_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[int] = []

    def close(self: ModelWorker) -> None:
        closed.append(len(closed))
        if len(closed) == 1:
            raise ModelLost("the worker has ended")

    monkeypatch.setattr(ModelWorker, "close", close)
    host = Experiment(config_of(PICKLED), tmp_path / "run").team
    with pytest.raises(ModelLost):
        host.close()
    assert closed == [0, 1]


def test_workers_are_closed_if_a_player_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(PickledWorkers, "close", lambda _: closed.append("workers"))
    unknown = {"players": {"other": {"program": {"name": "no_such_program"}}}}
    config = load_config(config_of(PICKLED).model_dump(mode="json", exclude_unset=True), unknown)
    with pytest.raises(ConfigError, match="no_such_program"):
        Experiment(config, tmp_path / "run")
    assert closed == ["workers"]
