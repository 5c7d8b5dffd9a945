"""The parts of docs/howto/own_parts.md train."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import Notes, save_model

import colearn
from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.magrpo import MAGRPO
from colearn.contract import Callback, PolicyBatch, RolloutEvent
from colearn.contract.types import Tree

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own_parts.md"
FILES = dict(re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
EMBEDDING = "model.embed_tokens.weight"
TINY: Any = {
    "agents": {"*": {"sampling": {"max_tokens": 3}}},
    "train": {"environment_steps": 100, "episodes": 2},
    "evaluation": {"episodes": 1},
}


@dataclass(frozen=True)
class Seen(Callback):
    """Keeps the trees of the rollouts."""

    trees: list[Tree[Any]] = field(default_factory=list)

    def on_rollout(self, event: RolloutEvent) -> None:
        self.trees.extend(event.trees)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The page's modules by name."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield {name: importlib.import_module(name) for name in FILES}
    for name in FILES:
        del sys.modules[name]


@pytest.fixture
def model(tmp_path: Path) -> Any:
    return {"path": save_model(tmp_path / "tiny", "qwen3"), "learning_rate": 1e-2}


def test_the_page_counts_the_lines_of_its_files() -> None:
    rows = re.findall(r"^\| [a-z ]+ \| (\d+) \|", PAGE.read_text(), re.M)
    assert sorted(map(int, rows)) == sorted(text.count("\n") + 1 for text in FILES.values())


def test_the_shape_forks_once_and_the_engine_samples_what_the_learner_scores(
    parts: dict[str, Any], model: Any, tmp_path: Path
) -> None:
    shape, advantage = parts["own_rollout"].ForkAt(k=3), parts["own_advantage"].GroupMedian()
    seen = Seen()
    with colearn.Trainer(
        Notes(horizon=3, items=1),
        MAGRPO(rollout=shape, advantage=advantage),
        models=model,
        run={"generator": {"name": "own_engine:Uncached"}},
        callbacks=[seen],
        out=tmp_path / "run",
        **TINY,
    ) as trainer:
        metrics = trainer.step()
    assert len(seen.trees) == 2
    for tree in seen.trees:
        assert [node.turn for node in tree.nodes] == [0, 1, 2, 2, 2, 3, 3, 3]
        for agent in tree.agents:
            assert metrics[f"{agent}/logprob_mismatch"] < 1e-4
    assert metrics["advantage/actions"] == 2 * 2 * (1 + 3 + 3)


def test_the_loss_is_the_squared_distance_of_advantage_and_log_ratio(parts: dict[str, Any]) -> None:
    logprobs = torch.tensor([-1.0, -2.0, -3.0], requires_grad=True)
    old = torch.tensor([-1.5, -2.0, -3.0])
    batch = PolicyBatch(
        logprobs=logprobs,
        action_of=torch.tensor([0, 0, 1]),
        advantages=torch.tensor([1.0, -2.0]),
        old_logprobs=old,
        behaviour=old,
        ref_logprobs=None,
        entropy=None,
        total_samples=2,
        total_tokens=3,
    )
    loss, metrics = parts["own_loss"].Regression(beta=0.5)(batch)
    loss.backward()
    assert loss.item() == metrics["regression"] == pytest.approx((0.75**2 + 2.0**2) / 2)
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([-0.375, -0.375, 1.0])


def test_the_critic_the_loss_and_the_learner_step_every_model(
    parts: dict[str, Any], model: Any, tmp_path: Path
) -> None:
    with colearn.Trainer(
        Notes(horizon=3, items=1),
        CoLLMCC(critic=parts["own_critic"].ActionsOnly(), loss=parts["own_loss"].Regression()),
        models=model,
        critic=model,
        run={"learner": {"name": "own_learner:SGD"}},
        out=tmp_path / "run",
        **TINY,
    ) as trainer:
        trainer.step()
        trainer.save()
    start = load_file(f"{model['path']}/model.safetensors")
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    head = load_file(checkpoint / "critic-team" / "weights.safetensors")["head.linear.weight"]
    assert head.any()  # it starts with zeros
    for agent in ("ada", "ben"):
        weights = load_file(checkpoint / f"actor-{agent}" / "weights.safetensors")
        assert (weights[f"model.{EMBEDDING}"] != start[EMBEDDING]).any()
