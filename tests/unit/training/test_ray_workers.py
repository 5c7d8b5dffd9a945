"""Hosts, with a stand-in for Ray: which settings reach it, what is tried again, told and left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.config import Config, ResolvedRun, load_config, resolve
from colearn.contract.host import one_by_one
from colearn.errors import ConfigError
from colearn.training.hosts import ray_workers
from colearn.training.hosts.kinds import Ray
from colearn.training.hosts.ray_workers import RayWorkers
from colearn.training.load_team import load_team

LATE = Exception("The current node timed out during startup. This could happen because ...")


class Cluster:
    """Stands in for Ray: starts at the first try without an error, on two nodes of which one may be
    gone; records what is asked for, and has room for it or not.

    connected: the address of a cluster that the process is connected to from the start.
    starts: called at every try.
    """

    __file__ = "/packages/ray/__init__.py"
    exceptions = SimpleNamespace(RayTaskError=KeyError, RayActorError=OSError)

    def __init__(
        self,
        *errors: BaseException,
        cpus: float = 64.0,
        room: bool = False,
        gone: bool = False,
        connected: str | None = None,
        starts: Callable[[], object] = lambda: None,
    ) -> None:
        self.errors, self.cpus, self.room, self.gone = list(errors), cpus, room, gone
        self.connected, self.starts = connected, starts
        self.addresses: list[str] = []
        """Of every try to start or join a cluster."""
        self.bundles: list[dict[str, float]] = []
        self.waited: list[float] = []
        self.started: list[dict[str, Any]] = []
        """Settings of every actor."""
        self.util = SimpleNamespace(
            placement_group=self._group,
            remove_placement_group=lambda group: None,
            scheduling_strategies=SimpleNamespace(PlacementGroupSchedulingStrategy=dict),
        )

    def is_initialized(self) -> bool:
        return self.connected is not None

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address=self.connected)

    def init(self, address: str, **settings: Any) -> None:
        self.addresses.append(address)
        self.starts()
        if self.errors:
            raise self.errors.pop(0)

    def shutdown(self) -> None:
        self.connected = None

    def kill(self, actor: Any) -> None: ...

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cpus, "GPU": 64.0}

    def nodes(self) -> list[dict[str, bool]]:
        return [{"Alive": True}, {"Alive": not self.gone}]

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
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Cluster], Cluster]:
    """Makes a stand-in the package that is installed."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    monkeypatch.setattr(os, "environ", plain)

    def install(cluster: Cluster) -> Cluster:
        def required(module: str, extra: str) -> Any:
            return cluster if module == "ray" else import_module(module)

        monkeypatch.setattr(ray_workers, "required", required)
        return cluster

    return install


@pytest.fixture
def joined(installed: Any) -> Callable[..., RayWorkers]:
    def join(
        cluster: Cluster,
        seconds: float = 300.0,
        address: str = "local",
        *,
        cpus: float | None = 1,
        gpus: float = 0,
        processes: int = 1,
    ) -> RayWorkers:
        installed(cluster)
        return RayWorkers(address, cpus=cpus, gpus=gpus, processes=processes, seconds=seconds)

    return join


def test_a_node_that_starts_late_is_started_again(joined: Any) -> None:
    ray = Cluster(LATE, LATE)
    joined(ray)
    assert len(ray.addresses) == 3
    waits = dict(os.environ)
    assert waits["RAY_worker_register_timeout_seconds"] == "300"
    assert waits["RAY_agent_register_timeout_ms"] == "300000"


def test_a_node_that_never_starts_is_one_line_with_the_setting(joined: Any) -> None:
    with pytest.raises(ConfigError, match=r"within 0\.001 s; raise run\.host\.start_minutes"):
        joined(Cluster(*[LATE] * 10_000), 0.001)


def test_another_error_is_not_tried_again(joined: Any) -> None:
    ray = Cluster(Exception("the disk is full"))
    with pytest.raises(Exception, match="the disk is full"):
        joined(ray)
    assert len(ray.addresses) == 1


def test_resources_that_no_node_has_are_told_at_once(joined: Any) -> None:
    ray = Cluster(cpus=1)
    with pytest.raises(ConfigError, match=r"2 workers of 1 CPUs need 2, and the cluster has 1"):
        joined(ray).start(["one", "two"])
    assert not ray.waited


def test_resources_of_a_node_that_is_gone_are_waited_for(joined: Any) -> None:
    ray = Cluster(cpus=1, gone=True)
    with pytest.raises(ConfigError, match=r"2 workers of 1 CPUs need 2, and the cluster has 1"):
        joined(ray).start(["one", "two"])
    assert ray.waited == [300.0]


@pytest.mark.parametrize("error", [LATE, KeyboardInterrupt()])
def test_a_start_that_ends_early_leaves_no_process_of_ray(
    joined: Any, error: BaseException
) -> None:
    def process(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])

    started: list[subprocess.Popen[bytes]] = []

    def starts() -> None:
        for name in ("/packages/ray/core/raylet", "a server of the task"):
            started.append(process(name))

    started.append(process("/packages/ray/core/raylet"))  # of somebody else's cluster
    try:
        with pytest.raises((ConfigError, KeyboardInterrupt)):
            joined(Cluster(error, starts=starts), 0.0)
        assert [one.poll() is None for one in started] == [True, False, True]
    finally:
        for one in started:
            one.kill()
            one.wait()


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_start_ends_the_cluster_that_has_started(joined: Any) -> None:
    """Ray never sees the exception, which it does not survive everywhere."""
    whole: list[bool] = []

    def start() -> None:
        signal.raise_signal(signal.SIGINT)
        ray.connected = "10.0.0.1:6379"
        whole.append(True)

    ray = Cluster(starts=start)
    with pytest.raises(KeyboardInterrupt):
        joined(ray)
    assert whole == [True]
    assert ray.connected is None


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_start_that_is_late_is_not_tried_again(joined: Any) -> None:
    ray = Cluster(LATE, starts=lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        joined(ray)
    assert (len(ray.addresses), ray.errors) == (1, [])


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379"])
def test_a_run_uses_its_processs_connection_to_a_cluster_and_leaves_it(
    joined: Any, address: str
) -> None:
    ray = Cluster(connected="10.0.0.1:6379")
    joined(ray, address=address).close()
    assert ray.connected == "10.0.0.1:6379" and not ray.addresses


@pytest.mark.parametrize("address", ["local", "10.0.0.2:6379"])
def test_another_cluster_than_that_of_its_process_is_one_line(joined: Any, address: str) -> None:
    with pytest.raises(ConfigError, match=r"run\.host\.address: .* at 10\.0\.0\.1:6379") as error:
        joined(Cluster(connected="10.0.0.1:6379"), address=address)
    assert "\n" not in str(error.value)


def test_a_connection_ends_with_the_run_also_if_the_cluster_frees_nothing(joined: Any) -> None:
    def remove(group: Any) -> None:
        raise ConnectionError

    ended: list[str] = []
    ray = Cluster()
    ray.shutdown = lambda: ended.append("connection")  # type: ignore[method-assign]
    ray.util.remove_placement_group = remove
    workers = joined(ray)
    with pytest.raises(ConfigError, match="are in use"):
        workers.start(["one"])
    with pytest.raises(ConnectionError):
        workers.close()
    assert ended == ["connection"]


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts no connection while the test runs."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("by", ["run.host.address", "RAY_ADDRESS"])
def test_an_address_that_accepts_no_connection_is_one_line_at_once(
    joined: Any, port: int, by: str
) -> None:
    given = f"127.0.0.1:{port}"
    if by == "RAY_ADDRESS":
        os.environ["RAY_ADDRESS"] = given
    ray = Cluster()
    told = rf"run\.host\.address: no Ray cluster at '{given}' \(.*refused.*\); start one with"
    with pytest.raises(ConfigError, match=told) as error:
        joined(ray, address="auto" if by == "RAY_ADDRESS" else given)
    assert not ray.addresses and "\n" not in str(error.value)


def test_an_address_that_accepts_connections_is_joined(joined: Any) -> None:
    ray = Cluster()
    with socket.create_server(("127.0.0.1", 0)) as head:
        joined(ray, address=f"127.0.0.1:{head.getsockname()[1]}")
    assert len(ray.addresses) == 1


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


@pytest.mark.parametrize("processes", [1, 2])
def test_each_worker_has_its_number_of_processes_each_with_its_share(
    run: ResolvedRun, installed: Any, processes: int
) -> None:
    """For two models: two workers of as many processes, each with its share."""
    ray = installed(Cluster())
    kind = Ray(address="local", cpus=2.0, gpus=0.5, processes=processes, start_minutes=0.5)
    said = rf"{2 * processes} processes had no place within 30 s"
    with pytest.raises(ConfigError, match=said):
        kind.build(run, None)  # type: ignore[arg-type]
    assert ray.bundles == [{"CPU": 2.0, "GPU": 0.5}] * (2 * processes)
    assert ray.waited == [30.0] and ray.addresses == ["local"]


@pytest.mark.parametrize(("groups", "processes"), [(2, 1), (1, 3), (3, 2)])
def test_every_process_has_a_place_of_its_own_and_every_group_its_processes(
    joined: Any, groups: int, processes: int
) -> None:
    ray = Cluster(room=True)
    workers = joined(ray, cpus=2, gpus=1, processes=processes)
    calls = workers.start([str(n) for n in range(groups)])
    assert [len(each) for each in calls] == [processes] * groups
    places = [one["scheduling_strategy"]["placement_group_bundle_index"] for one in ray.started]
    assert places == list(range(groups * processes))
    assert {(one["num_cpus"], one["num_gpus"]) for one in ray.started} == {(2, 1)}
    workers.close()


def test_without_a_number_of_cpus_processes_have_equal_shares_of_the_clusters(joined: Any) -> None:
    ray = Cluster(room=True)
    joined(ray, cpus=None, processes=2).start(["a", "b"])
    assert ray.bundles == [{"CPU": 16.0}] * 4  # of 64


@pytest.mark.parametrize("threads", [False, True])
def test_models_on_bases_of_their_own_update_at_once_if_they_may(threads: bool) -> None:
    team = load_team(config({"name": "local", "threads": threads}))
    assert (team.together is one_by_one) is not threads
    team.close()
