"""Proposes settings under which a run fits a described machine and computes the same.

No change affects the experience or, up to the order of sums, the gradient. From cheap to expensive:
a placement of models on devices, fewer episodes at once, a smaller token budget, checkpointed
activations, and ZeRO over a process for each device, at stage 2, at stage 3, and with offload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from colearn.config import LearnerChoice, load_config

from .run import Estimate, estimate
from .spread import spread

LEAST_BUDGET = 1024
"""Smallest proposed token budget."""
_PLAYS = {"evaluation": "evaluation.at_once", "rollout": "train.at_once"}
_UPDATES = ("critic update", "actor update")
_STAGES = ("zero2", "zero3", "zero3_offload")
_FILLED = 0.9
"""Share of a device that a cut number of episodes may fill: fragments are not counted."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changed settings, and the estimate of the run with them."""

    changes: Mapping[str, Any]
    """Values by dotted key."""
    estimate: Estimate

    @property
    def fits(self) -> bool:
        return not self.estimate.too_small

    def changed(self, changes: Mapping[str, Any], *, processes: int | None = None) -> Proposal:
        """With further changes. Errors: as for `estimate`."""
        before = self.estimate
        given = before.given.model_dump(mode="json", exclude_unset=True)
        after = estimate(
            load_config(given, changes),
            processes=before.processes if processes is None else processes,
            machine=before.machine,
            rehearsed=before.rehearsed,
            workload=before.workload,
        )
        return Proposal({**self.changes, **changes}, after)

    def excess(self, phases: Sequence[str], filled: float = 1.0) -> float:
        """Bytes that these phases need beside the resident ones, per byte that is left for them in
        the share `filled` of the fullest device: above 1 they do not fit."""
        one, worst = self.estimate, 0.0
        for device, peaks in (one.phases or {}).items():
            capacity = one.capacity(device)
            if capacity is None:
                continue
            left = filled * capacity - one.resident[device]
            for phase in phases:
                if peaks.get(phase, 0) > filled * capacity:
                    needed = peaks[phase] - one.resident[device]
                    worst = max(worst, needed / left if left > 0 else inf)
        return worst


def propose(estimated: Estimate) -> Proposal | None:
    """The first layout that fits, with the cheapest settings that make it fit; if none does, the
    one that comes closest.

    None if there is nothing to change: no machine is described, a model was not counted, a cluster
    places the models (`workers_too_large` proposes their share of a GPU), or the run fits and its
    layout is given (one device, a launcher's processes, devices in the config).
    Errors: as for `estimate`.
    """
    if estimated.machine is None or estimated.phases is None or estimated.workers:
        return None
    tried = []
    for layout in _layouts(estimated):
        proposal = _tuned(layout)
        if proposal.fits:
            changed = bool(proposal.changes) or layout.estimate.processes != estimated.processes
            return proposal if changed else None
        tried.append(proposal)
    return min(tried, key=_fullest)


def _fullest(proposal: Proposal) -> float:
    one, machine = proposal.estimate, proposal.estimate.machine
    assert machine is not None and one.phases is not None
    return max(one.peak(device) for device in one.too_small) / machine.memory


def _layouts(estimated: Estimate) -> Iterator[Proposal]:
    """Where networks may be, the cheapest first."""
    run, machine, processes = estimated.run, estimated.machine, estimated.processes
    assert machine is not None
    start = Proposal({}, estimated)
    named = any(run.settings(key).device is not None for key in run.networks) or (
        run.config.critic is not None and bool(run.config.critic.devices)
    )
    if named or machine.count == 1 or processes > 1:
        yield start
    else:
        yield start.changed({"placement": spread(estimated)})
    if named or not run.algorithm.learns or run.config.run.learner != LearnerChoice():
        return
    several = max(processes, machine.count)
    for stage in _STAGES:
        if several > 1 or stage == "zero3_offload":
            learner = {"name": "deepspeed", "config": stage}
            yield start.changed({"run.learner": learner}, processes=several)


def _tuned(proposal: Proposal) -> Proposal:
    """The same layout with what its phases need to fit; stops at a phase that cannot."""
    if proposal.excess(("optimizer step",)) > 1:
        return proposal
    for phase, key in _PLAYS.items():
        proposal = _fewer_at_once(proposal, phase, key)
        if proposal.excess((phase,)) > 1:
            return proposal
    return _smaller_updates(proposal)


def _fewer_at_once(proposal: Proposal, phase: str, key: str) -> Proposal:
    """Caches and activations of a phase grow with the episodes that it plays at once."""
    if proposal.excess((phase,)) <= 1:
        return proposal
    filled = _FILLED if proposal.excess((phase,), _FILLED) < inf else 1.0
    together = proposal.estimate.together.get(phase, 1)
    while together > 1 and 1 < (excess := proposal.excess((phase,), filled)) < inf:
        together = max(1, min(together - 1, int(together / excess)))
        proposal = proposal.changed({key: together})
    return proposal


def _smaller_updates(proposal: Proposal) -> Proposal:
    """With a smaller token budget; if none helps, with checkpointed activations, too."""
    first = proposal
    proposal = _smaller_budget(proposal)
    if proposal.excess(_UPDATES) <= 1 or not (checkpointing := _checkpointing(proposal.estimate)):
        return proposal
    return _smaller_budget(first.changed(checkpointing))


def _smaller_budget(proposal: Proposal) -> Proposal:
    budget = proposal.estimate.run.config.train.token_budget
    while 1 < (excess := proposal.excess(_UPDATES)) < inf:
        before = _micro_batches(proposal.estimate, budget)
        while budget // 2 >= LEAST_BUDGET:
            budget //= 2
            sizes = _micro_batches(proposal.estimate, budget)
            # activations grow with the padded tokens, the rest does not become smaller
            shares = [sizes[key] / before[key] for key in sizes if before[key]]
            if min(shares, default=0) <= 1 / excess:
                break
        else:
            return proposal
        proposal = proposal.changed({"train.token_budget": budget})
    return proposal


def _micro_batches(estimated: Estimate, budget: int) -> dict[str, int]:
    """Padded tokens of each learner's largest micro-batch under a token budget."""
    run = estimated.run
    train = run.config.train.model_copy(update={"token_budget": budget})
    config = run.config.model_copy(update={"train": train})
    updates = estimated.workload.updates(replace(run, config=config))
    assert updates is not None, "an update was counted"
    return {str(key): work.size for key, work in updates.works.items()}


def _checkpointing(estimated: Estimate) -> dict[str, bool]:
    """The setting of every trained network whose activations are not checkpointed yet."""
    given, learners = estimated.given, estimated.run.learners
    keys = {
        f"models.{name}.checkpointing": True
        for name, model in given.models.items()
        if model.trained and not model.checkpointing
    }
    critic = given.critic
    learned = any(key.kind == "critic" for key in learners)
    if learned and critic is not None and not critic.checkpointing:
        keys["critic.checkpointing"] = True
    return keys
