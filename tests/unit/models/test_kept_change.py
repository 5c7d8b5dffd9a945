"""The share of a change that bfloat16 keeps, by hand: 1 + 1/128 is the next number after 1."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tiny import register, save_model, tiny_model
from torch import nn
from transformers import AutoModelForSequenceClassification

from colearn.config import LoRASettings, load_config, resolve
from colearn.contract import NetworkKey
from colearn.deploy.export.weights import check_adapter
from colearn.errors import ConfigError
from colearn.methods.values.critic_folder import write_critic
from colearn.models.base import Base
from colearn.models.kept_change import kept_change, kept_type
from colearn.models.network import Network, ValueHead

STEP = 1 / 128
CASES = {
    "kept whole": ((STEP, STEP), 1.0),
    "lost whole": ((STEP / 4, STEP / 4), 0.0),
    "one of two": ((STEP, STEP / 8), 64 / 65),
    "rounded up": ((STEP * 3 / 4, STEP * 3 / 4), 4 / 3),
    "downwards the numbers are twice as dense": ((-STEP / 2, -STEP / 2), 1.0),
    "nothing changed": ((0.0, 0.0), None),
}


def trained_in_full(changes: tuple[float, ...], folder: Path) -> Any:
    layer = nn.Linear(len(changes), 1, bias=False)
    save_file({"weight": torch.ones(1, len(changes))}, folder / "model.safetensors")
    with torch.no_grad():
        layer.weight.copy_(1 + torch.tensor([changes]))
    return SimpleNamespace(adapter=None, base=SimpleNamespace(causal=layer))


def trained_by_adapter(changes: tuple[float, ...]) -> Network:
    base = Base(tiny_model("llama"), torch.float32)
    base.add_adapter("ada", LoRASettings(rank=1, alpha=1, targets=["q_proj"]))
    with torch.no_grad():
        for layer in base.causal.model.layers:
            layer.self_attn.q_proj.base_layer.weight.fill_(1.0)
            layer.self_attn.q_proj.lora_B["ada"].weight.fill_(1.0)
            row = layer.self_attn.q_proj.lora_A["ada"].weight
            row.zero_()[0, : len(changes)] = torch.tensor(changes)
    return Network(base, "ada")


@pytest.mark.parametrize("adapter", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_share_of_a_change_that_is_kept(name: str, adapter: bool, tmp_path: Path) -> None:
    changes, expected = CASES[name]
    network = trained_by_adapter(changes) if adapter else trained_in_full(changes, tmp_path)
    share = kept_change(network, str(tmp_path), torch.bfloat16)
    assert share == (None if expected is None else pytest.approx(expected, abs=1e-6))
    if expected is not None:
        assert kept_change(network, str(tmp_path), torch.float32) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "chosen", "dtype", "line"),
    [
        ("lost whole", False, "float32", "bfloat16 keeps 0% of what training changed, so float32"),
        ("lost whole", True, "bfloat16", "bfloat16 keeps 0% of what training changed\n"),
        ("one of two", False, "bfloat16", "bfloat16 keeps 98% of what training changed\n"),
        ("nothing changed", False, "bfloat16", ""),
    ],
)
def test_weights_that_would_lose_the_change_are_written_in_float32(
    name: str,
    chosen: bool,
    dtype: str,
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    network = trained_in_full(CASES[name][0], tmp_path)
    by_user: Any = "bfloat16" if chosen else None
    place = str(tmp_path)
    kept = kept_type(network, place, "bfloat16", who="models.ada", chosen=by_user, option="--dtype")
    assert kept == dtype
    told = capsys.readouterr().err
    assert line in told and bool(told) == bool(line)


def team(**models: tuple[bool, bool]) -> Any:
    """Models by name: whether they were trained, and by an adapter."""
    chosen = {
        name: SimpleNamespace(trained=trained, lora=object() if lora else None)
        for name, (trained, lora) in models.items()
    }
    return SimpleNamespace(run=SimpleNamespace(config=SimpleNamespace(models=chosen)))


def test_a_mixed_team_has_adapters_where_it_was_trained_by_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_adapter(team(ada=(True, True), ben=(True, False), cy=(False, False)))
    told = capsys.readouterr().err
    assert "models.ben was trained in full and has no adapter; its agents' folders hold" in told
    assert "models.cy was not trained and has no adapter" in told and "models.ada" not in told
    with pytest.raises(
        ConfigError, match=r"^--adapter: models\.ben was trained in full and has no"
    ):
        check_adapter(team(ben=(True, False), cy=(False, True)))


@pytest.mark.parametrize(
    ("dtype", "kept", "line"),
    [
        (
            None,
            "float32",
            "critic 'team': bfloat16 keeps 0% of what training changed, so float32 is written; "
            "--dtype bfloat16 writes bfloat16 all the same\n",
        ),
        ("bfloat16", "bfloat16", "critic 'team': bfloat16 keeps 0% of what training changed\n"),
    ],
)
def test_a_critic_says_what_is_kept_of_its_training_too(
    dtype: Any, kept: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every trained weight moved by less than half of a bfloat16 number."""
    model = save_model(tmp_path / "base")
    tiny_model().to(torch.bfloat16).save_pretrained(model)
    settings = {
        "task": {"name": "coin_words"},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": model}},
        "critic": {"path": model, "dtype": "bfloat16"},
        "train": {"environment_steps": 8},
        "run": {"device": "cpu"},
    }
    with pytest.MonkeyPatch.context() as patch:
        register(patch, coin_words="tiny:Notes")
        run = resolve(load_config(settings))
    weights = tiny_model().to(torch.bfloat16).float()
    network = Network(Base(weights, torch.float32), head=ValueHead(32))
    with torch.no_grad():
        for weight in weights.parameters():
            weight.mul_(1 + 2**-10)
    folder = tmp_path / "critic"
    folder.mkdir()
    manifest = write_critic(
        run, NetworkKey("critic", "team"), network, folder, joint_actions=1, dtype=dtype,
        option="--dtype",
    )  # fmt: skip
    assert manifest.dtype == kept and line in capsys.readouterr().err
    stored = AutoModelForSequenceClassification.from_pretrained(folder).dtype
    assert stored == getattr(torch, kept)
