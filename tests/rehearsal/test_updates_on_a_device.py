"""Updates on devices in name only: what one micro-batch costs."""

from __future__ import annotations

import pytest

KERNELS = {(0, 1): 1350, (0, 4): 1350, (1, 1): 1200, (1, 4): 1200}
"""Most kernels of one micro-batch in a model of 4 layers, by adapters and branches of a tree."""


def worst(places):
    ordered = sorted(places.items(), key=lambda one: -one[1])
    return "\n".join(f"  {number:9.1f}  {where}" for where, number in ordered[:12])


@pytest.mark.parametrize("forks", [1, 4], ids=["chains", "trees"])
@pytest.mark.parametrize("adapters", [0, 1], ids=["full weights", "one adapter"])
def test_an_update_costs(rehearse, adapters, forks):
    spent = rehearse(
        "update_cases:per_micro_batch",
        adapters=adapters,
        compute="bfloat16",
        forks=forks,
        values=True,
    )
    passes, step = spent["passes"], spent["step"]
    assert sum(passes["waits"].values()) <= 3, worst(passes["waits"])
    assert sum(step["waits"].values()) <= 1, worst(step["waits"])
    kernels = sum(passes["kernels"].values())
    assert kernels <= KERNELS[adapters, forks], f"{kernels}\n{worst(passes['kernels'])}"


@pytest.mark.parametrize("forks", [1, 4], ids=["chains", "trees"])
def test_joint_passes_of_two_adapters_launch_fewer_kernels_than_two_passes(rehearse, forks):
    joint, separate = (
        rehearse("update_cases:per_minibatch_of_two", joint=joint, forks=forks)
        for joint in (True, False)
    )
    kernels, before = (sum(spent["kernels"].values()) for spent in (joint, separate))
    assert kernels <= 0.7 * before, worst(joint["kernels"])
    assert sum(joint["waits"].values()) <= sum(separate["waits"].values()), worst(joint["waits"])
