"""What the engine of a vLLM server writes to it, which one it takes and what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fake_vllm_server import FakeVLLMServer
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import PLAIN, adapted, built_engine, request

from colearn.contract import WeightUpdate
from colearn.engines.checked_engine import ParityError
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.errors import ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update


def test_every_update_of_full_weights_has_a_version_of_its_own(
    engine: VLLMServerEngine, server: FakeVLLMServer, base: Base
) -> None:
    seen = [server.version]
    for number in (1, 2):
        engine.load([weight_update(Network(base, None), number)])
        seen.append(server.version)
    assert len(set(seen)) == 3 and "default" not in seen


def test_files_of_full_weights_are_gone_once_they_are_loaded(
    engine: VLLMServerEngine, base: Base
) -> None:
    engine.load([weight_update(Network(base, None), 1)])
    assert list(engine.folder.iterdir()) == []


def test_files_of_a_replaced_adapter_are_gone(base: Base, server: FakeVLLMServer) -> None:
    engine = built_engine(base, adapted(base, "first", "second"), server)
    for number in (1, 2):
        engine.load([weight_update(Network(base, "first"), number)])
    kept = sorted(path.name for path in engine.folder.iterdir())
    assert kept == ["adapter-2", "adapter-4"], "one of each of two adapters, the last"
    engine.close()


def test_an_adapter_that_no_agent_speaks_with_is_not_loaded(
    base: Base, server: FakeVLLMServer
) -> None:
    engine = built_engine(base, adapted(base, "first", "second", "third", "fourth"), server)
    before = dict(server.adapters)
    engine.load([weight_update(Network(base, "fourth"), 1)])
    assert server.adapters == before and len(before) == 3
    engine.close()


def test_an_agent_without_an_adapter_speaks_with_zeros_beside_those_that_have_one(
    base: Base, server: FakeVLLMServer
) -> None:
    engine = built_engine(base, PLAIN | {"ben": adapted(base, "first")["ann"]}, server)
    for agent in ("ann", "ben"):
        engine.sample([request(agent)])
    zeros, first = (draw["model"] for draw in server.draws[-2:])
    assert {zeros, first} == set(server.adapters) and zeros != first
    engine.close()


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/collective_rpc", 500, r"does not take the trained model's weights \(status 500: full\)"),
        ("/reset_prefix_cache", 200, "kept cache blocks of the old weights"),
    ],
)
def test_full_weights_that_are_not_taken_are_one_line(
    engine: VLLMServerEngine,
    server: FakeVLLMServer,
    base: Base,
    path: str,
    status: int,
    reason: str,
) -> None:
    server.statuses[path] = (status, {"success": False, "detail": "full"})
    with pytest.raises(ServerLost, match=reason):
        engine.load([weight_update(Network(base, None), 1)])


def test_an_adapter_that_is_not_taken_is_one_line(base: Base, server: FakeVLLMServer) -> None:
    engine = built_engine(base, adapted(base, "first"), server)
    server.statuses["/v1/load_lora_adapter"] = (500, {"detail": "full"})
    with pytest.raises(ServerLost, match=r"does not take adapter 'first' \(status 500: full\)"):
        engine.load([weight_update(Network(base, "first"), 1)])
    server.statuses.clear()
    engine.close()


@pytest.mark.parametrize("change", ["load", "unload"])
def test_a_change_of_adapters_whose_answer_is_cut_is_made_once(
    base: Base, server: FakeVLLMServer, change: str
) -> None:
    engine = built_engine(base, adapted(base, "first"), server)
    (before,) = server.adapters
    path = f"/v1/{change}_lora_adapter"
    server.cut, sent = {path}, server.asked.count(path)
    engine.load([weight_update(Network(base, "first"), 1)])
    assert server.asked.count(path) == sent + 2
    (after,) = server.adapters
    assert after != before
    engine.sample([request("ann")])
    assert server.draws[-1]["model"] == after
    engine.close()


def test_an_adapter_that_is_refused_with_the_words_of_a_loaded_one_is_looked_for(
    base: Base, server: FakeVLLMServer
) -> None:
    engine = built_engine(base, adapted(base, "first"), server)
    refusal = (400, {"error": {"message": "The lora adapter has already been loaded"}})
    server.statuses["/v1/load_lora_adapter"] = refusal
    with pytest.raises(ServerLost, match="does not take adapter 'first'"):
        engine.load([weight_update(Network(base, "first"), 1)])
    server.statuses.clear()
    engine.close()


def test_an_update_without_weights_asks_nothing(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    asked = len(server.asked)
    engine.write([WeightUpdate(version=1)])
    assert len(server.asked) == asked


def test_a_closed_engine_leaves_no_folder_and_no_thread(engine: VLLMServerEngine) -> None:
    engine.close()
    assert not Path(engine._folder.name).exists() and not engine.servers[0].link._thread.is_alive()


def test_an_engine_whose_server_has_gone_can_be_closed(base: Base, server: FakeVLLMServer) -> None:
    engine = built_engine(base, adapted(base, "first", "second"), server)
    server.gone = True
    engine.close()
    # on two connections: the adapters are gone with the server
    assert server.asked[-2:] == ["/v1/models"] * 2
    assert not Path(engine._folder.name).exists()


def test_an_adapter_that_is_gone_keeps_no_other_on_the_server(
    base: Base, server: FakeVLLMServer
) -> None:
    engine = built_engine(base, adapted(base, "first", "second"), server)
    unload = server.on_v1_unload_lora_adapter
    gone = next(iter(server.adapters))

    def first_is_unknown(body: Any) -> Any:
        return (404, {"detail": "unknown"}) if body["lora_name"] == gone else unload(body)

    server.on_v1_unload_lora_adapter = first_is_unknown  # type: ignore[method-assign]
    engine.close()
    assert set(server.adapters) == {gone}


def test_an_engine_that_fails_its_first_check_is_closed(base: Base, server: FakeVLLMServer) -> None:
    server.skip = True
    with torch.no_grad():
        base.causal.lm_head.weight.mul_(1.5)
    with pytest.raises(ParityError):
        built_engine(base, PLAIN, server)
    server.skip = False
    built_engine(base, PLAIN, server).close()


def test_a_server_that_rests_wakes_for_weights_and_for_requests(
    engine: VLLMServerEngine, server: FakeVLLMServer, base: Base
) -> None:
    engine.sleeps = True  # as where trainer and server share a device
    engine.rest()
    engine.rest()
    assert server.asleep and server.asked.count("/sleep") == 1
    engine.load([weight_update(Network(base, None), 1)])
    assert not server.asleep
    engine.rest()
    engine.sample([request()])
    assert not server.asleep and server.asked.count("/wake_up") == 2


def test_a_server_elsewhere_is_not_told_to_rest(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    engine.rest()
    assert not server.asleep and "/sleep" not in server.asked


def test_a_server_that_cannot_sleep_is_lost(
    engine: VLLMServerEngine, server: FakeVLLMServer
) -> None:
    engine.sleeps = True
    server.statuses["/sleep"] = (500, {"error": {"message": "sleep mode is off"}})
    with pytest.raises(ServerLost, match=r"does not answer /sleep.*sleep mode is off"):
        engine.rest()
