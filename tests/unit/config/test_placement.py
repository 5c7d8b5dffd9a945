"""Placement: devices of models and critic, and threads where there are several."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.config import Config, load_config, resolve
from colearn.contract import NetworkKey
from colearn.errors import ConfigError


def placed(placement: dict[str, str], **changed: Any) -> Config:
    base = {
        "task": {"name": "str_build", "horizon": 1},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": "embedded-tiny"}},
        "critic": {"path": "embedded-tiny"},
    }
    run = resolve(load_config(base | {"placement": placement}, changed))
    assert len(run.agents) == 2
    return run.config


NAMES = tuple(placed({}).models)


def test_every_model_and_the_critic_get_their_devices_and_update_in_threads() -> None:
    first, second = NAMES
    config = placed({first: "cuda:0", second: "cuda:1", "critic": "cuda:1"})
    assert [config.models[name].device for name in NAMES] == ["cuda:0", "cuda:1"]
    assert config.critic is not None and config.critic.device == "cuda:1"
    assert config.run.host.settings == {"threads": True}


def test_one_device_needs_no_threads_and_others_follow_the_run() -> None:
    config = placed({NAMES[0]: "cuda:0"})
    assert [config.models[name].device for name in NAMES] == ["cuda:0", None]
    assert config.run.host.settings == {}


def test_several_names_on_one_device_need_no_threads() -> None:
    config = placed(dict.fromkeys((*NAMES, "critic"), "cuda:0"))
    assert config.run.host.settings == {}


def test_a_device_that_is_said_twice_alike_is_no_conflict() -> None:
    config = placed({NAMES[0]: "cuda:0"}, **{"models.*.device": "cuda:0"})
    assert [config.models[name].device for name in NAMES] == ["cuda:0", "cuda:0"]


def test_an_applied_placement_is_gone_from_the_config() -> None:
    assert placed({NAMES[0]: "cuda:0"}).placement == {}


def test_a_resolved_config_resolves_to_itself() -> None:
    config = placed({NAMES[0]: "cuda:0", "critic": "cuda:1"})
    assert resolve(config).config == config


def test_a_host_that_is_configured_stays() -> None:
    changed = {"run.host": {"name": "local", "threads": False}}
    config = placed({NAMES[0]: "cuda:0", "critic": "cuda:1"}, **changed)
    assert config.run.host.settings == {"threads": False}


DC = {"algorithm": {"name": "collm_dc"}}
"""With a value model for each agent, named after it."""


def test_each_of_several_value_models_gets_its_device() -> None:
    first, second = NAMES
    here = {"critic": "cuda:0", f"critic-{second}": "cuda:3"}
    config = placed(here, **DC)
    assert config.critic is not None and config.critic.devices == {second: "cuda:3"}
    run = resolve(config)
    of = {name: run.device(NetworkKey("critic", name)) for name in NAMES}
    assert of[first] == ("cuda:0", "critic.device")
    assert of[second] == ("cuda:3", f"critic.devices.{second}")
    assert run.device(NetworkKey("actor", second)) == ("auto", "run.device")


@pytest.mark.parametrize(
    ("placement", "changed", "line"),
    [
        (
            {"critic-team": "cuda:0"},
            DC,
            rf"critic\.devices\.team: no such value model; known: {NAMES[0]}",
        ),
        (
            {f"critic-{NAMES[0]}": "cuda:0"},
            DC | {"critic.devices": {NAMES[0]: "cuda:1"}},
            rf"placement\.critic-{NAMES[0]}: is cuda:0, and critic\.devices\.{NAMES[0]} is cuda:1",
        ),
        ({"nobody": "cuda:0"}, {}, r"placement\.nobody: no such model; known: .*critic"),
        ({"critic": "gpu0"}, {}, r"placement\.critic: no such device; use auto, cpu, cuda"),
        ({NAMES[0]: "cuda:0"}, {"models.*.device": "cpu"}, r"placement\..*is cuda:0, and models\."),
        (
            {"critic": "cuda:0"},
            {"critic": None, "algorithm": {"name": "magrpo"}},
            r"placement\.critic: there is no critic model",
        ),
        (
            {"critic": "cuda:0"},
            {"critic": {"share": "actor"}, "algorithm": {"name": "collm_dc"}},
            r"placement\.critic: there is no critic model",
        ),
    ],
)
def test_bad_placements_are_one_line(
    placement: dict[str, str], changed: dict[str, Any], line: str
) -> None:
    with pytest.raises(ConfigError, match=line) as error:
        placed(placement, **changed)
    assert "\n" not in str(error.value)
