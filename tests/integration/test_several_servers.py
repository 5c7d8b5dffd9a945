"""Several vLLM servers for one base: which one answers, what each is sent, and one that is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from asking import token_request
from engine_cases import *  # noqa: F403 - the tests of every engine, with the `kind` below
from fake_vllm_server import FakeVLLMServer
from served_engine import PLAIN, adapted
from served_kind import Served
from vllm_cases import byte_tokenizer, qwen

from colearn.config import ResolvedRun, load_config, resolve
from colearn.contract import GeneratorKind, TokenHistory, TokenRequest
from colearn.engines import server_link
from colearn.engines.checked_engine import CheckedEngine, ParityError
from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_weights import write_model
from colearn.errors import ConfigError, ServerLost
from colearn.estimate import estimate
from colearn.estimate.table import estimate_tables
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec

Pair = tuple[FakeVLLMServer, FakeVLLMServer]


@pytest.fixture(scope="module")
def kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GeneratorKind]:
    served = Served(tmp_path_factory.mktemp("served"), count=2)
    yield served
    served.close()


@pytest.fixture
def base() -> Base:
    return Base(qwen())


@pytest.fixture
def pair(base: Base, tmp_path: Path) -> Iterator[Pair]:
    write_model(tmp_path / "model", base, byte_tokenizer())
    both = FakeVLLMServer(tmp_path / "model"), FakeVLLMServer(tmp_path / "model")
    yield both
    for server in both:
        server.close()


def built(base: Base, pair: Pair, voices: Mapping[str, AgentSpec] = PLAIN) -> CheckedEngine:
    generator = VLLMServer(url=tuple(server.url for server in pair)).build(base, voices)
    assert isinstance(generator, CheckedEngine)
    for server in pair:
        server.draws.clear()  # those of the first check
    return generator


def asked(*seeds: int, after: TokenHistory | None = None) -> TokenRequest:
    return token_request(PLAIN, "ann", (5, 6), seeds, continues=after)


def seeds_of(server: FakeVLLMServer) -> list[int]:
    return sorted(draw["sampling_params"]["seed"] for draw in server.draws)


def test_new_histories_take_turns_from_the_first_ones_seed(base: Base, pair: Pair) -> None:
    generator = built(base, pair)
    generator.generate([asked(7, 8), asked(20), asked(30), asked(40)])
    # 7 % 2 = 1: the second server begins, and a history's seeds stay together
    assert seeds_of(pair[1]) == [7, 8, 30] and seeds_of(pair[0]) == [20, 40]
    generator.close()


def test_a_history_stays_with_its_server(base: Base, pair: Pair) -> None:
    generator = built(base, pair)
    (first,), (second,) = generator.generate([asked(7), asked(8)])
    for server in pair:
        server.draws.clear()
    generator.generate(
        [asked(2, after=second.history), asked(4), asked(6, after=first.history), asked(10)]
    )
    # the new ones, 4 and 10, take turns among themselves: 4 % 2 = 0
    assert seeds_of(pair[1]) == [6, 10] and seeds_of(pair[0]) == [2, 4]
    generator.close()


def test_answers_are_those_of_one_server_in_the_order_of_the_requests(
    base: Base, pair: Pair, tmp_path: Path
) -> None:
    several = built(base, pair)
    requests = [asked(*range(number, number + 2)) for number in range(9)]
    drawn = several.generate(requests)
    several.close()
    single = VLLMServer(url=pair[0].url).build(base, PLAIN)
    expected = single.generate(requests)
    single.close()
    assert [[one.action for one in row] for row in drawn] == [
        [one.action for one in row] for row in expected
    ]


def test_each_server_has_every_adapter_until_the_end(base: Base, pair: Pair) -> None:
    generator = built(base, pair, adapted(base, "first", "second"))
    before = [set(server.adapters) for server in pair]
    generator.write([weight_update(Network(base, "first"), 1)])
    for server, names in zip(pair, before, strict=True):
        assert len(server.adapters) == 2 and len(names & set(server.adapters)) == 1
    generator.close()
    assert not pair[0].adapters and not pair[1].adapters


@pytest.mark.parametrize("full", [0, 1])
def test_an_adapter_that_only_one_server_took_is_gone_at_the_end(
    base: Base, pair: Pair, full: int
) -> None:
    generator = built(base, pair, adapted(base, "first", "second"))
    pair[full].statuses["/v1/load_lora_adapter"] = (500, {"detail": "full"})
    with pytest.raises(ServerLost, match="does not take adapter 'first'"):
        generator.write([weight_update(Network(base, "first"), 1)])
    generator.close()
    assert not pair[0].adapters and not pair[1].adapters


@pytest.mark.parametrize("stale", [0, 1])
def test_an_update_that_one_server_skips_is_found(base: Base, pair: Pair, stale: int) -> None:
    generator = built(base, pair)
    pair[stale].skip = True
    base.causal.lm_head.weight.data.mul_(1.5)
    with pytest.raises(ParityError):
        generator.load([weight_update(Network(base, None), 1)])
    generator.close()


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_server_ends_the_call_while_the_other_still_works(
    base: Base, pair: Pair, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_link, "PULSE", 600.0)  # no health check ends the other's call
    generator = built(base, pair)
    pair[lost].gone = pair[1 - lost].silent = True
    with pytest.raises(ServerLost, match=pair[lost].url):
        generator.generate([asked(seed) for seed in range(4)])
    other = generator.servers[1 - lost].link  # type: ignore[attr-defined]
    while asyncio.all_tasks(other._loop):  # its requests are cancelled
        time.sleep(0.05)
    pair[1 - lost].silent = False
    pair[1 - lost].release.set()
    generator.close()


def test_a_server_that_is_not_there_leaves_the_others_free(base: Base, pair: Pair) -> None:
    with pytest.raises(ConfigError, match=r"no vLLM server at http://127\.0\.0\.1:9"):
        VLLMServer(url=(pair[0].url, "http://127.0.0.1:9")).build(base, PLAIN)
    VLLMServer(url=pair[0].url).build(base, PLAIN).close()


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
