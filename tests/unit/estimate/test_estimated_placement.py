"""The placement of a dry run on several described devices: a base model a device, largest first."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from colearn.config import Config, load_config
from colearn.estimate import Estimate, estimate
from colearn.estimate.machine import read_machine
from colearn.estimate.phases import Passes
from colearn.estimate.table import placement_text

PASSES = Passes()


def config(**changed: Any) -> Config:
    return load_config(
        {
            "task": {"name": "str_build", "horizon": 1},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": "embedded-tiny"}},
            "critic": {"path": "embedded-tiny"},
            "evaluation": {"episodes": 1},
        },
        changed,
    )


def placed(devices: str, processes: int = 1, **changed: Any) -> Estimate:
    machine = read_machine(devices)
    return estimate(config(**changed), machine=machine, processes=processes, rehearsed=PASSES)


def test_each_base_model_has_a_device() -> None:
    one = placed("4x80GB")
    assert sorted(one.placement.values()) == ["cuda:0", "cuda:1", "cuda:2"]
    devices = {network.key.model: network.device for network in one.networks}
    assert len(set(devices.values())) == 3 and {"cuda:0", "cuda:1", "cuda:2"} < {*one.phases}


def test_more_models_than_devices_share_them_by_size() -> None:
    # both actors are alike; the critic, whose vocabulary holds the tags of a stream, is larger
    assert [*placed("2x80GB").placement.items()] == [
        ("critic", "cuda:0"),
        ("builder_1", "cuda:1"),
        ("builder_2", "cuda:1"),
    ]


def test_each_of_several_value_models_is_placed() -> None:
    where = placed("4x80GB", **{"algorithm.name": "collm_dc"}).placement
    assert sorted(where) == ["builder_1", "builder_2", "critic-builder_1", "critic-builder_2"]
    assert sorted(where.values()) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


def test_adapters_of_one_base_stay_together() -> None:
    lora = {"models.*.lora": {"rank": 2, "alpha": 4}, "critic.lora": {"rank": 2, "alpha": 4}}
    one = placed("2x80GB", **lora)
    assert not one.placement and {network.device for network in one.networks} == {"cuda:0"}


@pytest.mark.parametrize(
    ("devices", "changed"),
    [
        ("80GB", {}),
        ("2x80GB", {"placement": {"builder_1": "cuda:1"}}),
        ("2x80GB", {"run.device": "cuda:1"}),
    ],
    ids=["one device", "a device for a model", "a device for all"],
)
def test_devices_that_a_config_names_stay(devices: str, changed: dict[str, Any]) -> None:
    assert not placed(devices, **changed).placement


def test_processes_of_a_launcher_have_a_device_each() -> None:
    assert not placed("2x80GB", processes=2).placement


def test_the_printed_setting_is_the_run_that_was_estimated() -> None:
    one = placed("2x80GB")
    setting = shlex.split(placement_text(one).plain)[-1]
    pasted = load_config(config().model_dump(mode="json"), [setting])
    again = estimate(pasted, machine=one.machine, rehearsed=PASSES)
    assert again.run.config.placement and again.phases == one.phases
