"""A run whose chains fork where its own critic was surprised most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import load_config
from colearn.contract.types import Node, Tree
from colearn.training.loop import Experiment


@pytest.fixture(autouse=True)
def _notes(tmp_path: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLEARN_CACHE", str(tmp_path / "cache"))
        register(patch, notes="tiny:Notes")
        yield


def experiment(folder: Path, **rollout: Any) -> Experiment:
    model = save_model(folder / "model")
    settings = {
        "task": {"name": "notes", "horizon": 3, "items": 2},
        "algorithm": {"name": "collm_cc", "rollout": {"name": "forked_chain", **rollout}},
        "models": {"*": {"path": model, "learning_rate": 3e-2}},
        "agents": {"*": {"sampling": {"max_tokens": 4}}},
        "critic": {"path": model, "learning_rate": 3e-2},
        "train": {"environment_steps": 40, "episodes": 2},
        "run": {"seed": 1, "device": "cpu"},
    }
    return Experiment(load_config(settings), folder / "run")


def trunk(tree: Tree[Any]) -> Tree[Any]:
    """The chain that the tree was before it forked."""
    nodes: list[Node[Any]] = []
    for node in tree.nodes:
        if not any(node.path):
            place = len(nodes)
            nodes.append(replace(node, index=place, parent=place - 1 if place else None))
    return replace(tree, nodes=tuple(nodes))


def test_each_chain_forks_at_the_node_that_surprised_the_current_critic_most(
    tmp_path: Path,
) -> None:
    """K = 2: forks cost 3, 2, 1, so a budget of 3 holds the first choice whatever it is; the rest
    may hold another."""
    run = experiment(tmp_path, k=2, budget=3)
    seen = set()
    with run:
        for _ in range(3):
            updater = run.updater
            assert updater is not None
            measure = updater.surprise
            assert measure is not None
            trees = run.trees()
            for tree, surprise in zip(trees, measure([trunk(tree) for tree in trees]), strict=True):
                forked = {node.path for node in tree.nodes if len(tree.children(node.index)) == 2}
                assert max(surprise, key=surprise.__getitem__) in forked
                seen |= forked
                assert 3 < len(tree.nodes) - 1 <= 6
            run.step()
    assert len(seen) > 1


def test_a_run_that_forks_at_random_trains_within_its_budget(tmp_path: Path) -> None:
    run = experiment(tmp_path, k=3, budget=2, where="random")
    with run:
        run.step()
    assert run.progress.environment_steps == 2 * (3 + 2)
    assert run.progress.updates == 1
