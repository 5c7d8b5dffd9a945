"""A run's critics as folders: what plain transformers and `load_critic` read from them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import register, save_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import colearn
from colearn.config import build_task, load_config, resolve
from colearn.contract import AgentValues
from colearn.contract.checked_task import item_name
from colearn.contract.types import Tree
from colearn.deploy.export import export_critics, verify
from colearn.deploy.export.critics import _critics
from colearn.entry.cli import main
from colearn.errors import ConfigError
from colearn.methods.critic.stream import piece_tag
from colearn.methods.values.critic_folder import read_critic
from colearn.runs.record import RunFolder
from colearn.runs.record.transcript import transcript
from colearn.training.load_team import load_team
from colearn.training.loop import Experiment
from colearn.training.study.held_out import held_out_episodes
from colearn.training.update.build_updater import build_updater

LORA = {"rank": 4, "alpha": 32.0}


@pytest.fixture(scope="module", autouse=True)
def _notes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch, notes="tiny:Notes")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


def settings(model: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": {"name": "notes", "horizon": 2, "items": 3},
        "algorithm": {"name": "collm_cc", "value_loss": {"rescale": True}},
        "models": {"*": {"path": model, "learning_rate": 3e-2, "lora": LORA}},
        "agents": {"*": {"sampling": {"max_tokens": 6}}},
        "critic": {"path": model, "learning_rate": 3e-2, "baseline": "none", "lora": LORA},
        "train": {"environment_steps": 8, "episodes": 2},
        "run": {"device": "cpu", "checkpoint_every": 1},
    } | changes


def train(folder: Path, model: str, **changes: Any) -> Path:
    Experiment(load_config(settings(model, **changes)), folder).run()
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    return train(tmp_path_factory.mktemp("runs") / "full", model)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Path:
    return export_critics(run, tmp_path_factory.mktemp("kept"))["team"]


Played = tuple[list[Tree[Any]], list[AgentValues]]


def played(run: Path) -> Played:
    """Held-out episodes, and the values that the run's own critic gives them."""
    folder = RunFolder(run)
    checkpoint = folder.checkpoints.choose().path
    trees = held_out_episodes(folder.config(), checkpoint)
    team = load_team(folder.config())
    team.load(checkpoint)
    updater = build_updater(team)
    assert updater is not None and updater.critic is not None
    return trees, updater.critic.values(trees)


@pytest.fixture(scope="module")
def of_kept(run: Path) -> Played:
    return played(run)


def streams(tree: Tree[Any]) -> list[list[str]]:
    """The pieces of a central critic's stream before each joint action, of a task whose agents see
    different texts."""
    read: list[str] = []
    told = []
    for node in tree.nodes[:-1]:
        read = [*read, *(piece_tag(a, node.turn - 1) + x.text for a, x in node.actions.items())]
        read = [*read, *(piece_tag(a, node.turn) + o.text for a, o in node.observations.items())]
        if node.global_info:
            read = [*read, piece_tag("global", node.turn) + node.global_info]
        if node.privileged_info:
            read = [*read, piece_tag("hidden", node.turn) + node.privileged_info]
        told.append(read)
    return told


def by_transformers(folder: Path, trees: list[Tree[Any]]) -> list[float]:
    """The values before each joint action, as the card says that they are computed without
    colearn."""
    head = json.loads((folder / "critic.json").read_text())
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    values = []
    for pieces in (pieces for tree in trees for pieces in streams(tree)):
        ids = [i for p in pieces for i in tokenizer.encode(p, add_special_tokens=False)]
        with torch.no_grad():
            logit = model(torch.tensor([ids])).logits.item()
        values.append(head["centre"] + head["deviation"] * (logit + head["bias"]))
    return values


def of_run(values: list[AgentValues]) -> list[float]:
    return [value for by_agent in values for value in by_agent["ada"] if value is not None]


def test_plain_transformers_reads_the_run_s_values(kept: Path, of_kept: Played) -> None:
    """Of a critic whose adapter was merged."""
    trees, values = of_kept
    expected = of_run(values)
    assert len(expected) == 6 and max(expected) - min(expected) > 1e-3
    assert by_transformers(kept, trees) == pytest.approx(expected, abs=1e-5)


def test_a_loaded_critic_scores_a_transcript_as_the_run_did(
    run: Path, kept: Path, of_kept: Played
) -> None:
    trees, values = of_kept
    critic = colearn.load_critic(kept, device="cpu")
    built = build_task(RunFolder(run).config())
    for tree, by_agent in zip(trees, values, strict=True):
        told = critic.score(json.loads(json.dumps(transcript(built, tree))))
        for agent in ("ada", "ben"):
            assert told[agent] == pytest.approx(by_agent[agent][:-1], abs=1e-5)


def test_each_decentral_critic_is_kept_and_scores_its_own_agent(model: str, tmp_path: Path) -> None:
    critic = {"path": model, "learning_rate": 3e-2, "baseline": "none"}
    run = train(tmp_path / "run", model, algorithm={"name": "collm_dc"}, critic=critic)
    folders = export_critics(run, tmp_path / "out")
    assert sorted(folders) == ["ada", "ben"]
    trees, values = played(run)
    for agent, folder in folders.items():
        again = colearn.load_critic(folder, device="cpu").values(trees)
        assert [list(one) for one in again] == [[agent]] * len(trees)
        for mine, theirs in zip(again, values, strict=True):
            assert mine[agent][:-1] == pytest.approx(theirs[agent][:-1], abs=1e-5)


def test_a_critic_of_joint_actions_scores_each_turn_s_action(model: str, tmp_path: Path) -> None:
    algorithm = {"name": "coma", "value_loss": {"rescale": True, "frozen_targets": True}}
    run = train(tmp_path / "run", model, algorithm=algorithm)
    folder = export_critics(run, tmp_path / "out")["team"]
    trees, values = played(run)
    critic = colearn.load_critic(folder, device="cpu")
    built = build_task(RunFolder(run).config())
    told = critic.score(transcript(built, trees[0]))
    assert told["ben"] == pytest.approx(values[0]["ben"][1:], abs=1e-5)


def test_a_critic_with_means_by_item_is_kept_with_them(model: str, tmp_path: Path) -> None:
    """Its baseline, plus its share of the network's value, as its card computes them."""
    critic = {"path": model, "learning_rate": 3e-2, "baseline": "item"}
    run = train(tmp_path / "run", model, critic=critic)
    folder = export_critics(run, tmp_path / "out")["team"]
    trees, networks = played(run)
    card = (folder / "README.md").read_text()
    code = card.split("```python")[-1].split("```")[0]
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(code, names)
    for tree, network in zip(trees, networks, strict=True):
        (by_agent,) = colearn.load_critic(folder, device="cpu").values([tree])
        means = [names["baseline"]("team", turn, item_name(tree.item)) for turn in (0, 1)]
        shares = [names["share"]("team", turn) for turn in (0, 1)]
        parts = zip(means, shares, network["ada"][:-1], strict=True)
        expected = [mean + share * value for mean, share, value in parts]
        assert by_agent["ada"][:-1] == pytest.approx(expected, abs=1e-5)
        assert min(map(abs, means)) > 1e-3
        assert max(share * abs(v) for share, v in zip(shares, network["ada"], strict=False)) > 1e-3


def test_the_card_says_what_it_explains_of_held_out_returns(run: Path, kept: Path) -> None:
    manifest = read_critic(kept, "kept")
    assert [one.turn for one in manifest.explained] == [0, 1]
    assert {one.values for one in manifest.explained} == {6}  # three items, two agents
    card = (kept / "README.md").read_text()
    assert "| turn | values | explained variance | R^2, with bias |" in card
    assert f"trained on | {manifest.joint_actions} joint actions" in card
    verify(kept)


def test_the_command_writes_critics_instead_of_agents(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["colearn", "export", str(run), "--critics", "--to", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert [path.name for path in tmp_path.iterdir()] == ["critic-team"]


def test_a_run_without_a_critic_has_none_to_keep(model: str) -> None:
    algorithm = {"name": "magrpo", "rollout": {"k": 2}}
    config = load_config(settings(model, algorithm=algorithm, critic=None))
    trained: Any = SimpleNamespace(
        run=resolve(config, agents=("ada", "ben")), folder=SimpleNamespace(path="run")
    )
    with pytest.raises(ConfigError, match=r"^--critics: run has no critic of its own; magrpo trai"):
        _critics(trained)


def test_damaged_folders_are_one_line(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no critic in .*critic\.json"):
        colearn.load_critic(tmp_path)
    for name in ("critic.json", "value_head.safetensors", "model.safetensors"):
        copy = tmp_path / name
        copy.mkdir()
        for path in kept.iterdir():
            content = path.read_bytes()
            (copy / path.name).write_bytes(content[:-40] if path.name == name else content)
        with pytest.raises(ConfigError) as told:
            colearn.load_critic(copy, device="cpu")
        assert str(told.value).startswith(f"{copy}: ") and "\n" not in str(told.value)


def test_a_transcript_of_another_team_is_one_line(kept: Path) -> None:
    critic = colearn.load_critic(kept, device="cpu")
    episode = {"turns": [{"observations": {"eve": "hi"}, "actions": {"eve": "ho"}}]}
    with pytest.raises(ConfigError, match="knows no agent 'eve'; it was trained with ada, ben"):
        critic.score(episode)
