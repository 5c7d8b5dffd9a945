"""Host kinds: classes that hold the settings of a kind of host and construct the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from colearn.config import ResolvedRun
from colearn.contract import HostKind
from colearn.errors import ConfigError
from colearn.text.launcher import world_size

if TYPE_CHECKING:
    from colearn.models.load import Tokenizers
    from colearn.training.team import Team


@dataclass(frozen=True, kw_only=True)
class InProcess(HostKind):
    """Holds all models in the run's own process. In a run with several processes, every process
    holds all models."""

    joint_passes = True

    threads: bool = False
    """Whether models on different bases update at the same time, with one thread per base. This is
    useful if each base has a separate device; on a CPU the threads share the cores."""

    def build(self, run: ResolvedRun, tokenizers: Tokenizers) -> Team:
        from .local_team import local_team

        return local_team(run, tokenizers, threads=self.threads)


@dataclass(frozen=True, kw_only=True)
class Ray(HostKind):
    """Runs each model in a worker of a Ray cluster, together with the model's generator, learner
    and references. Models that share a base share a worker. The main process grows episodes and
    builds the training rows.

    A run that loses a worker continues from its last checkpoint, at most `run.restarts` times.
    """

    address: str = "local"
    """`local` starts a cluster on this machine and ends it with the run; `auto` joins the cluster
    that runs on this machine; `HOST:PORT` joins the cluster whose head node has this address."""
    cpus: float | None = None
    """CPUs reserved for each process; None: an equal share of the cluster's CPUs."""
    gpus: float = 0.0
    """GPUs reserved for each process; 0.5 lets two processes share one GPU."""
    processes: int = 1
    """Number of processes per worker. The processes of a worker update the worker's models
    together, as under torchrun, and generate in parallel. `run.learner: deepspeed` shards the
    models across the processes of a worker."""
    start_minutes: float = 5.0
    """Maximum number of minutes to wait for a local cluster to start, and for resources to become
    free."""

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ConfigError(f"processes: must be 1 or more, got {self.processes}")
        if not 0 < self.start_minutes < float("inf"):
            raise ConfigError(
                f"start_minutes: must be a finite number above 0, got {self.start_minutes}"
            )
        for name, least in (("cpus", self.cpus), ("gpus", self.gpus)):
            if least is not None and not 0 <= least < float("inf"):
                raise ConfigError(f"{name}: must be a finite number from 0, got {least}")

    def check(self, run: ResolvedRun) -> None:
        if world_size() > 1:
            raise ConfigError(
                "run.host: ray starts workers of its own from one process; start without torchrun, "
                "or set run.host: local"
            )
        for key in run.networks:
            device, field = run.device(key)
            kind, _, index = device.partition(":")
            if index:
                raise ConfigError(
                    f"{field}: a worker of ray sees its own devices only, and {device} is not "
                    f"among them; set {field}: {kind}, and run.host.gpus to each worker's share"
                )
            if kind == "cuda" and not self.gpus:
                raise ConfigError(
                    f"run.host.gpus: {key} runs on cuda; set it to the GPUs of each process, such "
                    "as 1"
                )

    def build(self, run: ResolvedRun, tokenizers: Tokenizers) -> Team:
        from .ray_workers import RayWorkers
        from .remote_team import remote_team

        workers = RayWorkers(
            self.address,
            cpus=self.cpus,
            gpus=self.gpus,
            processes=self.processes,
            seconds=60 * self.start_minutes,
        )
        return remote_team(run, tokenizers, workers)
