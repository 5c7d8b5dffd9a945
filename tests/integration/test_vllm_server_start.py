"""A vLLM server that a run starts: with which options, and that it ends with its engine."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import CHAT, PLAIN, adapted, request
from transformers import LlamaConfig, LlamaForCausalLM

from colearn.contract import Sampling
from colearn.engines.kinds import VLLM, VLLMServer
from colearn.engines.one_server import server_command, server_environment
from colearn.errors import ColearnError, ConfigError, MissingExtra, ServerLost
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec
from colearn.text.notes import note_once

PROGRAM = Path(__file__).parent / "fake_vllm_program.py"


def python(folder: Path, command: str) -> str:
    """A program in place of Python."""
    file = folder / "python"
    file.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    file.chmod(0o755)
    return str(file)


def command(base: Any, voices: Mapping[str, AgentSpec] = PLAIN, **given: Any) -> list[str]:
    return server_command(base, voices, VLLMServer(**given), Path("/m"), "8001")


def options(words: Sequence[str]) -> dict[str, str]:
    return dict(itertools.pairwise(words))


@pytest.mark.parametrize("kind", [VLLM, VLLMServer])
def test_a_model_of_small_heads_is_one_line_before_anything_starts(
    kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = LlamaConfig(
        vocab_size=258,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
    base = Base(LlamaForCausalLM(config))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    message = r"^run\.generator: on a CPU vLLM has no attention heads of size 16, .*embedded-vllm"
    with pytest.raises(ConfigError, match=message) as error:
        kind().build(base, PLAIN)
    assert "\n" not in str(error.value)


def test_a_server_of_full_weights_on_the_cpu_is_started_with_these_options(base: Base) -> None:
    assert command(base) == [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--host", "127.0.0.1", "--served-model-name", "base", "--enable-scale-out"),
        *("--enable-prompt-tokens-details", "--worker-extension-cls"),
        *("colearn.engines.vllm_worker.WorkerExtension", "--port", "8001", "--model", "/m"),
        *("--dtype", "float32", "--max-num-seqs", "256", "--enable-prefix-caching"),
        *("--enforce-eager", "--logprobs-mode", "processed_logprobs", "--generation-config"),
        *("vllm", "--block-size", "32", "--no-enable-chunked-prefill"),
        *("--kv-cache-memory-bytes", "1073741824"),
    ]


def test_settings_and_adapters_are_options_of_a_started_server(base: Base) -> None:
    voices = PLAIN | {"ben": adapted(base, "first")["ann"]}
    words = command(
        base,
        voices,
        python="/v/python",
        cache_gib=0.25,
        max_length=99,
        max_rows=7,
        eager=False,
        options={"seed": 3, "block_size": 16, "mm_limits": {"image": 0}, "async_scheduling": False},
    )
    given = options(words)
    assert words[0] == "/v/python" and "--no-enforce-eager" in words
    assert given["--kv-cache-memory-bytes"] == "268435456"
    assert (given["--max-model-len"], given["--max-num-seqs"]) == ("99", "7")
    assert "--enable-lora" in words
    assert (given["--max-loras"], given["--max-lora-rank"]) == ("2", "8")
    assert (given["--seed"], given["--mm-limits"]) == ("3", '{"image": 0}')
    assert given["--block-size"] == "16" and words.count("--block-size") == 1
    assert "--no-async-scheduling" in words


class OnGPU:
    """A base on a GPU that is not there."""

    device, compute = torch.device("cuda"), torch.bfloat16

    causal = torch.nn.Linear(2**15, 2**15, bias=False, device="meta")
    """2 GiB in half precision."""


@pytest.fixture
def half_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device of 80 GiB, half of which a trainer holds."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (40 * 2**30, 80 * 2**30))


def test_a_server_beside_a_trainer_asks_for_what_it_needs_of_the_device_and_sleeps(
    half_free: None,
) -> None:
    """2 GiB of weights, 8 of cache, a tenth, and 3 besides, of 80. vLLM refuses more than what is
    free."""
    words = command(OnGPU())
    given = options(words)
    assert given["--gpu-memory-utilization"] == "0.163"
    assert given["--kv-cache-memory-bytes"] == str(8 * 2**30)
    assert given["--dtype"] == "bfloat16" and "--enable-sleep-mode" in words
    assert not {"--enforce-eager", "--block-size", "--no-enable-chunked-prefill"} & set(words)


def test_a_server_with_devices_of_its_own_takes_what_it_finds_or_the_cache_that_is_set(
    half_free: None,
) -> None:
    own, told = command(OnGPU(), gpus="1"), command(OnGPU(), gpus="1", cache_gib=2)
    assert not {"--kv-cache-memory-bytes", "--enable-sleep-mode"} & set(own)
    assert "--gpu-memory-utilization" not in told
    assert options(told)["--kv-cache-memory-bytes"] == str(2 * 2**30)


def test_a_server_that_does_not_fit_beside_a_trainer_is_one_line(half_free: None) -> None:
    with pytest.raises(ConfigError, match=r"needs 44\.0 GiB of cuda .* 40\.0 are free; lower"):
        command(OnGPU(), cache_gib=39)


def test_a_share_that_is_given_is_the_servers_own(half_free: None) -> None:
    words = command(OnGPU(), cache_gib=39, options={"gpu_memory_utilization": 0.9})
    assert words.count("--gpu-memory-utilization") == 1
    assert options(words)["--gpu-memory-utilization"] == "0.9"


def test_a_started_servers_variables(base: Base) -> None:
    always = {
        "PYTHONSAFEPATH": "1",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    assert server_environment(OnGPU(), PLAIN, VLLMServer()) == always  # type: ignore[arg-type]
    assert server_environment(base, PLAIN, VLLMServer(gpus="2,3")) == {
        **always,
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "CUDA_VISIBLE_DEVICES": "2,3",
    }


def test_top_p_needs_the_previous_runner_and_a_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note_once.cache_clear()
    cutting = {"ann": AgentSpec(adapter=None, chat=CHAT, sampling=Sampling(top_p=0.9))}
    environment = server_environment(OnGPU(), cutting, VLLMServer())  # type: ignore[arg-type]
    assert environment["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert "agents.ann.sampling has top_p or top_k" in capsys.readouterr().err


@pytest.mark.parametrize("changes", [{}, {"gpus": "1"}])
def test_a_sleep_that_frees_no_memory_is_one_line(base: Base, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^run\.generator\.sleep: an engine sleeps where"):
        VLLMServer(sleep=True, **changes).build(base, PLAIN)


def test_a_server_at_a_url_does_not_sleep() -> None:
    with pytest.raises(ConfigError, match=r"^sleep: a server at a url keeps its memory"):
        VLLMServer(url="http://a", sleep=True)


def test_a_started_server_answers_and_the_log_of_one_that_is_lost_is_kept_and_named(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    notes = tmp_path / "notes"
    program = python(tmp_path, shlex.join([sys.executable, str(PROGRAM), str(notes)]))
    kind = VLLMServer(python=program, gpus="3", options={"seed": 3}, tolerance=1e3)
    engine: Any = kind.build(base, PLAIN)
    told = json.loads(notes.read_text())
    assert told["arguments"][-2:] == ["--seed", "3"]
    assert told["environment"]["CUDA_VISIBLE_DEVICES"] == "3"
    assert told["environment"]["VLLM_SERVER_DEV_MODE"] == "1"
    assert engine.sample([request()])[0].action.tokens == (5, 5, 5, 5)
    with engine.servers[0].process.log.open("a") as log:
        log.write("out of memory\n")
    os.kill(told["number"], signal.SIGKILL)
    with pytest.raises(ServerLost, match=r"is gone .*--resume; its log: ") as lost:
        engine.sample([request()])
    engine.close()
    assert "\n" not in str(lost.value)
    assert Path(str(lost.value).rpartition(" ")[2]).read_text().endswith("out of memory\n")


def test_a_server_that_never_answers_is_given_up_and_ended(base: Base, tmp_path: Path) -> None:
    file = tmp_path / "number"
    program = python(tmp_path, f"sh -c 'echo $$ > {file}; exec sleep 600'")
    with pytest.raises(ServerLost, match=r"did not start within 0\.02 minutes"):
        VLLMServer(python=program, start_minutes=0.02).build(base, PLAIN)
    assert not Path(f"/proc/{file.read_text().strip()}").exists()


def test_what_was_begun_for_a_server_that_does_not_start_is_gone(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # it needs no vLLM here
    before = set(threading.enumerate())
    with pytest.raises(ColearnError, match="ended while it started"):
        VLLMServer(python=python(tmp_path, "false"), folder=str(tmp_path)).build(base, PLAIN)
    assert [path.name for path in tmp_path.iterdir()] == ["python"]
    assert set(threading.enumerate()) <= before


def test_without_vllm_and_a_python_that_has_it_the_extra_is_named(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="vllm"):
        VLLMServer().build(base, PLAIN)
