"""The settings of a host reach what it starts: with a stand-in for Ray, nothing is started."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.config import Config, ResolvedRun, load_config, resolve
from colearn.contract.host import one_by_one
from colearn.errors import ConfigError
from colearn.training.hosts import ray_workers
from colearn.training.hosts.kinds import Ray
from colearn.training.load_team import load_team


class Cluster:
    """Records what is asked for; has no room, or starts actors."""

    __file__ = "/packages/ray/__init__.py"

    def __init__(self, *, room: bool) -> None:
        self.room = room
        self.bundles: list[dict[str, float]] = []
        self.waited: list[float] = []
        self.address = ""
        self.started: list[dict[str, Any]] = []
        self.util = SimpleNamespace(
            placement_group=self._group,
            remove_placement_group=lambda group: None,
            scheduling_strategies=SimpleNamespace(PlacementGroupSchedulingStrategy=dict),
        )

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str, **settings: Any) -> None:
        self.address = address

    def shutdown(self) -> None: ...

    def kill(self, actor: Any) -> None: ...

    exceptions = SimpleNamespace(RayTaskError=KeyError, RayActorError=OSError)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 64.0, "GPU": 64.0}

    def nodes(self) -> list[dict[str, bool]]:
        return [{"Alive": True}]

    def _group(self, bundles: list[dict[str, float]], strategy: str) -> Any:
        self.bundles = bundles

        def wait(seconds: float) -> bool:
            self.waited.append(seconds)
            return self.room

        return SimpleNamespace(wait=wait)

    def remote(self, worker: Any) -> Any:
        def options(**settings: Any) -> Any:
            def start() -> int:
                self.started.append(settings)
                return len(self.started)

            return SimpleNamespace(remote=start)

        return SimpleNamespace(options=options)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    def cluster(*, room: bool) -> Cluster:
        made = Cluster(room=room)
        monkeypatch.setattr(
            ray_workers,
            "required",
            lambda name, extra: made if name == "ray" else import_module(name),
        )
        return made

    return cluster


def config(host: Any) -> Config:
    """Two models on bases of their own."""
    return load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step"},
            "algorithm": {"name": "magrpo"},
            "models": {"*": {"path": "embedded-tiny"}},
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "train": {"environment_steps": 8},
            "run": {"device": "cpu", "host": host},
        }
    )


@pytest.fixture(scope="module")
def run() -> ResolvedRun:
    return resolve(config("local"))


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_worker_has_its_number_of_processes_each_with_its_share(
    run: ResolvedRun, cluster: Any, processes: int
) -> None:
    ray = cluster(room=False)
    kind = Ray(address="local", cpus=2.0, gpus=0.5, processes=processes, start_minutes=0.5)
    said = rf"{2 * processes} processes had no place within 30 s"
    with pytest.raises(ConfigError, match=said):
        kind.build(run, None)  # type: ignore[arg-type]
    assert ray.bundles == [{"CPU": 2.0, "GPU": 0.5}] * (2 * processes)
    assert ray.waited == [30.0] and ray.address == "local"


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_told_of_workers_is_what_is_started(
    run: ResolvedRun, cluster: Any, processes: int
) -> None:
    kind = Ray(cpus=2.0, gpus=0.5, processes=processes)
    workers = kind.workers(run)
    assert [(w.gpus, w.cpus, w.processes) for w in workers] == [(0.5, 2.0, processes)] * 2
    assert sorted(str(key) for w in workers for key in w.keys) == sorted(map(str, run.networks))
    ray = cluster(room=False)
    with pytest.raises(ConfigError, match="had no place"):
        kind.build(run, None)  # type: ignore[arg-type]
    assert len(ray.bundles) == sum(w.processes for w in workers)


@pytest.mark.parametrize(("groups", "processes"), [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_every_process_has_a_place_of_its_own_and_every_group_its_processes(
    cluster: Any, groups: int, processes: int
) -> None:
    ray = cluster(room=True)
    workers = ray_workers.RayWorkers("local", cpus=2, gpus=1, processes=processes, seconds=1.0)
    calls = workers.start([str(n) for n in range(groups)])
    assert [len(each) for each in calls] == [processes] * groups
    places = [one["scheduling_strategy"]["placement_group_bundle_index"] for one in ray.started]
    assert places == list(range(groups * processes))
    assert {(one["num_cpus"], one["num_gpus"]) for one in ray.started} == {(2, 1)}
    workers.close()


def test_without_a_number_of_cpus_processes_have_equal_shares_of_the_clusters(
    cluster: Any,
) -> None:
    ray = cluster(room=True)
    ray_workers.RayWorkers("local", cpus=None, gpus=0, processes=2, seconds=1.0).start(["a", "b"])
    assert ray.bundles == [{"CPU": 16.0}] * 4  # of 64


@pytest.mark.parametrize("threads", [False, True])
def test_models_on_bases_of_their_own_update_at_once_if_they_may(threads: bool) -> None:
    team = load_team(config({"name": "local", "threads": threads}))
    assert (team.together is one_by_one) is not threads
    team.close()
