"""Proposed layout of a run on a described machine, and the settings that the layout changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from colearn.config import load_config

from .run_estimate import Estimate, estimate


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changed settings, and the estimate of the run with these settings."""

    changes: Mapping[str, Any]
    """New values of settings. The keys are dotted config keys."""
    estimate: Estimate
    layout: str = "as it is"
    """Description of the processes and of the placement of networks."""
    others: tuple[Proposal, ...] = ()
    """Layouts that were tried and not chosen."""

    @property
    def iteration(self) -> float:
        """Seconds of an iteration. Errors: ValueError if they are not known."""
        if self.estimate.seconds is None:
            raise ValueError("no time: the rates of these devices are not known")
        return self.estimate.seconds.iteration

    @property
    def zero(self) -> bool:
        """Whether ZeRO partitions the optimiser state."""
        return "run.learner" in self.changes

    @property
    def devices(self) -> int:
        """Number of devices that the layout uses."""
        used = [device for device, phases in (self.estimate.phases or {}).items() if phases]
        return self.estimate.processes * sum(device != "cpu" for device in used)

    @property
    def fits(self) -> bool:
        return not self.estimate.too_small

    def changed(self, changes: Mapping[str, Any], *, processes: int | None = None) -> Proposal:
        """The proposal with additional changes. Errors: as for `estimate`."""
        before = self.estimate
        config = before.given.model_dump(mode="json", exclude_unset=True)
        after = estimate(
            load_config(config, changes),
            processes=before.processes if processes is None else processes,
            machine=before.machine,
            rehearsed=before.rehearsed,
            workload=before.workload,
        )
        return replace(self, changes={**self.changes, **changes}, estimate=after)

    def excess(self, phases: Sequence[str], filled: float = 1.0) -> float:
        """Return the non-resident bytes that these phases need on the fullest device, divided by
        the bytes available there. Only the fraction `filled` of the device's memory counts as
        available. If the result is above 1, the phases do not fit."""
        current, worst = self.estimate, 0.0
        for device, peaks in (current.phases or {}).items():
            capacity = current.capacity(device)
            if capacity is None:
                continue
            room = filled * capacity - current.resident[device]
            for phase in phases:
                if peaks.get(phase, 0) > filled * capacity:
                    needed = peaks[phase] - current.resident[device]
                    worst = max(worst, needed / room if room > 0 else inf)
        return worst
