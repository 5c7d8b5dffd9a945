"""Several vLLM servers for one base: adapters in each, and what their settings refuse."""

from __future__ import annotations

from typing import Any

import pytest
from fake_vllm_server import FakeVLLMServer
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import adapted

from colearn.config import ResolvedRun, load_config, resolve
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.errors import ConfigError, ServerLost
from colearn.estimate import estimate
from colearn.estimate.table import estimate_tables
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update


def test_an_adapter_that_only_one_server_took_is_gone_at_the_end(
    base: Base, server: FakeVLLMServer
) -> None:
    other = FakeVLLMServer(server.folder)
    url = (server.url, other.url)
    engine = VLLMServer(url=url).build(base, adapted(base, "first", "second"))
    assert isinstance(engine, VLLMServerEngine)
    other.statuses["/v1/load_lora_adapter"] = (500, {"detail": "full"})
    with pytest.raises(ServerLost, match="does not take adapter 'first'"):
        engine.write([weight_update(Network(base, "first"), 1)])
    assert (len(server.adapters), len(other.adapters)) == (3, 2)
    engine.close()
    assert not server.adapters and not other.adapters
    other.close()


def served(url: Any, **models: Any) -> dict[str, Any]:
    return {
        "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
        "algorithm": {"name": "magrpo"},
        "models": {"*": {"path": "embedded-tiny", **models}},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "train": {"episodes": 2, "environment_steps": 40},
        "evaluation": {"episodes": 2},
        "run": {"device": "cpu", "generator": {"name": "vllm_server", "url": url}},
    }


A, B, C = "http://a", "http://b", "http://c"


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ([], r"run\.generator\.url: an empty list; name a server"),
        ([A, A + "/"], r"run\.generator\.url: http://a is listed twice"),
        ({"agent_1": [A], "agent_2": []}, r"run\.generator\.url\.agent_2: an empty list"),
        ({"agent_1": A, "agent_3": B}, r"run\.generator\.url\.agent_3: no agent of this name"),
        ({"agent_1": A}, r"run\.generator\.url\.agent_2: missing"),
        (A, r"run\.generator\.url: two models share the server at http://a, those of agent_1 and"),
        (
            {"agent_1": [A, B], "agent_2": [C, B]},
            r"run\.generator\.url: two models share the server at http://b",
        ),
    ],
)
def test_servers_that_do_not_fit_the_models_are_one_line_before_anything_is_loaded(
    url: Any, line: str
) -> None:
    with pytest.raises(ConfigError, match=line) as caught:
        resolve(load_config(served(url)))
    assert "\n" not in str(caught.value)


def test_adapters_of_one_base_share_a_list_of_servers() -> None:
    resolve(load_config(served([A, B], lora={"rank": 4})))
    with pytest.raises(ConfigError, match="agent_1, agent_2 share one base"):
        resolve(load_config(served({"agent_1": [A], "agent_2": [B]}, lora={"rank": 4})))


def with_past_selves(url: Any, **models: Any) -> ResolvedRun:
    return resolve(load_config({**served(url, **models), "cast": {"name": "league", "pool": 1}}))


def test_an_adapters_past_self_is_on_its_agents_server() -> None:
    url = {"agent_1": A, "agent_2": A}
    run = with_past_selves(url, lora={"rank": 4})
    assert run.players_by_base == [["agent_1", "agent_2", "agent_1@0", "agent_2@0"]]
    assert run.generator.places(run) == [f"generation for {', '.join(*run.players_by_base)}: {A}"]


def test_a_past_self_in_full_weights_needs_a_server_of_its_own() -> None:
    agents, past = {"agent_1": A, "agent_2": B}, {"agent_1@0": C, "agent_2@0": "http://d"}
    assert len(with_past_selves({**agents, **past}).players_by_base) == 4
    for url, line in [
        (agents, r"^run\.generator\.url\.agent_1@0: missing; a past self in full weights needs"),
        ({**agents, **past, "agent_2@0": A}, "share the server at http://a, those of agent_1 and"),
        ({**agents, **past, "agent_1@1": "http://e"}, r"url\.agent_1@1: no agent of this name"),
    ]:
        with pytest.raises(ConfigError, match=line):
            with_past_selves(url)


def test_a_dry_run_says_where_each_agent_generates() -> None:
    said = estimate_tables(estimate(load_config(served({"agent_1": [A, B], "agent_2": C}))))
    lines = [str(part) for part in said.renderables]
    assert "generation for agent_1: 2 vLLM servers in turn: http://a, http://b" in lines
    assert "generation for agent_2: http://c" in lines
