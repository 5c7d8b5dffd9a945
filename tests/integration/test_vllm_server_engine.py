"""What the engine of a vLLM server writes to it, which one it takes and what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fake_vllm_server import FakeVLLMServer
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import PLAIN, adapted, built_engine, request

from colearn.engines.checked_engine import ParityError
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.errors import ServerLost
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update


def test_every_update_of_full_weights_has_a_version_of_its_own_and_leaves_no_files(
    engine: VLLMServerEngine, server: FakeVLLMServer, base: Base
) -> None:
    seen = [server.version]
    for number in (1, 2):
        engine.load([weight_update(Network(base, None), number)])
        seen.append(server.version)
    assert len(set(seen)) == 3 and "default" not in seen
    assert list(engine.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "full"), (400, "The lora adapter has already been loaded")]
)
def test_an_adapter_that_is_not_taken_is_one_line(
    base: Base, server: FakeVLLMServer, status: int, reason: str
) -> None:
    engine = built_engine(base, adapted(base, "first"), server)
    server.statuses["/v1/load_lora_adapter"] = (status, {"detail": reason})
    line = rf"does not take adapter 'first' \(status {status}: {reason}\)"
    with pytest.raises(ServerLost, match=line):
        engine.load([weight_update(Network(base, "first"), 1)])
    server.statuses.clear()
    engine.close()


def test_an_engine_whose_server_has_gone_can_be_closed(base: Base, server: FakeVLLMServer) -> None:
    engine = built_engine(base, adapted(base, "first", "second"), server)
    server.gone = True
    engine.close()
    assert server.asked[-1] == "/v1/models", "the adapters are gone with the server"
    assert not Path(engine._folder.name).exists() and not engine.servers[0].link._thread.is_alive()


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
    engine.rest()
    assert "/sleep" not in server.asked, "a server elsewhere keeps its memory"
    engine.sleeps = True  # as where trainer and server share a device
    engine.rest()
    engine.rest()
    assert server.asleep and server.asked.count("/sleep") == 1
    engine.load([weight_update(Network(base, None), 1)])
    assert not server.asleep
    engine.rest()
    engine.sample([request()])
    assert not server.asleep and server.asked.count("/wake_up") == 2
    server.statuses["/sleep"] = (500, {"error": {"message": "sleep mode is off"}})
    with pytest.raises(ServerLost, match=r"does not answer /sleep.*sleep mode is off"):
        engine.rest()
