"""Two processes of a run share a vLLM server: one writes to it, both sample from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_vllm_server import FakeVLLMServer
from ranks_runs import apart, train, write_config
from vllm_cases import byte_tokenizer, qwen

pytestmark = pytest.mark.slow

WRITES = ("/collective_rpc", "/v1/load_lora_adapter", "/v1/unload_lora_adapter")
GENERATE = "/inference/v1/generate"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeVLLMServer]:
    qwen(tied=True).save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    fake = FakeVLLMServer(tmp_path / "model")
    yield fake
    fake.close()


@pytest.mark.parametrize("lora", [True, False], ids=["adapter", "full"])
def test_two_processes_learn_what_one_does_and_write_once(
    lora: bool, server: FakeVLLMServer, tmp_path: Path
) -> None:
    config = write_config(tmp_path, lora=lora, generator={"name": "vllm_server", "url": server.url})
    asked: dict[int, Counter[str]] = {}
    for processes in (1, 2):
        server.asked.clear()
        code, told = train(config, tmp_path / str(processes), processes=processes)
        assert code == 0, told
        asked[processes] = Counter(server.asked)
        server.start()
    assert apart(tmp_path / "1", tmp_path / "2") < 1e-5
    assert sum(asked[1][path] for path in WRITES) >= 4, "the start and three updates"
    for path in (*WRITES, GENERATE):
        assert asked[2][path] == asked[1][path]
