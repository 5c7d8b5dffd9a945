"""What the engine of a vLLM server checks before it loads anything: model, tokenizer, options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_vllm_server import FakeVLLMServer
from served_engine import *  # noqa: F403 - the fixtures
from served_engine import CHAT, PLAIN, adapted
from tokenizers.processors import TemplateProcessing
from vllm_cases import byte_tokenizer

from colearn.contract import Sampling
from colearn.engines.kinds import VLLMServer
from colearn.engines.server_link import ServerLink
from colearn.engines.vllm_server_checks import Served, check_server
from colearn.engines.vllm_weights import write_model
from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.rollout.agents import AgentSpec, ChatFormat
from tests.helpers.tiny import model_that_reads_images

ADAPTER = {"id": "theirs", "root": "/a", "parent": "base", "max_model_len": 7}
SAMPLING = Sampling(max_tokens=8)


def checked(base: Base, voices: Any, server: FakeVLLMServer) -> Served:
    with closing(ServerLink(server.url, timeout=600.0)) as link:
        return check_server(link, base, voices)


def refused(base: Base, voices: Any, server: FakeVLLMServer, line: str) -> None:
    with pytest.raises(ConfigError, match=rf"^run\.generator\.url: .*{line}") as error:
        checked(base, voices, server)
    assert "\n" not in str(error.value)


def beginning_with_end() -> Any:
    """A tokenizer that begins every text with its end token, unless it is told not to."""
    tokenizer = byte_tokenizer()
    tokenizer._tokenizer.post_processor = TemplateProcessing(
        single="<end> $A", special_tokens=[("<end>", tokenizer.eos_token_id)]
    )
    return tokenizer


def test_the_base_is_the_model_that_is_no_adapter(base: Base, server: FakeVLLMServer) -> None:
    own = server.on_v1_models({})[1]["data"]
    server.statuses["/v1/models"] = (200, {"data": [ADAPTER, *own]})
    assert checked(base, PLAIN, server) == ("base", 4096)


@pytest.mark.parametrize(
    "models",
    [None, [], {"data": []}, {"data": None}, {"data": ["base"]}, {"data": [{"id": "llama"}]}],
)
def test_another_programs_list_of_models_is_one_line(
    base: Base, server: FakeVLLMServer, models: Any
) -> None:
    server.statuses["/v1/models"] = (200, models)
    refused(base, PLAIN, server, r"is no vLLM server \(/v1/models has no model with a max_model")


@pytest.mark.parametrize("path", ["/v1/models", "/tokenize"])
def test_a_route_that_every_vllm_server_has_tells_others_apart(
    base: Base, server: FakeVLLMServer, path: str
) -> None:
    server.statuses[path] = (404, {"detail": "Not Found"})
    refused(base, PLAIN, server, r"is no vLLM server \(.*status 404: Not Found\); give the URL")


@pytest.mark.parametrize(
    ("field", "value"), [("model_type", "llama"), ("vocab_size", 9), ("num_hidden_layers", 3)]
)
def test_a_model_of_another_shape_is_refused(
    base: Base, server: FakeVLLMServer, field: str, value: Any
) -> None:
    file = server.folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    refused(base, PLAIN, server, rf"serves another model \({field} {value}, the trained one has ")


@pytest.fixture
def reads_images() -> Base:
    return Base(model_that_reads_images())


@pytest.fixture
def its_server(reads_images: Base, tmp_path: Path) -> Iterator[FakeVLLMServer]:
    write_model(tmp_path / "whole", reads_images, byte_tokenizer())
    fake = FakeVLLMServer(tmp_path / "whole")
    yield fake
    fake.close()


def test_a_model_that_reads_images_is_served_as_itself(
    reads_images: Base, its_server: FakeVLLMServer
) -> None:
    checked(reads_images, PLAIN, its_server)


def test_a_language_model_of_another_shape_inside_one_that_reads_images_is_refused(
    reads_images: Base, its_server: FakeVLLMServer
) -> None:
    file = its_server.folder / "config.json"
    config = json.loads(file.read_text())
    config["text_config"]["hidden_size"] = 40
    file.write_text(json.dumps(config))
    refused(reads_images, PLAIN, its_server, r"serves another model \(hidden_size 40, the trained ")


def test_a_shape_that_the_served_folder_leaves_out_is_not_compared(
    base: Base, server: FakeVLLMServer
) -> None:
    file = server.folder / "config.json"
    config = json.loads(file.read_text())
    del config["hidden_size"]
    file.write_text(json.dumps(config))
    checked(base, PLAIN, server)


def test_tokens_that_a_tokenizer_puts_before_a_text_are_not_compared(
    base: Base, server: FakeVLLMServer
) -> None:
    write_model(server.folder, base, beginning_with_end())
    server.start()
    checked(base, PLAIN, server)
    own = AgentSpec(
        adapter=None, chat=ChatFormat(beginning_with_end(), chat="plain"), sampling=SAMPLING
    )
    checked(base, {"ann": own}, server)


def test_every_agents_tokenizer_is_compared(base: Base, server: FakeVLLMServer) -> None:
    other = byte_tokenizer()
    other.add_tokens(["def"])
    voices = PLAIN | {
        "ben": AgentSpec(adapter=None, chat=ChatFormat(other, chat="plain"), sampling=SAMPLING)
    }
    refused(base, voices, server, "another tokenizer than agent 'ben'; serve the trained")


def test_a_server_with_just_the_slots_and_the_rank_is_taken(
    base: Base, server: FakeVLLMServer
) -> None:
    server.options |= {"max_loras": 2, "max_lora_rank": 8}
    checked(base, adapted(base, "first", "second"), server)


def test_full_weights_need_no_adapters_of_the_server(base: Base, server: FakeVLLMServer) -> None:
    server.options["lora"] = False
    checked(base, PLAIN, server)


@pytest.mark.parametrize(
    ("options", "adapters", "missing"),
    [
        ({"dev": False}, 0, "VLLM_SERVER_DEV_MODE=1"),
        ({"logprobs_mode": "raw_logprobs"}, 0, "--logprobs-mode processed_logprobs"),
        ({"lora": False}, 2, "--enable-lora --max-loras 2 --max-lora-rank 8"),
        ({"max_loras": 1}, 2, r"--max-loras 2 \(it has 1\)"),
        ({"max_loras": 1}, 1, r"--max-loras 2 \(it has 1\)"),  # and zeros for ann
        ({"max_lora_rank": 1}, 2, r"--max-lora-rank 8 \(it has 1\)"),
    ],
)
def test_a_missing_option_is_named_before_anything_is_loaded(
    base: Base, server: FakeVLLMServer, options: dict[str, Any], adapters: int, missing: str
) -> None:
    server.options |= options
    roles = adapted(base, "first", "second") if adapters == 2 else dict(PLAIN)
    if adapters == 1:
        roles["ben"] = adapted(base, "first")["ann"]
    refused(base, roles, server, f"runs without {missing}")
    assert not {"/collective_rpc", "/v1/load_lora_adapter"} & set(server.asked)


@pytest.mark.parametrize(("field", "value"), [("top_p", 0.9), ("top_k", 5)])
def test_either_cut_needs_scores_from_before_it(
    base: Base, server: FakeVLLMServer, field: str, value: Any
) -> None:
    server.options["cuts"] = False
    sampling = Sampling(**{"max_tokens": 8, field: value})
    voices = {"ann": AgentSpec(adapter=None, chat=CHAT, sampling=sampling)}
    refused(
        base, voices, server, rf"--worker-extension-cls .*, which agents\.ann\.sampling\.{field}"
    )


@pytest.mark.parametrize(
    ("path", "status", "line"),
    [
        ("/inference/v1/generate", 403, "runs without --enable-scale-out; restart it"),
        ("/inference/v1/generate", 404, "runs without --enable-scale-out; restart it"),
        ("/v1/load_lora_adapter", 404, "without VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"),
        ("/v1/load_lora_adapter", 405, "without VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"),
        ("/server_info", 500, r"/server_info: status 500: .*no pip.*: install pip in the"),
    ],
)
def test_a_route_that_is_off_is_named(
    base: Base, server: FakeVLLMServer, path: str, status: int, line: str
) -> None:
    server.statuses[path] = (status, {"detail": "no pip"})
    refused(base, adapted(base, "first"), server, line)


def test_a_temperature_that_vllm_would_raise_is_refused_before_anything_is_asked(
    base: Base, server: FakeVLLMServer
) -> None:
    cool = AgentSpec(adapter=None, chat=CHAT, sampling=Sampling(temperature=0.001))
    line = r"^agents\.ann\.sampling\.temperature: the vLLM server samples at 0\.01 or above"
    with pytest.raises(ConfigError, match=line):
        VLLMServer(url=server.url).build(base, {"ann": cool})
    assert not server.asked
