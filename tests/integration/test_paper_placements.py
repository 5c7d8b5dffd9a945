"""Every config at paper size has a proposed placement that fits eight H100 of 80 GB."""

from __future__ import annotations

import pytest

from colearn.config import load_config, shipped_configs
from colearn.estimate import estimate
from colearn.estimate.machine import read_machine
from colearn.estimate.propose import propose

PAPER = [name for name in shipped_configs() if name.startswith("paper/")]


def test_there_are_nineteen_of_them() -> None:
    assert len(PAPER) == 19


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_a_paper_config_is_proposed_a_placement_that_fits(name: str) -> None:
    config = load_config(name)
    proposal = propose(estimate(config, machine=read_machine("8xH100-80GB")))
    assert proposal is not None and proposal.fits
    # the lines that are proposed are the run that was estimated
    pasted = load_config(name, proposal.changes)
    assert pasted.train.episodes == config.train.episodes
    again = estimate(
        pasted,
        processes=proposal.estimate.processes,
        machine=read_machine("8xH100-80GB"),
        rehearsed=proposal.estimate.rehearsed,
    )
    assert again.too_small == () and again.phases == proposal.estimate.phases
