"""Real vLLM under two training processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ranks_runs import apart, run_program, train, write_config
from served_engine import PLAIN
from transformers import AutoModelForCausalLM

from colearn.engines.kinds import VLLMServer
from colearn.engines.vllm_server import VLLMServerEngine
from colearn.models.base import Base
from colearn.runs.record import open_run

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
    """That of a started server."""
    base = Base(AutoModelForCausalLM.from_pretrained(folder / "model"))
    kind = VLLMServer(cache_gib=0.2, max_rows=16, max_length=1024, start_minutes=30)
    built = kind.build(base, PLAIN)
    assert isinstance(built, VLLMServerEngine)
    yield built
    built.close()


def mismatches(out: Path) -> list[float]:
    lines = [line for line in open_run(out).lines() if line.kind == "update"]
    assert len(lines) == 3
    gaps = [value for line in lines for key, value in line.metrics.items() if "mismatch" in key]
    return [gap for gap in gaps if gap is not None]


def test_two_processes_share_a_server(engine: VLLMServerEngine, folder: Path) -> None:
    settings = {"name": "vllm_server", "url": engine.servers[0].link.url}
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
