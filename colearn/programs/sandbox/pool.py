"""Concurrent sandboxed runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, Self

from colearn.errors import ConfigError

from .confine import Mechanism
from .limits import Limits
from .mechanism import choose_mechanism
from .run import run_program, run_tests
from .verdict import Output, Verdict


class SandboxPool:
    """Runs programs concurrently; each run has separate processes, which end with the run.

    workers: maximum number of concurrent runs; None: one per processor.
    limits: resource limits of every run.

    Errors: ConfigError if workers is not positive or no sandbox works on this machine.
    """

    def __init__(
        self,
        workers: int | None = None,
        limits: Limits | None = None,
        *,
        mechanism: Mechanism | Literal["auto"] = "auto",
    ) -> None:
        workers = workers if workers is not None else len(os.sched_getaffinity(0))
        if workers < 1:
            raise ConfigError(f"workers: {workers} must be at least 1")
        self.limits = limits or Limits()
        self.mechanism = choose_mechanism(mechanism)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")

    def submit_tests(
        self, program: str, entry_point: str, tests: Any, **overrides: Any
    ) -> Future[Verdict]:
        """Start `run_tests` in the background; the future's result is the verdict."""
        settings = {"limits": self.limits, "mechanism": self.mechanism} | overrides
        return self._threads.submit(run_tests, program, entry_point, tests, **settings)

    def run_tests(self, jobs: Iterable[Mapping[str, Any]]) -> list[Verdict]:
        """Returns one verdict per job, in order; a job maps arguments of `run_tests` to values."""
        return [future.result() for future in [self.submit_tests(**job) for job in jobs]]

    def run_programs(self, jobs: Iterable[tuple[str, str]]) -> list[Output]:
        """Returns one output per (program, stdin) pair, in order."""
        settings: dict[str, Any] = {"limits": self.limits, "mechanism": self.mechanism}
        futures = [self._threads.submit(run_program, *job, **settings) for job in jobs]
        return [future.result() for future in futures]

    def close(self) -> None:
        """Wait for started runs and cancel the others."""
        self._threads.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
