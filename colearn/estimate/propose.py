"""Proposes settings with which a run fits the memory of a described machine and takes the least
time.

No change affects the experience, except that vLLM samples from the same distributions with
different random numbers. No change affects the gradient, except for the order of sums. The changes
within a layout, from cheap to expensive, are: fewer concurrent episodes, a smaller token budget,
and activation checkpointing.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from .layouts import larger_caches, layouts, with_engines
from .proposal import Proposal
from .run_estimate import Estimate

LEAST_BUDGET = 1024
"""Smallest proposed token budget."""
_PLAYS = {"evaluation": "evaluation.at_once", "rollout": "train.at_once"}
_UPDATES = ("critic update", "actor update")
_CACHES = (0.0, 0.3)
"""Fractions of a device's memory to try for the caches of vLLM engines."""
_FILLED = 0.9
"""Fraction of a device's memory that a reduced number of episodes may fill, since fragmentation is
not counted."""


def propose(estimated: Estimate) -> Proposal | None:
    """Propose the fastest layout that fits, with the cheapest settings that make it fit. If the
    devices' rates are not known, propose the first layout that fits. If no layout fits, propose the
    layout that exceeds the memory least.

    Return None if no machine is described, a model was not counted, a cluster places the models, or
    the unchanged run is the best. For models on a cluster, `workers_too_large` proposes a share of
    a GPU.
    Errors: as for `estimate`.
    """
    if estimated.machine is None or estimated.phases is None or estimated.workers:
        return None
    timed = estimated.seconds is not None
    tried: list[Proposal] = []
    for layout in layouts(estimated):
        proposal = _with_engines(layout)
        if proposal is None or not proposal.fits:
            tuned = _tuned(layout)
            proposal = tuned if proposal is None or tuned.fits else proposal
        tried.append(proposal)
        if proposal.fits and (not timed or (layout.zero and proposal.estimate.engines)):
            break  # what ZeRO divides further is exchanged more often
    fitting = [proposal for proposal in tried if proposal.fits]
    if not fitting:
        return min(tried, key=_fullest)
    best = min(fitting, key=lambda proposal: proposal.iteration) if timed else fitting[0]
    if not best.changes and best.estimate.processes == estimated.processes:
        return None
    return replace(best, others=tuple(proposal for proposal in tried if proposal is not best))


def _fullest(proposal: Proposal) -> float:
    estimate, machine = proposal.estimate, proposal.estimate.machine
    assert machine is not None and estimate.phases is not None
    return max(estimate.peak(device) for device in estimate.too_small) / machine.memory


def _with_engines(layout: Proposal) -> Proposal | None:
    """Return the faster of two layouts with vLLM engines. In the first layout, caches use only the
    memory left by updates; in the second, caches are larger and leave less memory for updates. If
    only one of the two layouts fits, it is returned. None if the run cannot use vLLM engines."""
    tried = []
    for share in _CACHES:
        proposal = with_engines(layout, share)
        if proposal is None:
            return None
        tried.append(larger_caches(_tuned(proposal)))
    return min(tried, key=lambda proposal: (not proposal.fits, proposal.iteration))


def _tuned(proposal: Proposal) -> Proposal:
    """Apply the changes that the layout's phases need to fit; stop at a phase that cannot fit."""
    if proposal.excess(("optimizer step",)) > 1:
        return proposal
    for phase, key in _PLAYS.items():
        proposal = _fewer_at_once(proposal, phase, key)
        if proposal.excess((phase,)) > 1:
            return proposal
    return _smaller_updates(proposal)


def _fewer_at_once(proposal: Proposal, phase: str, key: str) -> Proposal:
    """Reduce the number of concurrent episodes of a phase until the phase fits. The phase's caches
    and activations grow with this number."""
    if proposal.excess((phase,)) <= 1:
        return proposal
    filled = _FILLED if proposal.excess((phase,), _FILLED) < inf else 1.0
    together = proposal.estimate.together.get(phase, 1)
    while together > 1 and 1 < (excess := proposal.excess((phase,), filled)) < inf:
        together = max(1, min(together - 1, int(together / excess)))
        proposal = proposal.changed({key: together})
    return proposal


def _smaller_updates(proposal: Proposal) -> Proposal:
    """Reduce the token budget; if that is not enough, also use activation checkpointing."""
    first = proposal
    proposal = _smaller_budget(proposal)
    if proposal.excess(_UPDATES) <= 1 or not (checkpointing := _checkpointing(proposal.estimate)):
        return proposal
    return _smaller_budget(first.changed(checkpointing))


def _smaller_budget(proposal: Proposal) -> Proposal:
    budget = proposal.estimate.run.token_budget
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
    """Number of padded tokens in each learner's largest micro-batch under a token budget."""
    run = estimated.run
    train = run.config.train.model_copy(update={"token_budget": budget})
    config = run.config.model_copy(update={"train": train})
    updates = estimated.workload.updates(replace(run, config=config))
    assert updates is not None, "an update was counted"
    return {str(key): work.size for key, work in updates.works.items()}


def _checkpointing(estimated: Estimate) -> dict[str, bool]:
    """Settings that enable activation checkpointing for the trained networks without it."""
    config, learners = estimated.given, estimated.run.learners
    keys = {
        f"models.{name}.checkpointing": True
        for name, model in config.models.items()
        if model.trained and not model.checkpointing
    }
    critic = config.critic
    learned = any(key.kind == "critic" for key in learners)
    if learned and critic is not None and not critic.checkpointing:
        keys["critic.checkpointing"] = True
    return keys
