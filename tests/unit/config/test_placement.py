"""Placement: devices of models and critic, and threads where there are several."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.config import ResolvedRun, load_config, resolve
from colearn.contract import NetworkKey
from colearn.errors import ConfigError


def placed(placement: dict[str, str], **changed: Any) -> ResolvedRun:
    base = {
        "task": {"name": "str_build", "horizon": 1},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": "embedded-tiny"}},
        "critic": {"path": "embedded-tiny"},
    }
    run = resolve(load_config(base | {"placement": placement}, changed))
    assert len(run.agents) == 2
    return run


NAMES = tuple(placed({}).config.models)


def devices(run: ResolvedRun) -> dict[str, tuple[str, str]]:
    return {str(key): run.device(key) for key in run.networks}


def test_every_model_and_the_critic_get_their_devices_and_update_in_threads() -> None:
    first, second = NAMES
    run = placed({first: "cuda:0", second: "cuda:1", "critic": "cuda:1"})
    assert devices(run) == {
        f"actor-{first}": ("cuda:0", f"placement.{first}"),
        f"actor-{second}": ("cuda:1", f"placement.{second}"),
        "critic-team": ("cuda:1", "placement.critic"),
    }
    assert run.config.run.host.settings == {"threads": True}


def test_one_device_needs_no_threads_and_others_follow_the_run() -> None:
    run = placed({NAMES[0]: "cuda:0"})
    assert devices(run)[f"actor-{NAMES[1]}"] == ("auto", "run.device")
    assert run.config.run.host.settings == {}


def test_several_names_on_one_device_need_no_threads() -> None:
    run = placed(dict.fromkeys((*NAMES, "critic"), "cuda:0"))
    assert run.config.run.host.settings == {}


def test_a_resolved_config_resolves_to_itself() -> None:
    config = placed({NAMES[0]: "cuda:0", "critic": "cuda:1"}).config
    assert resolve(config).config == config


def test_where_nothing_is_learned_the_critic_s_device_is_left_out() -> None:
    changed = {"algorithm": {"name": "untrained"}}
    config = placed({NAMES[0]: "cuda:0", "critic": "cuda:1"}, **changed).config
    assert config.placement == {NAMES[0]: "cuda:0"}
    assert resolve(config).config == config


def test_a_host_that_is_configured_stays() -> None:
    changed = {"run.host": {"name": "local", "threads": False}}
    run = placed({NAMES[0]: "cuda:0", "critic": "cuda:1"}, **changed)
    assert run.config.run.host.settings == {"threads": False}


DC = {"algorithm": {"name": "collm_dc"}}
"""With a value model for each agent, named after it."""


def test_each_of_several_value_models_gets_its_device() -> None:
    first, second = NAMES
    here = {"critic": "cuda:0", f"critic-{second}": "cuda:3"}
    run = placed(here, **DC)
    of = {name: run.device(NetworkKey("critic", name)) for name in NAMES}
    assert of[first] == ("cuda:0", "placement.critic")
    assert of[second] == ("cuda:3", f"placement.critic-{second}")
    assert run.device(NetworkKey("actor", second)) == ("auto", "run.device")


@pytest.mark.parametrize(
    ("placement", "changed", "line"),
    [
        (
            {"critic-team": "cuda:0"},
            DC,
            rf"placement\.critic-team: no such value model; .*critic-{NAMES[0]}",
        ),
        ({"nobody": "cuda:0"}, {}, r"placement\.nobody: no such model; known: .*critic"),
        ({"critic": "gpu0"}, {}, r"placement\.critic: no such device; use auto, cpu, cuda"),
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
