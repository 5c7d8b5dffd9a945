"""Waiting for a cluster of Ray, with a stand-in for the package: what is tried again and told."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from colearn.errors import ConfigError
from colearn.experiment.hosts import ray_workers
from colearn.experiment.hosts.ray_workers import RayWorkers

LATE = Exception("The current node timed out during startup. This could happen because ...")


class Ray:
    """Starts at the first try without an error; has `cpus` on nodes of which some may be gone."""

    def __init__(self, errors: list[Exception], *, cpus: float = 0.0, gone: bool = False) -> None:
        self.errors, self.tries = errors, 0
        self.cpus, self.gone = cpus, gone
        self.asked: list[float] = []
        self.util = SimpleNamespace(placement_group=self._group)

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str, **settings: Any) -> None:
        self.tries += 1
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
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def join(ray: Ray, seconds: float = 300.0) -> RayWorkers:
        monkeypatch.setattr(ray_workers, "required", lambda *_: ray)
        return RayWorkers("local", cpus=1, gpus=0, processes=1, seconds=seconds)

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
