"""Models in workers of their own: the weights of models in this process, losses, what is freed."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pickled_host
import pytest
import torch

from colearn.config import load_config, resolve
from colearn.config.settings import Config
from colearn.errors import ConfigError, ModelLost
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
    "central critic": {"algorithm": {"name": "collm_cc"}, "critic": MODEL},
    "heads on actors": {"algorithm": {"name": "collm_dc"}, "critic": {"share": "actor"}},
    "adapters": {
        "algorithm": {"name": "collm_cc"},
        "models": {"*": ADAPTER},
        "critic": ADAPTER,
    },
    "references": {"algorithm": {"name": "magrpo", "loss": {"kl": 0.1}}, "train": {"epochs": 2}},
    "adapters' references": {
        "algorithm": {"name": "magrpo", "loss": {"kl": 1.0}},
        "models": {"*": ADAPTER},
    },
    "ahead of updates": {
        "algorithm": {"name": "magrpo", "loss": {"importance_cap": 2.0}},
        "train": {"staleness": 1},
    },
    "adapters two ahead": {
        "algorithm": {"name": "magrpo", "loss": {"importance_cap": 2.0}},
        "models": {"*": ADAPTER},
        "train": {"staleness": 2},
    },
    "moving references": {
        "algorithm": {"name": "magrpo", "loss": {"kl": 1.0, "reference_update_every": 1}},
    },
}


SHOWN = ("trees", "adapters", "adapters two ahead")
"""Cases of the gate: full weights, adapters of actors and critic, copies that roll out ahead."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def config_of(host: Mapping[str, Any], case: str = "magrpo", **run: Any) -> Config:
    own = dict(SETTINGS[case])
    train = {"episodes": 2, "environment_steps": 4000, "iterations": 4, **own.pop("train", {})}
    if "staleness" in train:
        run = {"generator": {"name": "transformers", "copy": True}, **run}
    return load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
            "algorithm": {"name": "magrpo"},
            "models": {"*": MODEL},
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


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case in SHOWN else [pytest.mark.slow]) for case in SETTINGS],
)
def test_models_in_workers_end_with_the_weights_of_models_in_this_process(
    tmp_path: Path, case: str
) -> None:
    here = trained(tmp_path / "here", config_of(LOCAL, case))
    there = trained(tmp_path / "there", config_of(PICKLED, case))
    assert equal(here, there)


def test_a_run_of_workers_that_is_ahead_resumes_to_the_weights_of_a_whole_run(
    tmp_path: Path,
) -> None:
    def interrupt(progress: Any, metrics: Any) -> None:
        if progress.iteration == 2:
            raise Interrupted(signal.SIGTERM)

    here = trained(tmp_path / "here", config_of(LOCAL, "adapters two ahead"))
    config = config_of(PICKLED, "adapters two ahead")
    with pytest.raises(Interrupted):
        Experiment(config, tmp_path / "there").run(interrupt)
    resumed = Experiment(config, tmp_path / "there", resume=True)
    resumed.run()
    assert equal(here, weights_of(resumed))


def test_exact_values_of_models_in_workers_are_those_of_models_in_this_process(
    tmp_path: Path,
) -> None:
    values = []
    for name, host in {"here": LOCAL, "there": PICKLED}.items():
        config = config_of(host, "adapters").model_dump(mode="json", exclude_unset=True)
        exact = {"evaluation.exact": True, "agents.*.sampling.max_tokens": 4}
        Experiment(load_config(config, exact), tmp_path / name).run()
        lines = open_run(tmp_path / name).evaluations()
        values.append([line.metrics["exact_return"] for line in lines])
    here, there = values
    assert there == here and len(set(here)) == 3


def test_past_selves_in_workers_play_as_those_in_this_process(tmp_path: Path) -> None:
    def settings(host: Mapping[str, Any]) -> Config:
        return load_config(
            {
                "task": {"name": "open_spiel", "games": "kuhn_poker", "prompt": "compact"},
                "algorithm": {"name": "marshal", "credit": {"name": "payoff"}},
                "cast": {"name": "league", "pool": 2, "every": 2, "self_play": 0.25},
                "models": {"player": MODEL},
                "agents": {"*": {"model": "player", "sampling": {"max_tokens": 3}}},
                "train": {"episodes": 4, "environment_steps": 4000, "iterations": 4},
                "evaluation": {"every": 4, "episodes": 2},
                "run": {"device": "cpu", "host": host},
            }
        )

    here = trained(tmp_path / "here", settings(LOCAL))
    there = trained(tmp_path / "there", settings(PICKLED))
    assert equal(here, there)


def test_models_with_a_base_of_their_own_have_a_worker_each(tmp_path: Path) -> None:
    groups = sharing(resolve(config_of(PICKLED, "central critic")))
    assert [[str(key) for key in group] for group in groups] == [
        ["actor-agent_1"],
        ["actor-agent_2"],
        ["critic-team"],
    ]


def test_adapters_on_one_base_share_a_worker(tmp_path: Path) -> None:
    groups = sharing(resolve(config_of(PICKLED, "adapters")))
    assert [[str(key) for key in group] for group in groups] == [
        ["actor-agent_1", "actor-agent_2", "critic-team"]
    ]


def test_a_reference_is_where_its_actor_is(tmp_path: Path) -> None:
    groups = sharing(resolve(config_of(PICKLED, "references")))
    assert [[str(key) for key in group] for group in groups] == [
        ["actor-agent_1", "reference-agent_1"],
        ["actor-agent_2", "reference-agent_2"],
    ]


def test_a_rollouts_caches_are_freed_before_models_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    whole = ModelWorker.learner

    def learner(self: ModelWorker, key: Any, method: str, *args: Any) -> Any:
        if method == "step":
            kept.append(len(self._kept))
        return whole(self, key, method, *args)

    monkeypatch.setattr(ModelWorker, "learner", learner)
    trained(tmp_path / "run", config_of(PICKLED))
    assert set(kept) == {0}


def test_a_run_that_lost_a_model_goes_on_from_its_checkpoint_in_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path / "whole", config_of(PICKLED))
    steps: list[int] = []
    step = ModelWorker.learner

    def lose_once(self: ModelWorker, key: Any, method: str, *args: Any) -> Any:
        if method == "step":
            steps.append(1)
        if len(steps) == 6 and method == "step":  # of the third update, after the other model's
            pickled_host.LOST.add(str(key))
            raise ModelLost(f"the worker of {key} has ended")
        return step(self, key, method, *args)

    monkeypatch.setattr(ModelWorker, "learner", lose_once)
    config = config_of(PICKLED, checkpoint_every=2, restarts=0)
    with pytest.raises(ModelLost, match=r"the worker of actor-agent_\d has ended"):
        Experiment(config, tmp_path / "run").run()
    assert open_run(tmp_path / "run").record().status == "interrupted"
    local = config_of(LOCAL, checkpoint_every=2)
    again = Experiment(local, tmp_path / "run", resume=True)
    assert again.progress.iteration == 2
    again.run()
    assert equal(weights_of(again), whole)


def test_a_learner_in_a_worker_knows_the_version_of_its_weights(tmp_path: Path) -> None:
    config = config_of(PICKLED)
    run = Experiment(config, tmp_path / "run")
    assert {learner.steps for learner in run.team.learners.values()} == {0}
    run.run()
    assert {learner.steps for learner in run.team.learners.values()} == {4}
    again = Experiment(config, tmp_path / "run", resume=True)
    assert {learner.steps for learner in again.team.learners.values()} == {4}


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


def test_a_model_lost_while_it_is_loaded_is_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_once(monkeypatch, "build")
    record = run_with_restarts(config_of(PICKLED, restarts=1), tmp_path / "run")
    assert record.status == "finished" and record.iterations == 4


def test_a_run_tells_how_many_parameters_its_workers_train(tmp_path: Path) -> None:
    records = []
    for name, host in {"here": LOCAL, "there": PICKLED}.items():
        Experiment(config_of(host, "central critic"), tmp_path / name).run()
        records.append(open_run(tmp_path / name).record())
    here, there = (record.parameters for record in records)
    assert here.keys() == {"agent_1", "agent_2", "critic-team"}
    assert there == here


def test_a_run_restarts_by_itself_after_it_lost_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lose_once(monkeypatch, "accumulate")
    record = run_with_restarts(config_of(PICKLED, restarts=1), tmp_path / "run")
    assert record.status == "finished"
    assert "restart 1 of 1: run.host: the worker of actor-agent_1 has ended\n" in (
        capsys.readouterr().err
    )


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
