"""Runs workers as Ray actors: joins or starts a cluster, reserves resources, and calls the
actors."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from colearn.errors import ConfigError, ModelLost, reason_of, required

from .links import Call
from .model_worker import ModelWorker

LOCAL = "local"
"""The address for starting a cluster on this machine; the cluster ends with the run."""
AUTO = "auto"
"""The address of the cluster that runs on this machine."""
_WAITS = {
    "RAY_gcs_server_port_wait_time_s": 1,
    "RAY_worker_register_timeout_seconds": 1,
    "RAY_agent_register_timeout_ms": 1000,
}
"""Maps environment variables, which set the start timeouts of Ray's processes, to the number of
time units per second that each variable uses. The default timeouts of 30 to 60 s are too short on a
busy machine."""
_AT_START = "timed out during startup"
"""Substring of Ray's error message for a Ray node that did not start within 30 s; no environment
variable changes this timeout."""
_ANSWERS = 10.0
"""Seconds within which the head node of a cluster accepts a connection. Ray itself tries for more
than nine minutes to reach an address."""


class RayWorker(ModelWorker):
    """A process of a worker, as a Ray actor."""

    def meeting_place(self) -> tuple[str, int]:
        """Returns this process's address in the cluster and a free port, so that the worker's
        processes can connect to each other."""
        address: str = required("ray", "ray").util.get_node_ip_address()
        with socket.socket() as free:
            free.bind(("", 0))
            return address, free.getsockname()[1]


class RayWorkers:
    """Runs `processes` Ray actors per group of models. `cpus` and `gpus` are reserved for each
    actor; if `cpus` is None, an actor has an equal share of the cluster's CPUs. `seconds` is the
    maximum time to wait for a local cluster to start, and for the requested resources to become
    free.

    Errors: MissingExtra; ConfigError for an address where no cluster answers.
    """

    def __init__(
        self, address: str, *, cpus: float | None, gpus: float, processes: int, seconds: float
    ) -> None:
        self._ray = required("ray", "ray")
        self._cpus, self._gpus = cpus, gpus
        self._processes, self._seconds = processes, seconds
        self._group: Any = None
        self._actors: list[Any] = []
        self._joined = not self._ray.is_initialized()
        if self._joined:
            _join(self._ray, address, seconds)
        else:
            _check_connected(self._ray, address)

    def start(self, groups: Sequence[str]) -> list[list[Call]]:
        """Start the actors of each group. Errors: ConfigError if the cluster lacks the
        resources."""
        ray = self._ray
        total, count = ray.cluster_resources(), len(groups) * self._processes
        cpus = total.get("CPU", 0.0) / count if self._cpus is None else self._cpus
        if all(node["Alive"] for node in ray.nodes()):  # otherwise one may come back
            self._check(count, cpus, total)
        bundle = {name: n for name, n in (("CPU", cpus), ("GPU", self._gpus)) if n}
        self._group = ray.util.placement_group([bundle] * count, strategy="PACK")
        if not self._group.wait(self._seconds):
            self._check(count, cpus, ray.cluster_resources())
            raise ConfigError(
                f"run.host: the cluster's CPUs or GPUs are in use, {count} processes had no place "
                f"within {self._seconds:g} s; wait for what runs there, ask for less, or raise "
                "run.host.start_minutes"
            )
        calls: list[list[Call]] = []
        for number, group in enumerate(groups):
            first = number * self._processes
            places = range(first, first + self._processes)
            calls.append([self._call(self._actor(place, cpus), group) for place in places])
        return calls

    def _actor(self, place: int, cpus: float) -> Any:
        """Starts an actor in one bundle of the placement group."""
        ray = self._ray
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            placement_group=self._group, placement_group_bundle_index=place
        )
        actor = (
            ray.remote(RayWorker)
            .options(
                num_cpus=cpus,
                num_gpus=self._gpus,
                scheduling_strategy=strategy,
                max_concurrency=2,  # it generates while it updates (`train.staleness`)
            )
            .remote()
        )
        self._actors.append(actor)
        return actor

    def close(self) -> None:
        ray = self._ray
        with contextlib.ExitStack() as stack:
            if self._joined:
                stack.callback(ray.shutdown)
            for actor in self._actors:
                ray.kill(actor)
            if self._group is not None:
                ray.util.remove_placement_group(self._group)
            self._actors, self._group = [], None

    def _check(self, processes: int, cpus: float, total: dict[str, float]) -> None:
        for field, kind, each in (("cpus", "CPU", cpus), ("gpus", "GPU", self._gpus)):
            has = total.get(kind, 0.0)
            if processes * each > has + 1e-6:
                raise ConfigError(
                    f"run.host.{field}: {processes} workers of {each:g} {kind}s need "
                    f"{processes * each:g}, and the cluster has {has:g}; lower it, let models "
                    "share a base (lora), or add nodes"
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


def _join(ray: Any, address: str, seconds: float) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == LOCAL:
        settings["include_dashboard"] = False
        for name, units in _WAITS.items():
            os.environ.setdefault(name, str(round(seconds * units)))
    else:
        _check_answers(address)
    end = time.monotonic() + seconds
    while True:
        try:
            _init(ray, address, settings)
        except (ConnectionError, ValueError) as error:
            raise _no_cluster(address, error) from None
        except Exception as error:  # of no class of its own
            if _AT_START not in str(error):
                raise
            if time.monotonic() > end:
                raise ConfigError(
                    f"run.host: no Ray cluster has started here within {seconds:g} s; raise "
                    "run.host.start_minutes, or start one with ray start --head"
                ) from None
        else:
            return


def _init(ray: Any, address: str, settings: dict[str, Any]) -> None:
    """Calls `ray.init`. Ctrl-C is deferred: an exception from a signal handler in the middle of the
    call can leave Ray in a state in which the process never ends. (Ray sets a handler of its own
    for SIGTERM.)"""
    with contextlib.ExitStack() as interrupted:
        with deferred_interrupt():
            with _without_remains(ray):
                ray.init(address, **settings)
            interrupted.callback(ray.shutdown)
        interrupted.pop_all()


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Context that defers Ctrl-C to the end of its block, even if the block ends with an error. The
    previous handler is then called. A second Ctrl-C is not deferred. Only the main thread handles
    signals, so the context has no effect in other threads."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if len(received) == 1:
            before(signal.SIGINT, None)


def _check_answers(address: str) -> None:
    """Errors: ConfigError if `address`, or the address that the environment gives for `auto`, is of
    the form HOST:PORT and accepts no connection."""
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS", AUTO)
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "://" not in address:
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWERS).close()
        except (OSError, OverflowError, UnicodeError) as error:
            raise _no_cluster(address, error) from None


def _no_cluster(address: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"run.host.address: no Ray cluster at '{address}' ({reason_of(error)}); start one with ray "
        f"start --head, or set it to {LOCAL}"
    )


def _check_connected(ray: Any, address: str) -> None:
    """Errors: ConfigError if this process is connected to another cluster than `address`."""
    connected = ray.get_runtime_context().gcs_address
    if address not in (AUTO, connected):
        raise ConfigError(
            f"run.host.address: this process is connected to the Ray cluster at {connected}, not "
            f"to '{address}'; set it to {AUTO}, or end the connection first (close the run that "
            "has it, or call ray.shutdown())"
        )


@contextlib.contextmanager
def _without_remains(ray: Any) -> Iterator[None]:
    """After an error or an interruption, ends the processes of Ray that were started in the
    context. Ray itself ends the processes of a node whose start failed only with this process; a
    later search for a cluster would find them."""
    processes = required("psutil", "ray")
    before = set(processes.Process().children())
    try:
        yield
    except BaseException:
        programs = str(Path(ray.__file__).parent)
        remains = []
        for child in set(processes.Process().children()) - before:
            with contextlib.suppress(processes.NoSuchProcess):
                if any(part.startswith(programs) for part in child.cmdline()):
                    remains += [child, *child.children(recursive=True)]
        for process in remains:
            with contextlib.suppress(processes.NoSuchProcess):
                process.kill()
        processes.wait_procs(remains, timeout=10)
        raise
