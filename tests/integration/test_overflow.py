"""Histories longer than their model: the episode ends and is counted, or the run stops."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from gateway_programs import REFUSED, gateway
from rich.console import Console
from tiny import Notes, cast, register, save_model
from transformers import AutoConfig

from colearn.config import load_config
from colearn.errors import ConfigError
from colearn.estimate import estimate
from colearn.estimate.lengths import overflows
from colearn.estimate.table import estimate_tables
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents import AgentSpec
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from colearn.training.evaluation.played import mean_outcomes
from colearn.training.loop import Experiment

HORIZON = 6


def played(positions: int, *, shape=None, truncates: bool = True, window=None, order="lockstep"):
    """Trees of a team whose models read `positions` tokens."""
    team, task = cast(window=window), Notes(horizon=HORIZON, items=2)
    players = {
        name: replace(player, spec=replace(player.spec, positions=positions), truncates=truncates)
        for name, player in team.players.items()
    }
    trees, _ = grow(task, task.items("train"), players, shape or Chain(), seed=3, order=order)
    return trees


def lengths(tree, agent: str) -> list[int]:
    """Tokens of an agent's history at each leaf, its last action included."""
    return [len(tree.history(leaf.index, agent).tokens) for leaf in tree.leaves()]


@pytest.mark.parametrize("shape", [Chain(), KaryTree(k=2)])
@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_no_history_is_longer_than_its_model_reads(shape, order):
    for tree in played(80, shape=shape, order=order):
        assert all(n <= 80 for agent in tree.agents for n in lengths(tree, agent))
        ends = [node for node in tree.nodes if node.terminal]
        assert ends and all(node.overlong in tree.agents for node in ends)
        assert max(node.turn for node in ends) < HORIZON


def test_a_window_does_not_shorten_a_history():
    assert all(tree.nodes[-1].overlong for tree in played(80, window=64))


def test_an_answer_has_the_tokens_that_its_history_leaves():
    [tree, _] = played(1000)
    first = len(tree.nodes[0].observations["ada"].tokens)
    [short, _] = played(first + 3)
    assert len(short.nodes[1].actions["ada"].tokens) <= 3 < len(tree.nodes[1].actions["ada"].tokens)
    assert short.nodes[1].actions["ada"].finish == "length"


def test_an_episode_that_fits_is_the_same_with_and_without_a_limit():
    assert played(1000) == played(10**9)


def test_the_share_of_such_episodes_is_a_metric():
    trees = [*played(80)[:1], *played(1000)]
    outcomes = mean_outcomes(trees, frozenset({"team"}), SharedReward())
    assert outcomes["overflow"] == pytest.approx(1 / 3)


def test_by_the_setting_the_run_stops_with_one_line():
    message = r"^agents\.(ada|ben)\.overflow: a history of \d+ tokens leaves no room .* reads 80;"
    with pytest.raises(ConfigError, match=message):
        played(80, truncates=False)


def short_model(folder: Path, positions: int) -> str:
    path = save_model(folder)
    config = AutoConfig.from_pretrained(path)
    config.max_position_embeddings = positions
    config.save_pretrained(path)
    return path


def config_of(folder: Path, overrides=(), *, actor: int = 80):
    settings = {
        "task": {"name": "notes", "horizon": HORIZON, "items": 2},
        "algorithm": {"name": "collm_cc"},
        "models": {"*": {"path": short_model(folder / "actor", actor), "lora": {"rank": 2}}},
        "agents": {"*": {"sampling": {"max_tokens": 8}}},
        "critic": {"path": save_model(folder / "critic", "llama")},
        "train": {"environment_steps": 4, "episodes": 2},
        "evaluation": {"episodes": 1},
        "run": {"device": "cpu"},
    }
    return load_config(settings, overrides)


@pytest.fixture(autouse=True)
def notes(monkeypatch):
    register(monkeypatch, notes="tiny:Notes")


def test_training_and_evaluation_count_them(tmp_path):
    Experiment(config_of(tmp_path), tmp_path / "run").run()
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert {line["kind"]: line["metrics"]["overflow"] for line in lines} == {
        "update": 1.0,
        "evaluation": 1.0,
    }


@pytest.mark.parametrize(
    ("limit", "then"), [("truncate", "ends the episode"), ("error", "stops the run")]
)
def test_a_history_that_a_model_cannot_read_is_a_warning_of_the_dry_run(limit, then):
    """80 tokens at the second turn; ben's model reads one more."""
    played = SimpleNamespace(lengths=lambda: [{"ada": (9, 8), "ben": (9, 8)}, {"ada": (80, 8)}])
    specs = {"ada": AgentSpec(positions=80), "ben": AgentSpec(positions=10)}
    warnings = overflows([played], specs, {"ada": limit, "ben": limit})
    assert warnings.keys() == {"agents.ada.overflow"}
    told = f"a history may reach 80 tokens and its model reads 80: what does not fit {then};"
    assert warnings["agents.ada.overflow"].startswith(told)


def test_a_dry_run_prints_the_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(Notes, "legal_action", lambda *_: "owl")
    small = ["task.horizon=2", "algorithm.name=mareinforce", "critic=null"]
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(estimate_tables(estimate(config_of(tmp_path, small, actor=40))))
    assert "agents.ada.overflow: a history may reach" in console.export_text()


def test_a_program_whose_context_is_too_long_is_refused_and_its_episode_ends():
    task, team = gateway("talks", horizon=20), cast(("one", "two"))
    players = {
        name: replace(player, spec=replace(player.spec, positions=80))
        for name, player in team.players.items()
    }
    [tree], _ = grow(task, ["owl"], players, Chain(), seed=0)
    assert tree.nodes[-1].overlong == "one" and tree.nodes[-1].turn < 20
    assert task.server.at(tree.nodes[-1].state.episode) is None, "the episode is closed"
    task.close()
    assert [error["code"] for error in REFUSED] in ([], ["context_length_exceeded"])
