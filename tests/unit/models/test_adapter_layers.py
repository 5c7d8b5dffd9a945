"""Adapters on every kind of layer: trained whole, exported as they answer, in one batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from tiny import Cast, Notes, behaviour, byte_tokenizer, forced, gap, play, tiny_model
from transformers import AutoModelForCausalLM

from colearn.config import LoRASettings
from colearn.contract import Sampling
from colearn.deploy.export.weights import save_adapter, save_merged
from colearn.engines.transformers import TransformersEngine
from colearn.errors import ConfigError
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.models.weight_update import weight_update
from colearn.rollout.agents import AgentSpec, ChatFormat

IDS = torch.arange(5, 25)[None]
TARGETS: list[tuple[Any, int]] = [
    ("all-linear", 14),
    (["q_proj"], 2),
    (["embed_tokens"], 1),
    (["lm_head"], 1),
    (["embed_tokens", "lm_head"], 2),
    (["embed_tokens", "self_attn.v_proj", "layers.1.mlp.up_proj"], 4),
    (r".*layers\.0\.[a-z_]+\.(q_proj|down_proj)", 2),
    (r"(.*embed_tokens|lm_head)", 2),
]
"""Targets, and how many of the layers of two transformer blocks they are."""


def adapted(base: Base, name: str, targets: Any) -> Network:
    """An adapter that changes the model: none of its weights is zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(sum(name.encode()))
        base.add_adapter(name, LoRASettings(rank=4, alpha=8.0, targets=targets))
        for key, parameter in base.model.named_parameters():
            if name in key:
                torch.nn.init.normal_(parameter, 0.0, 0.2)
    return Network(base, name)


def frozen(kind: str = "qwen3", *, tied: bool = False) -> Base:
    model = tiny_model(kind, tied=tied)
    model.requires_grad_(False)
    return Base(model)


@torch.no_grad()
def answers(network: Network) -> torch.Tensor:
    with network.base.using(network.adapter):
        return network.base.logits(network.base.hidden(IDS))


@pytest.mark.parametrize(
    ("targets", "layers", "kind", "tied"),
    [
        *((*target, "qwen3", True) for target in TARGETS),
        ("all-linear", 14, "gemma3", True),
        (["embed_tokens", "lm_head"], 2, "gemma3", False),
    ],
)
@torch.no_grad()
def test_an_adapter_is_exported_as_it_answers(
    targets: Any, layers: int, kind: str, tied: bool, tmp_path: Path
) -> None:
    base = frozen(kind, tied=tied)
    network = adapted(base, "actor_ada", targets)
    adapted(base, "actor_ben", "all-linear")
    expected = answers(network)
    save_adapter(network, tmp_path / "adapter", "base")
    weights = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert len(weights) == len(network.trained()) == 2 * layers
    by_peft = PeftModel.from_pretrained(tiny_model(kind, tied=tied), tmp_path / "adapter").eval()
    assert by_peft(IDS).logits.equal(expected)
    save_merged(network, tmp_path / "merged", "float32")
    alone = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(alone(IDS).logits, expected, rtol=0, atol=3e-5)


def test_a_pattern_stays_one_text_in_an_exported_adapter(tmp_path: Path) -> None:
    from peft import LoraConfig

    network = adapted(frozen(), "actor_ada", r".*\.(q_proj|v_proj)")
    save_adapter(network, tmp_path, "base")
    assert LoraConfig.from_pretrained(tmp_path).target_modules == r".*\.(q_proj|v_proj)"


@pytest.mark.parametrize("targets", [targets for targets, _ in TARGETS])
def test_every_weight_of_an_adapter_has_a_gradient(targets: Any) -> None:
    network = adapted(frozen(tied=True), "actor_ada", targets)
    with network.base.using("actor_ada"):
        logits = network.base.logits(network.base.hidden(IDS))
    logits.logsumexp(-1).sum().backward()
    still = [name for name, weight in network.trained().items() if not weight.grad.any()]
    assert network.trained() and still == []


@pytest.mark.parametrize(
    "targets",
    [
        (["lm_head"], ["lm_head"]),
        (["embed_tokens"], ["lm_head", "q_proj"]),
        (["q_proj"], ["v_proj"]),
        (["embed_tokens", "lm_head"], None),
    ],
)
def test_two_agents_with_adapters_on_other_layers_decode_in_one_batch(targets: Any) -> None:
    """Episodes end at different lengths, so that the head runs on fewer rows than the cache."""
    base = frozen(tied=True)
    chat = ChatFormat(byte_tokenizer(), system="be brief")
    voices = {}
    for agent, chosen in zip(("ada", "ben"), targets, strict=True):
        name = None if chosen is None else adapted(base, f"actor_{agent}", chosen).adapter
        voices[agent] = AgentSpec(adapter=name, chat=chat, sampling=Sampling(max_tokens=8))
    team = Cast(dict.fromkeys(voices, base), voices)
    for tree in play(Notes(), team):
        for agent in voices:
            assert gap(behaviour(tree, agent), forced(team, tree, agent)) < 1e-4


def test_a_copied_generator_loads_an_adapter_on_the_embeddings() -> None:
    base = frozen(tied=True)
    network = adapted(base, "actor_ada", ["embed_tokens", "lm_head"])
    voice = AgentSpec(adapter="actor_ada", chat=ChatFormat(byte_tokenizer()), sampling=Sampling())
    generator = TransformersEngine(base, {"ada": voice}, copies=True)
    with torch.no_grad():
        for weight in network.trained().values():
            weight.mul_(3.0)
    copy = Network(generator.base, "actor_ada")
    assert not answers(copy).equal(answers(network))
    generator.load([weight_update(network, 1)])
    assert answers(copy).equal(answers(network))


def test_a_copy_has_the_types_of_the_weights_and_their_ties() -> None:
    """A frozen base in half precision stays so: its copy took twice the memory."""
    model = tiny_model("qwen3", tied=True).to(torch.bfloat16)
    model.requires_grad_(False)
    base = Base(model, torch.bfloat16)
    adapted(base, "actor_ada", ["q_proj"])
    voice = AgentSpec(adapter="actor_ada", chat=ChatFormat(byte_tokenizer()), sampling=Sampling())
    copy = TransformersEngine(base, {"ada": voice}, copies=True).base
    weights = dict(base.causal.named_parameters())
    copies = dict(copy.causal.named_parameters())
    assert {weight.dtype for weight in weights.values()} == {torch.bfloat16, torch.float32}
    assert copies.keys() == weights.keys()
    for name, weight in weights.items():
        assert copies[name].dtype == weight.dtype and copies[name].equal(weight)
        assert copies[name].data_ptr() != weight.data_ptr()
    assert copy.causal.get_output_embeddings().weight is copy.causal.get_input_embeddings().weight


def test_a_listed_name_without_a_layer_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^lora\.targets: the model has no layer 'v_porj' \("):
        adapted(frozen(), "actor_ada", ["q_proj", "v_porj"])


@pytest.mark.parametrize("targets", ["q_proj", "(", ["all-linear"], ["norm"], ["model"]])
def test_targets_that_peft_refuses_are_one_line(targets: Any) -> None:
    with pytest.raises(ConfigError, match=r"^lora\.targets: [^\n]*'all-linear' fits every model"):
        adapted(frozen(), "actor_ada", targets)
