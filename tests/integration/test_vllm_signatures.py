"""Calls to vLLM's package are held to its own signatures, without an engine.

They run on any version: put a folder with an unpacked wheel of another one first on PYTHONPATH.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest
from served_engine import adapted, request
from vllm_cases import qwen

from colearn.engines.kinds import VLLMServer
from colearn.engines.one_server import server_command, server_environment
from colearn.engines.vllm_options import sampling_options
from colearn.models.base import Base

pytestmark = pytest.mark.vllm
pytest.importorskip("vllm", reason="needs the vllm extra, in an environment of its own")


def test_the_server_has_the_routes_that_are_asked() -> None:
    modules = (
        "openai.models",
        "rl.online",
        "scale_out.token_in_token_out",
        *(f"serve.dev.{name}" for name in ("cache", "rpc", "server_info", "sleep")),
        "serve.tokenize",
    )
    routers = [
        importlib.import_module(f"vllm.entrypoints.{name}.api_router").router for name in modules
    ]
    assert {route.path for router in routers for route in router.routes} >= {
        "/v1/models",
        "/tokenize",
        "/inference/v1/generate",
        "/collective_rpc",
        "/reset_prefix_cache",
        "/server_info",
        "/sleep",
        "/wake_up",
        "/update_weight_version",
    }


def test_a_generated_answer_has_the_fields_that_are_read() -> None:
    from vllm.entrypoints.scale_out.token_in_token_out import protocol

    choice = protocol.GenerateTokensChoice.model_fields
    assert choice.keys() >= {"finish_reason", "weight_versions", "token_ids", "logprobs"}
    assert protocol.GenerateLogProbsContent.model_fields.keys() >= {"token_id", "logprob"}
    assert {"choices", "usage"} <= protocol.GenerateTokensResponse.model_fields.keys()


def test_a_started_server_knows_every_argument_and_variable() -> None:
    import vllm.envs
    from vllm.entrypoints.cli.serve import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    settings = VLLMServer(max_length=64, max_rows=8, eager=False)
    base = Base(qwen())
    roles = adapted(base, "first")
    command = server_command(base, roles, settings, Path("model"), "80")
    on_device = ("--gpu-memory-utilization", "0.5", "--enable-sleep-mode")
    served = ("--lora-modules", "ann=folder", "--tokenizer", "folder")  # by `colearn serve`
    parser = make_arg_parser(FlexibleArgumentParser())
    read = parser.parse_args([*command[3:], *on_device, *served])
    assert (read.max_model_len, read.block_size, read.max_loras) == (64, 32, 1)
    variables = server_environment(base, roles, settings).keys()
    others = ("VLLM_API_KEY", "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_LOGGING_LEVEL")
    named = {name for name in (*variables, *others) if name.startswith("VLLM_")}
    assert named <= vllm.envs.environment_variables.keys()


def test_an_engine_in_this_process_is_called_by_its_parameters() -> None:
    from vllm import LLM, SamplingParams
    from vllm.engine.arg_utils import EngineArgs
    from vllm.lora.request import LoRARequest
    from vllm.v1.worker.gpu_worker import Worker

    inspect.signature(LLM.generate).bind(None, [], [], use_tqdm=False, lora_request=[])
    inspect.signature(LLM.collective_rpc).bind(None, "reload_weights", kwargs={})
    inspect.signature(LLM.reset_prefix_cache).bind(None)
    inspect.signature(LLM.sleep).bind(None, level=1)
    inspect.signature(LLM.wake_up).bind(None)
    assert LoRARequest("a", 1, "folder").path == "folder"
    role = next(iter(adapted(Base(qwen()), "first").values()))
    ends = sorted(role.chat_format.end_ids)
    params = SamplingParams(**sampling_options(request(top_k=4, stop=("x",)), ends))
    assert params.stop_token_ids == [3, 9, 258]
    assert (
        hasattr(Worker, "reload_weights")
        and hasattr(Worker, "add_lora")
        and hasattr(Worker, "remove_lora")
    )
    assert inspect.signature(EngineArgs).parameters.keys() >= {
        "block_size",
        "distributed_executor_backend",
        "dtype",
        "enable_chunked_prefill",
        "enable_lora",
        "enable_prefix_caching",
        "enable_sleep_mode",
        "enforce_eager",
        "generation_config",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "logprobs_mode",
        "max_lora_rank",
        "max_loras",
        "max_model_len",
        "max_num_seqs",
        "model",
        "use_tqdm_on_load",
    }


def test_weights_are_reloaded_from_an_iterator_or_a_folder_by_both_runners() -> None:
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Current
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner as Previous

    for runner in (Current, Previous):
        reload = inspect.signature(runner.reload_weights)
        reload.bind(None, weights_iterator=iter(()))
        reload.bind(None, weights_path="folder")


def test_the_previous_runner_draws_by_a_module_that_can_be_wrapped() -> None:
    from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler
    from vllm.v1.sample.sampler import Sampler

    assert isinstance(Sampler().topk_topp_sampler, TopKTopPSampler)
    drawn = inspect.signature(TopKTopPSampler.forward_native).parameters
    assert list(drawn) == ["self", "logits", "generators", "k", "p"]


def test_the_executor_says_which_device_its_worker_takes() -> None:
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    from colearn.engines.vllm_worker import on_device

    kind = on_device(3)
    assert issubclass(kind, UniProcExecutor)
    executor = object.__new__(kind)
    executor.vllm_config = SimpleNamespace(device_config=SimpleNamespace(device="cuda"))
    assert executor._distributed_args()[1:] == (0, 3)
