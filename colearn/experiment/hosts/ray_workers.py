"""Workers as Ray actors: joins or starts a cluster, reserves resources, calls the actors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from colearn.errors import ConfigError, ModelLost, reason_of, required

from .model_worker import ModelWorker
from .remote_models import Call

LOCAL = "local"
"""The address that starts a cluster on this machine, which ends with the run."""
_SECONDS = 60.0
"""Time in which resources that the cluster has in all must become free."""


class RayWorkers:
    """One actor per group of models. `cpus` and `gpus` are reserved for each; `cpus` None: equal
    shares of the cluster's.

    Errors: MissingExtra; ConfigError for an address where no cluster answers.
    """

    def __init__(self, address: str, *, cpus: float | None, gpus: float) -> None:
        self._ray = required("ray", "ray")
        self._cpus, self._gpus = cpus, gpus
        self._group: Any = None
        self._actors: list[Any] = []
        self._joined = not self._ray.is_initialized()
        if self._joined:
            _join(self._ray, address)

    def start(self, groups: Sequence[str]) -> list[Call]:
        """Errors: ConfigError if the cluster lacks the resources."""
        ray = self._ray
        total = ray.cluster_resources()
        cpus = total.get("CPU", 0.0) / len(groups) if self._cpus is None else self._cpus
        self._check(len(groups), cpus, total)
        bundle = {name: n for name, n in (("CPU", cpus), ("GPU", self._gpus)) if n}
        self._group = ray.util.placement_group([bundle] * len(groups), strategy="PACK")
        if not self._group.wait(_SECONDS):
            raise ConfigError(
                f"run.host: the cluster's CPUs or GPUs are in use, {len(groups)} workers had no "
                f"place within {_SECONDS:g} s; wait for what runs there, or ask for less"
            )
        calls = []
        for number, group in enumerate(groups):
            strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                placement_group=self._group, placement_group_bundle_index=number
            )
            actor = (
                ray.remote(ModelWorker)
                .options(num_cpus=cpus, num_gpus=self._gpus, scheduling_strategy=strategy)
                .remote()
            )
            self._actors.append(actor)
            calls.append(self._call(actor, group))
        return calls

    def close(self) -> None:
        ray = self._ray
        for actor in self._actors:
            ray.kill(actor)
        if self._group is not None:
            ray.util.remove_placement_group(self._group)
        self._actors, self._group = [], None
        if self._joined:
            ray.shutdown()

    def _check(self, workers: int, cpus: float, total: dict[str, float]) -> None:
        for field, kind, each in (("cpus", "CPU", cpus), ("gpus", "GPU", self._gpus)):
            has = total.get(kind, 0.0)
            if workers * each > has + 1e-6:
                raise ConfigError(
                    f"run.host.{field}: {workers} workers of {each:g} {kind}s need "
                    f"{workers * each:g}, and the cluster has {has:g}; lower it, let models share "
                    "a base (lora), or add nodes"
                )

    def _call(self, actor: Any, group: str) -> Call:
        errors = self._ray.exceptions

        def call(method: str, *args: Any) -> Any:
            try:
                return self._ray.get(getattr(actor, method).remote(*args))
            except errors.RayTaskError as error:
                raise error.cause from error
            except errors.RayActorError:
                raise ModelLost(
                    f"run.host: the worker of {group} has ended (killed, out of memory, or its "
                    "node is gone); continue with --resume, or set run.restarts"
                ) from None

        return call


def _join(ray: Any, address: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == LOCAL:
        settings["include_dashboard"] = False
    try:
        ray.init(address, **settings)
    except (ConnectionError, ValueError) as error:
        raise ConfigError(
            f"run.host.address: no Ray cluster at '{address}' ({reason_of(error)}); start one with "
            f"ray start --head, or set it to {LOCAL}"
        ) from None
