"""Adapters on real 4-bit bases: they learn as on the same weights without quantization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from colearn.config import load_config, resolve
from colearn.contract import NetworkKey
from colearn.estimate import estimate
from colearn.models.folders import with_folders
from colearn.models.load import load_base
from colearn.training.loop import Experiment

pytestmark = pytest.mark.quantized


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLEARN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def settings(path: str, quantization: str | None, **sections: Any) -> Any:
    model = {
        "path": path,
        "quantization": quantization,
        "lora": {"rank": 4},
        "learning_rate": 1e-3,
    }
    return load_config(
        {
            "task": {"name": "dpomdp", "problem": "two_step", "penalty": -10},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": model},
            "critic": model,
            "agents": {"*": {"sampling": {"max_tokens": 2}}},
            "train": {"episodes": 4, "environment_steps": 4000, "iterations": 5, "epochs": 2},
            "evaluation": {"every": 100, "episodes": 2},
            "run": {"device": "cpu"},
            **sections,
        }
    )


@pytest.fixture(scope="module")
def folder(cache) -> Path:
    """The embedded model of the task."""
    run = with_folders(resolve(settings("embedded-tiny", None)))
    return Path(run.path(NetworkKey("actor", "agent_1")))


def load(path: Path, *, quantized: bool, head: bool = True) -> Any:
    return load_base(
        str(path),
        compute="float32",
        trained=False,
        device=torch.device("cpu"),
        field="test",
        head=head,
        quantized=quantized,
    )


@pytest.fixture(scope="module")
def rounded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the same model whose linear weights have the values that 4 bits give them."""
    from bitsandbytes.functional import dequantize_4bit
    from bitsandbytes.nn import Linear4bit
    from transformers import AutoTokenizer

    quantized, plain = load(folder, quantized=True).causal, load(folder, quantized=False).causal
    modules = dict(plain.named_modules())
    changed = 0
    for name, layer in quantized.named_modules():
        if isinstance(layer, Linear4bit):
            weight = dequantize_4bit(layer.weight.data, layer.weight.quant_state)
            changed += int(not torch.equal(weight, modules[name].weight))
            modules[name].weight.data = weight
    assert changed > 0
    out = tmp_path_factory.mktemp("rounded") / "model"
    plain.save_pretrained(out)
    AutoTokenizer.from_pretrained(folder).save_pretrained(out)
    return out


def test_adapters_and_critic_learn_as_on_the_rounded_weights(
    folder: Path, rounded: Path, tmp_path: Path
) -> None:
    def trained(name: str, *given: Any) -> tuple[Experiment, dict[str, torch.Tensor]]:
        experiment = Experiment(settings(*given), tmp_path / name)
        experiment.run()
        return experiment, {
            f"{key}.{part}": weight.clone()
            for key, learner in experiment.team.learners.items()
            for part, weight in learner.weights().items()
        }

    first, quantized = trained("quantized", str(folder), "nf4")
    _, plain = trained("plain", str(rounded), None)
    assert quantized.keys() == plain.keys()
    gaps = [float((quantized[name] - weight).abs().max()) for name, weight in plain.items()]
    assert max(gaps) < 1e-5
    moved = [name for name in plain if "lora_B" in name and bool(quantized[name].any())]
    assert {name.partition(".")[0] for name in moved} == {
        "actor-agent_1",
        "actor-agent_2",
        "critic-team",
    }
    assert len({id(one.base) for one in first.team.networks.values()}) == 1


def test_a_dry_run_counts_the_bytes_of_the_loaded_base(folder: Path) -> None:
    real = load(folder, quantized=True)
    states = [
        state
        for layer in real.causal.modules()
        if (state := getattr(getattr(layer, "weight", None), "quant_state", None)) is not None
    ]
    assert states
    held = sum(one.numel() * one.element_size() for one in real.causal.parameters())
    scales = [tensor for state in states for tensor in (state.absmax, state.state2.absmax)]
    held += sum(one.numel() * one.element_size() for one in scales)
    config = settings(str(folder), "nf4")
    counted = estimate(config).networks
    assert len({one.base for one in counted}) == 1
    adapters = 4 * sum(one.trained for one in counted)
    assert sum(one.weights for one in counted) - adapters == held
    whole = sum(one.weights for one in estimate(settings(str(folder), None)).networks) - adapters
    assert held < whole


def test_an_export_folds_the_adapter_into_the_whole_base(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    from colearn.deploy.export import export_run

    Experiment(settings(str(folder), "nf4"), tmp_path / "run").run()
    export_run(tmp_path / "run", tmp_path / "out")
    (agent,) = list((tmp_path / "out").glob("agent_1"))
    exported, before = (
        load_file(agent / "model.safetensors"),
        load_file(folder / "model.safetensors"),
    )
    assert all(weight.dtype == torch.float32 for weight in exported.values())
    name = next(one for one in before if "q_proj" in one)
    gap = float((exported[name] - before[name]).abs().max())
    assert 0.0 < gap < 0.05
