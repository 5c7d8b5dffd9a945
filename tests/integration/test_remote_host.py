"""Models in workers of their own: the weights of models in this process, losses, what is freed."""

from __future__ import annotations

import functools
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pickled_host
import pytest
import torch
from pickled_host import PickledWorkers

from colearn.config import load_config, resolve
from colearn.config.settings import Config
from colearn.errors import CheckpointError, ConfigError, ModelLost
from colearn.runs.record import open_run
from colearn.training.hosts.model_worker import ModelWorker
from colearn.training.hosts.remote_team import sharing
from colearn.training.interruption import Interrupted
from colearn.training.loop import Experiment
from colearn.training.restarts import run_with_restarts

MODEL = {"path": "embedded-tiny", "learning_rate": 1e-3}
ADAPTER = {**MODEL, "lora": {"rank": 4}}
PICKLED = {"name": "pickled_host:Pickled"}
LOCAL = {"name": "local"}

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "magrpo": {},
    "trees": {"algorithm": {"name": "at_grpo"}},
    "central critic, references": {
        "algorithm": {"name": "collm_cc", "loss": {"kl": 0.1}},
        "critic": MODEL,
        "train": {"epochs": 2, "iterations": 2},
    },
    "heads on actors": {
        "algorithm": {"name": "collm_dc"},
        "critic": {"share": "actor"},
        "train": {"iterations": 2},
    },
    "adapters two ahead": {
        "algorithm": {
            "name": "collm_cc",
            "loss": {"kl": 1.0, "reference_update_every": 1, "importance_cap": 2.0},
        },
        "models": {"*": ADAPTER},
        "critic": ADAPTER,
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "evaluation": {"every": 2, "episodes": 2, "exact": True},
        "train": {"staleness": 2, "iterations": 4},
    },
}
"""Cases: trees of full weights; a critic and references; value heads; adapters of actors, critic
and moving references, with copies that roll out ahead and exact values."""


def config_of(host: Mapping[str, Any], case: str = "magrpo", **run: Any) -> Config:
    own = dict(SETTINGS[case])
    train = {"episodes": 2, "environment_steps": 4000, "iterations": 3, **own.pop("train", {})}
    if "staleness" in train:
        run = {"generator": {"name": "transformers", "copy": True}, **run}
    return load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
            "models": {"*": MODEL},
            "algorithm": {"name": "magrpo"},
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "evaluation": {"every": 2, "episodes": 2},
            **own,
            "train": train,
            "run": {"device": "cpu", "host": host, **run},
        }
    )


def weights_of(experiment: Experiment) -> dict[str, torch.Tensor]:
    return {
        f"{key}.{name}": weight.clone()
        for key, learner in experiment.team.learners.items()
        for name, weight in learner.weights().items()
    }


def trained(folder: Path, config: Config) -> dict[str, torch.Tensor]:
    """The weights at the end of a run."""
    experiment = Experiment(config, folder)
    before = weights_of(experiment)
    experiment.run()
    after = weights_of(experiment)
    assert any(not torch.equal(before[name], weight) for name, weight in after.items())
    return after


def equal(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(weight, other[name]) for name, weight in one.items()
    )


@dataclass
class Both:
    """A run with its models in this process, and the same run with its models in workers."""

    here: dict[str, torch.Tensor]
    """Weights at the end."""
    there: Experiment
    folders: list[Path]
    kept: set[int]
    """Numbers of objects that a worker held when a learner stepped."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Both]:
    """Both runs of a case; each is made once."""

    @functools.cache
    def made(case: str) -> Both:
        folder = tmp_path_factory.mktemp("both")
        kept, whole = set[int](), ModelWorker.learner

        def learner(self: ModelWorker, key: Any, method: str, *args: Any) -> Any:
            if method == "step":
                kept.add(len(self._kept))
            return whole(self, key, method, *args)

        here = trained(folder / "here", config_of(LOCAL, case))
        there = Experiment(config_of(PICKLED, case), folder / "there")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ModelWorker, "learner", learner)
            there.run()
        return Both(here, there, [folder / "here", folder / "there"], kept)

    return made


@pytest.mark.parametrize("case", list(SETTINGS)[1:])
def test_models_in_workers_end_with_the_weights_of_models_in_this_process(
    both: Any, case: str
) -> None:
    assert equal(both(case).here, weights_of(both(case).there))


def test_a_run_of_workers_that_is_ahead_resumes_to_the_weights_of_a_whole_run(
    both: Any, tmp_path: Path
) -> None:
    def interrupt(progress: Any, metrics: Any) -> None:
        if progress.iteration == 2:
            raise Interrupted(signal.SIGTERM)

    config = config_of(PICKLED, "adapters two ahead")
    with pytest.raises(Interrupted):
        Experiment(config, tmp_path / "there").run(interrupt)
    resumed = Experiment(config, tmp_path / "there", resume=True)
    resumed.run()
    assert equal(both("adapters two ahead").here, weights_of(resumed))


def test_exact_values_of_models_in_workers_are_those_of_models_in_this_process(both: Any) -> None:
    here, there = (
        [line.metrics["exact_return"] for line in open_run(folder).evaluations()]
        for folder in both("adapters two ahead").folders
    )
    assert there == here and len(set(here)) == 3


def test_actions_of_a_copy_in_a_worker_have_the_version_of_its_last_sync(both: Any) -> None:
    players = both("adapters two ahead").there.team.players.items()
    assert [one.engine.version(name) for name, one in players] == [4, 4]


def test_a_rollouts_caches_are_freed_before_models_update(both: Any) -> None:
    assert both("trees").kept == {0}


def test_a_run_tells_how_many_parameters_its_workers_train(both: Any) -> None:
    here, there = (
        open_run(folder).record().parameters
        for folder in both("central critic, references").folders
    )
    assert here.keys() == {"agent_1", "agent_2", "critic-team"}
    assert there == here


def test_a_learner_in_a_worker_knows_the_version_of_its_weights(both: Any) -> None:
    trees = both("trees")
    assert {learner.steps for learner in trees.there.team.learners.values()} == {3}
    again = Experiment(config_of(PICKLED, "trees"), trees.folders[1], resume=True)
    assert {learner.steps for learner in again.team.learners.values()} == {3}
    again.record.close()


def test_workers_are_closed_if_a_run_cannot_be_resumed(
    both: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(both("trees").folders[1], tmp_path / "run")
    for file in (run / "checkpoints").rglob("weights.safetensors"):
        file.write_bytes(b"")
    closed: list[str] = []
    monkeypatch.setattr(PickledWorkers, "close", lambda _: closed.append("workers"))
    with pytest.raises(CheckpointError):
        Experiment(config_of(PICKLED, "trees"), run, resume=True)
    assert closed == ["workers"]


def test_past_selves_in_workers_play_as_those_in_this_process(tmp_path: Path) -> None:
    def settings(host: Mapping[str, Any]) -> Config:
        return load_config(
            {
                "task": {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
                "algorithm": {"name": "marshal", "credit": {"name": "payoff"}},
                "cast": {"name": "league", "pool": 2, "every": 1, "self_play": 0.25},
                "models": {"player": MODEL},
                "agents": {"*": {"model": "player", "sampling": {"max_tokens": 3}}},
                "train": {"episodes": 4, "environment_steps": 4000, "iterations": 3},
                "evaluation": {"every": 4, "episodes": 2},
                "run": {"device": "cpu", "host": host},
            }
        )

    here = trained(tmp_path / "here", settings(LOCAL))
    there = trained(tmp_path / "there", settings(PICKLED))
    assert equal(here, there)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            "central critic, references",
            [
                ["actor-agent_1", "reference-agent_1"],
                ["actor-agent_2", "reference-agent_2"],
                ["critic-team"],
            ],
        ),
        ("heads on actors", [["actor-agent_1"], ["actor-agent_2"]]),
        (
            "adapters two ahead",
            [
                [
                    *("actor-agent_1", "actor-agent_2", "critic-team"),
                    *("reference-agent_1", "reference-agent_2"),
                ]
            ],
        ),
    ],
)
def test_models_that_share_weights_share_a_worker(case: str, expected: list[list[str]]) -> None:
    groups = sharing(resolve(config_of(PICKLED, case)))
    assert [[str(key) for key in group] for group in groups] == expected


def test_a_run_that_lost_a_model_goes_on_from_its_checkpoint_in_another_place(
    both: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = both("trees").here
    steps: list[int] = []
    step = ModelWorker.learner

    def lose_third(self: ModelWorker, key: Any, method: str, *args: Any) -> Any:
        if method == "step":
            steps.append(1)
        if len(steps) == 6 and method == "step":  # of the third update, after the other model's
            pickled_host.LOST.add(str(key))
            raise ModelLost(f"the worker of {key} has ended")
        return step(self, key, method, *args)

    monkeypatch.setattr(ModelWorker, "learner", lose_third)
    config = config_of(PICKLED, "trees", checkpoint_every=2, restarts=0)
    with pytest.raises(ModelLost, match=r"the worker of actor-agent_\d has ended"):
        Experiment(config, tmp_path / "run").run()
    assert open_run(tmp_path / "run").record().status == "interrupted"
    local = config_of(LOCAL, "trees", checkpoint_every=2)
    again = Experiment(local, tmp_path / "run", resume=True)
    assert again.progress.iteration == 2
    again.run()
    assert equal(weights_of(again), whole)


def lose_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """A worker is lost at the first call of the method."""
    lost: list[str] = []
    whole = getattr(ModelWorker, method)

    def call(self: ModelWorker, *args: Any) -> Any:
        if not lost:
            lost.append("one")
            raise ModelLost("run.host: the worker of actor-agent_1 has ended; continue")
        return whole(self, *args)

    monkeypatch.setattr(ModelWorker, method, call)


def test_a_run_restarts_by_itself_after_it_lost_a_model_in_loading_and_in_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for method in ("build", "accumulate"):
        lose_once(monkeypatch, method)
    record = run_with_restarts(config_of(PICKLED, restarts=2), tmp_path / "run")
    assert (record.status, record.iterations) == ("finished", 3)
    told = [line for line in capsys.readouterr().err.splitlines() if "restart" in line]
    lost = "run.host: the worker of actor-agent_1 has ended"
    assert told == [f"note: restart {number} of 2: {lost}" for number in (1, 2)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"placement.agent_1": "cuda:1"}, "placement.agent_1: a worker of ray sees its own"),
        ({"run.device": "cuda"}, "run.host.gpus: actor-agent_1 runs on cuda; set it"),
        ({"run.host.gpus": -1}, "run.host.gpus: must be a finite number from 0"),
        ({"run.host.processes": 0}, "run.host.processes: must be 1 or more"),
        ({"run.host.start_minutes": 0}, "run.host.start_minutes: must be a finite number above 0"),
    ],
)
def test_what_workers_cannot_do_is_one_line_before_anything_is_loaded(
    change: dict[str, Any], told: str
) -> None:
    config = config_of({"name": "ray"}).model_dump(mode="json", exclude_unset=True)
    with pytest.raises(ConfigError, match=told.replace(".", r"\.")) as error:
        resolve(load_config(config, change))
    assert "\n" not in str(error.value)


def test_ray_and_torchrun_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="start without torchrun"):
        resolve(config_of({"name": "ray"}))


def test_a_handle_that_is_collected_after_its_worker_was_closed_is_no_error() -> None:
    worker = ModelWorker()
    worker.team = SimpleNamespace(close=lambda: None)  # type: ignore[assignment]
    number = worker._keep("rows")
    worker.close()
    worker.drop([number])
