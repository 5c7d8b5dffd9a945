"""Peaks of deep models from two and three of their layers equal those of whole rehearsals."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import register
from transformers import LlamaConfig, Qwen3Config

import colearn.estimate.depth as depth
from colearn.config import load_config
from colearn.estimate import Estimate, estimate
from colearn.estimate.machine import read_machine

SIZES = {
    "vocab_size": 500,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "bos_token_id": None,
    "eos_token_id": None,
}
DEEP = {
    "tied": LlamaConfig(num_hidden_layers=7, tie_word_embeddings=True, **SIZES),
    "untied": Qwen3Config(num_hidden_layers=6, tie_word_embeddings=False, **SIZES),
    # gradients of the embedding are larger than all activations
    "wide": Qwen3Config(num_hidden_layers=9, **SIZES | {"vocab_size": 50_000}),
}


@pytest.fixture
def estimated(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    register(monkeypatch, notes="tiny:Notes")

    def run(model: Any, *overrides: str) -> Estimate:
        folder = tmp_path / "model"
        model.save_pretrained(folder)
        settings = {
            "task": {"name": "notes", "horizon": 2, "items": 3},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": str(folder)}},
            "agents": {"*": {"sampling": {"max_tokens": 4}}},
            "critic": {"path": str(folder)},
            "train": {"episodes": 4, "token_budget": 300},
            "evaluation": {"episodes": 1},
        }
        return estimate(load_config(settings, overrides), machine=read_machine("2x80GB"))

    return run


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("wide", ()),
        # casts of trained weights are kept while the layers run
        ("untied", ("models.*.dtype=bfloat16", "critic.dtype=bfloat16")),
        pytest.param("tied", ("models.*.lora={rank: 2}",), marks=pytest.mark.slow),
        pytest.param("tied", ("models.*.checkpointing=true",), marks=pytest.mark.slow),
    ],
)
def test_a_deep_model_has_the_peaks_of_its_whole_rehearsal(
    estimated: Any, name: str, overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = estimated(DEEP[name], *overrides)
    monkeypatch.setattr(depth, "_are_equal", lambda base: False)
    assert short.phases == estimated(DEEP[name], *overrides).phases


def test_layers_that_attend_differently_are_rehearsed_whole(
    estimated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = Qwen3Config(
        num_hidden_layers=6, use_sliding_window=True, sliding_window=4, max_window_layers=3, **SIZES
    )
    cut: list[int] = []
    original = depth._cut

    def recorded(base: Any, to: int) -> Any:
        cut.append(to)
        return original(base, to)

    monkeypatch.setattr(depth, "_cut", recorded)
    estimated(mixed)
    assert cut == []
    estimated(DEEP["untied"])
    assert set(cut) == {2, 3}


@pytest.mark.parametrize(
    "overrides", [(), ("algorithm.loss.entropy=0.1",)], ids=["plain", "entropy"]
)
def test_the_peak_of_many_blocks_of_logits_is_that_of_four(
    overrides: tuple[str, ...], estimated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "colearn.estimate.fake_team.DescribedBase.logits_at_once", 3 * 500
    )  # three tokens a block
    long = ("agents.*.sampling.max_tokens=12", *overrides)  # 8 blocks or more
    few = estimated(DEEP["untied"], *long)
    monkeypatch.setattr("colearn.estimate.fake_team._BLOCKS", 10**6)
    whole = estimated(DEEP["untied"], *long)
    for phase, peak in whole.phases["cuda:0"].items():
        # each block has a closure's worth of small tensors
        assert few.phases["cuda:0"][phase] == pytest.approx(peak, rel=1e-3), phase
    assert few.phases["cuda:0"]["actor update"] > few.resident["cuda:0"]


def test_packed_trees_on_a_described_accelerator_have_a_dense_mask(
    estimated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colearn.models.tree_attention._CALL", -1)  # blocks wherever they exist
    tree = (
        "algorithm={name: magrpo, rollout: {k: 2}}",
        "critic=null",
        "agents.*.sampling.max_tokens=120",
        "train.token_budget=100000",
        "train.episodes=1",
    )
    dense = estimated(DEEP["untied"], *tree)
    monkeypatch.delattr("colearn.estimate.fake_team.DescribedBase._masks")
    blocks = estimated(DEEP["untied"], *tree)
    (row,) = next(iter(dense.updates.works.values())).largest
    assert not row.plain
    # a bool for each pair of tokens, and the same as float32 in every layer, six of them
    pairs = len(row.tokens) ** 2
    more = dense.phases["cuda:0"]["actor update"] - blocks.phases["cuda:0"]["actor update"]
    assert more > (1 + 6 * 4) * pairs / 2
