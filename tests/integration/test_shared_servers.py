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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[FakeVLLMServer]:
    qwen(tied=True).save_pretrained(folder / "model")
    byte_tokenizer().save_pretrained(folder / "model")
    fake = FakeVLLMServer(folder / "model")
    yield fake
    fake.close()


@pytest.fixture(scope="module")
def config(folder: Path, server: FakeVLLMServer) -> Path:
    return write_config(folder, lora=True, generator={"name": "vllm_server", "url": server.url})


@pytest.fixture(scope="module")
def asked(folder: Path, server: FakeVLLMServer, config: Path) -> dict[int, Counter[str]]:
    """The requests of a run of one process and of a run of two, which are in folders 1 and 2."""
    counts: dict[int, Counter[str]] = {}
    for processes in (1, 2):
        server.asked.clear()
        code, told = train(config, folder / str(processes), processes=processes)
        assert code == 0, told
        counts[processes] = Counter(server.asked)
        server.start()
    return counts


def test_two_processes_learn_what_one_does_and_write_once(
    folder: Path, asked: dict[int, Counter[str]]
) -> None:
    assert apart(folder / "1", folder / "2") < 1e-5
    assert sum(asked[1][path] for path in WRITES) >= 4, "the start and three updates"
    for path in (*WRITES, GENERATE):
        assert asked[2][path] == asked[1][path]


def test_a_loss_that_one_process_meets_ends_both_with_one_line_and_their_state(
    folder: Path, server: FakeVLLMServer, config: Path, asked: dict[int, Counter[str]]
) -> None:
    last = asked[2][GENERATE]
    answer, calls = server.on_inference_v1_generate, itertools.count()

    def refuse(body: Mapping[str, Any]) -> tuple[int, Any]:
        if next(calls) == last // 2:  # one request, of one process
            return 500, {"error": {"message": "out of memory"}}
        return answer(body)

    server.on_inference_v1_generate = refuse  # type: ignore[method-assign]
    code, told = train(config, folder / "lost", processes=2)
    assert code != 0
    errors = [line for line in told.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "cannot generate (status 500: out of memory)" in errors[0]
    lost = open_run(folder / "lost")
    updates = [line for line in lost.lines() if line.kind == "update"]
    assert lost.checkpoints.choose("last").iteration == len(updates) in (1, 2)
    server.start()
    server.on_inference_v1_generate = answer  # type: ignore[method-assign]
    assert train(config, folder / "lost", "--resume", processes=2)[0] == 0
    assert apart(folder / "lost", folder / "2") < 1e-6
