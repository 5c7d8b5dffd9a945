"""Every config at paper size has a placement on eight H100 of 80 GB."""

from __future__ import annotations

import pytest
from estimated import *  # noqa: F403 - fixtures

from colearn.config import load_config, shipped_configs
from colearn.estimate import estimate
from colearn.estimate.machine import read_machine

PAPER = [name for name in shipped_configs() if name.startswith("paper/")]


def test_there_are_nineteen_of_them() -> None:
    assert len(PAPER) == 19


@pytest.mark.slow
@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize("name", PAPER)
def test_a_paper_config_is_placed(name: str) -> None:
    one = estimate(load_config(name), machine=read_machine("8xH100-80GB"))
    learning = [network for network in one.networks if network.key.kind in ("actor", "critic")]
    bases = {network.base: network.device for network in learning}
    assert len(set(bases.values())) == min(8, len(bases))
    homes = {network.key.model: network.device for network in learning}
    frozen = [network for network in one.networks if network not in learning]
    assert all(network.device == homes[network.key.model] for network in frozen)
