"""Starting and joining a cluster of Ray, with a stand-in for the package: what is tried again, what
is told and what is left."""

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

from colearn.errors import ConfigError
from colearn.training.hosts import ray_workers
from colearn.training.hosts.ray_workers import RayWorkers

LATE = Exception("The current node timed out during startup. This could happen because ...")


class Ray:
    """Starts at the first try without an error; has `cpus` on nodes of which some may be gone.

    connected: the address of a cluster that the process is connected to from the start.
    starts: called at every try.
    """

    __file__ = "/packages/ray/__init__.py"

    def __init__(
        self,
        errors: list[BaseException],
        *,
        cpus: float = 0.0,
        gone: bool = False,
        connected: str | None = None,
        starts: Callable[[], object] = lambda: None,
    ) -> None:
        self.errors, self.tries = errors, 0
        self.cpus, self.gone = cpus, gone
        self.connected, self.starts = connected, starts
        self.asked: list[float] = []
        self.util = SimpleNamespace(placement_group=self._group)

    def is_initialized(self) -> bool:
        return self.connected is not None

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address=self.connected)

    def shutdown(self) -> None:
        self.connected = None

    def init(self, address: str, **settings: Any) -> None:
        self.tries += 1
        self.starts()
        if self.errors:
            raise self.errors.pop(0)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cpus}

    def nodes(self) -> list[dict[str, bool]]:
        return [{"Alive": True}, {"Alive": not self.gone}]

    def _group(self, bundles: Any, strategy: str) -> Any:
        def wait(seconds: float) -> bool:
            self.asked.append(seconds)
            return False

        return SimpleNamespace(wait=wait)


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Any:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    monkeypatch.setattr(os, "environ", plain)

    def join(ray: Ray, seconds: float = 300.0, address: str = "local") -> RayWorkers:
        def required(module: str, extra: str) -> Any:
            return ray if module == "ray" else import_module(module)

        monkeypatch.setattr(ray_workers, "required", required)
        return RayWorkers(address, cpus=1, gpus=0, processes=1, seconds=seconds)

    return join


def test_a_node_that_starts_late_is_started_again(joined: Any) -> None:
    ray = Ray([LATE, LATE])
    joined(ray)
    assert ray.tries == 3
    waits = dict(os.environ)
    assert waits["RAY_worker_register_timeout_seconds"] == "300"
    assert waits["RAY_agent_register_timeout_ms"] == "300000"


def test_a_node_that_never_starts_is_one_line_with_the_setting(joined: Any) -> None:
    with pytest.raises(ConfigError, match=r"within 0\.001 s; raise run\.host\.start_minutes"):
        joined(Ray([LATE] * 10_000), 0.001)


def test_another_error_is_not_tried_again(joined: Any) -> None:
    ray = Ray([Exception("the disk is full")])
    with pytest.raises(Exception, match="the disk is full"):
        joined(ray)
    assert ray.tries == 1


def test_resources_that_no_node_has_are_told_at_once(joined: Any) -> None:
    ray = Ray([], cpus=1)
    with pytest.raises(ConfigError, match=r"2 workers of 1 CPUs need 2, and the cluster has 1"):
        joined(ray).start(["one", "two"])
    assert not ray.asked


def test_resources_of_a_node_that_is_gone_are_waited_for(joined: Any) -> None:
    ray = Ray([], cpus=1, gone=True)
    with pytest.raises(ConfigError, match=r"2 workers of 1 CPUs need 2, and the cluster has 1"):
        joined(ray).start(["one", "two"])
    assert ray.asked == [300.0]


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
            joined(Ray([error], starts=starts), 0.0)
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

    ray = Ray([], starts=start)
    with pytest.raises(KeyboardInterrupt):
        joined(ray)
    assert whole == [True]
    assert ray.connected is None


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_start_that_is_late_is_not_tried_again(joined: Any) -> None:
    ray = Ray([LATE], starts=lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        joined(ray)
    assert (ray.tries, ray.errors) == (1, [])


@pytest.mark.parametrize("address", ["auto", "10.0.0.1:6379"])
def test_a_run_uses_its_processs_connection_to_a_cluster_and_leaves_it(
    joined: Any, address: str
) -> None:
    ray = Ray([], connected="10.0.0.1:6379")
    joined(ray, address=address).close()
    assert ray.connected == "10.0.0.1:6379"
    assert ray.tries == 0


@pytest.mark.parametrize("address", ["local", "10.0.0.2:6379"])
def test_another_cluster_than_that_of_its_process_is_one_line(joined: Any, address: str) -> None:
    with pytest.raises(ConfigError, match=r"run\.host\.address: .* at 10\.0\.0\.1:6379") as error:
        joined(Ray([], connected="10.0.0.1:6379"), address=address)
    assert "\n" not in str(error.value)


def test_a_connection_ends_with_the_run_also_if_the_cluster_frees_nothing(joined: Any) -> None:
    def remove(group: Any) -> None:
        raise ConnectionError

    ended: list[str] = []
    ray = Ray([], cpus=1)
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
    ray = Ray([])
    told = rf"run\.host\.address: no Ray cluster at '{given}' \(.*refused.*\); start one with"
    with pytest.raises(ConfigError, match=told) as error:
        joined(ray, address="auto" if by == "RAY_ADDRESS" else given)
    assert ray.tries == 0
    assert "\n" not in str(error.value)


def test_an_address_that_accepts_connections_is_joined(joined: Any) -> None:
    ray = Ray([])
    with socket.create_server(("127.0.0.1", 0)) as head:
        joined(ray, address=f"127.0.0.1:{head.getsockname()[1]}")
    assert ray.tries == 1
