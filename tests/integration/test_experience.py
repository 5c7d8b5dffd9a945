"""What an update takes its trees from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny import register, save_model

from colearn.config import Config
from colearn.training.experience import Experience, TrainingPoint
from colearn.training.loop import Experiment


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "actor"))


def experiment(
    model: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **train: Any
) -> Experiment:
    register(monkeypatch, notes="tiny:Notes")
    settings = {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "magrpo", "rollout": {"k": 2}},
        "models": {"*": {"path": model, "learning_rate": 1e-3}},
        "agents": {"*": {"sampling": {"max_tokens": 2}}},
        "train": {"environment_steps": 24, "episodes": 2, **train},
        "evaluation": {"every": 9, "episodes": 1},
        "run": {"device": "cpu"},
    }
    return Experiment(Config.model_validate(settings), folder)


def said(trees: Any) -> list[Any]:
    return [(tree.item, [dict(node.actions) for node in tree.nodes]) for tree in trees]


def test_items_come_in_shuffled_passes_and_none_twice_in_one(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = experiment(model, tmp_path / "run", monkeypatch).experience
    drawn = [item for n in (0, 2, 4) for item in episodes.draw(TrainingPoint(n // 2, n, 0.0))]
    assert sorted(drawn[:3]) == sorted(drawn[3:]) == sorted(episodes.items)
    # the same place in the sequence is the same item, wherever a run begins
    assert episodes.draw(TrainingPoint(0, 1, 0.0)) == drawn[1:3]


def test_now_grows_what_the_next_update_learns_from_and_nothing_before_it_is_asked(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = experiment(model, tmp_path / "run", monkeypatch)
    wanted = run.trees()
    trees, counts = run.experience.take(TrainingPoint(0, 0, 0.0))
    assert type(run.experience) is Experience
    assert said(trees) == said(wanted)
    assert counts.joint_actions == sum(len(tree.nodes) - 1 for tree in trees)


def requested(run: Experiment, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of requests in the calls of its generators from now on."""
    sizes = list[int]()
    for generator in run.team.engines:

        def watched(requests: Any, generate: Any = generator.generate) -> Any:
            sizes.append(len(requests))
            return generate(requests)

        monkeypatch.setattr(generator, "generate", watched)
    return sizes


def test_at_once_bounds_the_episodes_that_grow_together(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown, sizes = [], []
    for name, train in (("all", {}), ("waves", {"at_once": 1})):
        run = experiment(model, tmp_path / name, monkeypatch, **train)
        sizes.append(requested(run, monkeypatch))
        grown.append(run.experience.take(TrainingPoint(0, 0, 0.0)))
    tokens = [
        [[a.tokens for n in tree.nodes for a in n.actions.values()] for tree in trees]
        for trees, _ in grown
    ]
    assert tokens[0] == tokens[1]
    assert [[tree.episode for tree in trees] for trees, _ in grown] == [[0, 1]] * 2
    counts = [(one.generations, one.joint_actions, one.tokens) for _, one in grown]
    assert counts[0] == counts[1]
    # two episodes, one after the other
    assert (max(sizes[1]), len(sizes[1])) == (max(sizes[0]) / 2, 2 * len(sizes[0]))
