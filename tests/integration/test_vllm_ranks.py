"""Real vLLM under two training processes, and its own weight transfer as far as a CPU goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from ranks_runs import apart, run_program, train, write_config
from served_engine import PLAIN
from transformers import AutoModelForCausalLM

from colearn.generate.device_transfer import LinkClient
from colearn.generate.kinds import VLLMServer
from colearn.generate.server_link import ServerRefused
from colearn.generate.vllm_server import VLLMServerEngine
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.record import open_run

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")

TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    write_config(folder, lora=False, generator={"name": "vllm"})
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[VLLMServerEngine]:
    """That of a started server, with the package's engine for memory that processes share, which
    unpickles handles of it."""
    base = Base(AutoModelForCausalLM.from_pretrained(folder / "model"))
    kind = VLLMServer(
        cache_gib=0.2,
        max_rows=16,
        max_length=1024,
        start_minutes=30,
        arguments=("--weight-transfer-config", '{"backend": "ipc"}'),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")
        built = kind.build(base, PLAIN)
    assert isinstance(built, VLLMServerEngine)
    yield built
    built.close()


def test_the_packages_transfer_is_driven_over_http_until_it_needs_a_device(
    engine: VLLMServerEngine,
) -> None:
    client = LinkClient(engine.link)
    client.init_weight_transfer_engine({"packed": False})
    client.start_weight_update()
    handles = {"names": ["a"], "dtype_names": ["float32"], "shapes": [[1]], "ipc_handles": [{}]}
    with pytest.raises(ServerRefused) as refused:  # which ends the session
        client.update_weights(handles)
    assert "\n" not in str(refused.value)
    client.start_weight_update()
    client.finish_weight_update("of no weights")
    with torch.no_grad():
        engine.base.causal.lm_head.weight.mul_(1.1)
    engine.load([weight_update(Network(engine.base, None), 1)])
    assert engine.gap is not None and engine.gap < TOLERANCE


def mismatches(out: Path) -> list[float]:
    lines = [line for line in open_run(out).lines() if line.kind == "update"]
    assert len(lines) == 3
    gaps = [value for line in lines for key, value in line.metrics.items() if "mismatch" in key]
    return [gap for gap in gaps if gap is not None]


def test_two_processes_share_a_server(engine: VLLMServerEngine, folder: Path) -> None:
    settings = {"name": "vllm_server", "url": engine.link.url}
    config = write_config(folder, lora=False, generator=settings)
    code, told = train(config, folder / "shared", processes=2)
    assert code == 0, told
    assert max(mismatches(folder / "shared")) < TOLERANCE


def test_two_processes_have_an_engine_each(folder: Path) -> None:
    settings = {"name": "vllm", "cache_gib": 0.2, "max_rows": 16, "max_length": 1024}
    config = write_config(folder, lora=False, generator=settings)
    for processes in (1, 2):
        code, told = train(config, folder / f"own-{processes}", processes=processes)
        assert code == 0, told
        assert max(mismatches(folder / f"own-{processes}")) < TOLERANCE
    assert apart(folder / "own-1", folder / "own-2") < 1e-4


def test_an_engine_that_is_closed_leaves_the_process_group() -> None:
    code, told = run_program("vllm_group.py", processes=2)
    assert code == 0, told
