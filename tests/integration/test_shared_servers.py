"""Two processes of a run share a vLLM server: one writes to it, both sample from it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_vllm_server import FakeVLLMServer
from ranks_runs import apart, train, write_config
from vllm_cases import byte_tokenizer, qwen

from colearn.runs.record import open_run

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


def test_a_loss_that_one_process_meets_ends_both_with_one_line_and_their_state(
    server: FakeVLLMServer, tmp_path: Path
) -> None:
    config = write_config(tmp_path, lora=True, generator={"name": "vllm_server", "url": server.url})
    assert train(config, tmp_path / "whole", processes=2)[0] == 0
    last = server.asked.count(GENERATE)
    server.start()
    answer, calls = server.on_inference_v1_generate, itertools.count()

    def refuse(body: Mapping[str, Any]) -> tuple[int, Any]:
        if next(calls) == last // 2:  # one request, of one process
            return 500, {"error": {"message": "out of memory"}}
        return answer(body)

    server.on_inference_v1_generate = refuse  # type: ignore[method-assign]
    code, told = train(config, tmp_path / "lost", processes=2)
    assert code != 0
    errors = [line for line in told.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "cannot generate (status 500: out of memory)" in errors[0]
    lost = open_run(tmp_path / "lost")
    updates = [line for line in lost.lines() if line.kind == "update"]
    assert lost.checkpoints.choose("last").iteration == len(updates) in (1, 2)
    server.start()
    server.on_inference_v1_generate = answer  # type: ignore[method-assign]
    assert train(config, tmp_path / "lost", "--resume", processes=2)[0] == 0
    assert apart(tmp_path / "lost", tmp_path / "whole") < 1e-6
