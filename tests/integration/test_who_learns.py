"""Whose actions enter an update: those with an advantage, said by players whose models learn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from credited import credited
from hand_gradients import reinforce
from local_learners import Recorder, local_learner, relative
from tiny import Notes, cast, play, register, save_model, tiny_model
from updates import new_updater

from colearn.config import Config, OptimizerSettings
from colearn.contract import Advantage, AgentValues, Episodes, NetworkKey, NodeAdvantages, Parts
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.agents import Program
from colearn.rollout.agents.cast.seats import Swap
from colearn.rollout.agents.programs import Says
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater
from colearn.training.update.updater import Updater

SAME = 1e-6
"""Relative gap of gradients in float64."""


@dataclass(frozen=True)
class Numbered(Advantage):
    """An action is worth 1 more than the number of the node it leads to, and those in `left_out`,
    (node, agent) each, have no advantage."""

    left_out: Collection[tuple[int, str]] = ()

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        return [
            tuple(
                {
                    agent: 1.0 + node.index
                    for agent in node.actions
                    if (node.index, agent) not in self.left_out
                }
                for node in episode.nodes
            )
            for episode in episodes
        ]


def updater_of(
    team: Any, advantage: Advantage, *, loss: PolicyGradient | None = None, **settings: Any
) -> tuple[Updater, dict[str, Recorder]]:
    learners = {
        name: Recorder(name, team.network(name), OptimizerSettings(learning_rate=1e-3))
        for name in team.voices
    }
    parts = Parts(
        rollout=Chain(), credit=SharedReward(), advantage=advantage, loss=loss or PolicyGradient()
    )
    return new_updater(parts, learners, **settings), learners


# --- advantages of some actions ------------------------------------------------------------------


@pytest.mark.parametrize("minibatch", [None, 1000], ids=["one step", "old ones evaluated first"])
@pytest.mark.parametrize("ratio", ["sequence", "token"])
def test_an_action_without_an_advantage_counts_as_if_it_were_not_in_the_batch(
    minibatch: int | None, ratio: Any
) -> None:
    team = cast(("ada",), dtype=torch.float64)
    trees = play(Notes(agents=1, horizon=3, items=2), team)
    short = [trees[0], replace(trees[1], nodes=trees[1].nodes[:-1])]
    loss = PolicyGradient(ratio=ratio)
    # only the second tree's last action is missing; the first tree keeps all three
    left_out = _Of(trees[1].episode, {(3, "ada")})
    epochs = 1 if minibatch is None else 2
    whole, learners = updater_of(team, left_out, loss=loss, minibatch=minibatch, epochs=epochs)
    metrics = whole.update(trees, 0)
    cut, others = updater_of(team, Numbered(), loss=loss, minibatch=minibatch, epochs=epochs)
    expected = cut.update(short, 0)
    assert relative(learners["ada"].recorded, others["ada"].recorded) < SAME
    assert metrics == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert metrics["advantage/actions"] == 5.0
    everything, all_learners = updater_of(team, Numbered(), loss=loss)
    everything.update(trees, 0)
    assert relative(learners["ada"].recorded, all_learners["ada"].recorded) > 1e-2


@dataclass(frozen=True)
class _Of(Advantage):
    """`Numbered`, with actions left out in one episode."""

    episode: int
    left_out: Collection[tuple[int, str]]

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        return [
            Numbered(self.left_out if one.episode == self.episode else ())([one])[0]
            for one in episodes
        ]


def test_actions_in_the_middle_of_a_tree_can_be_left_out() -> None:
    team = cast(shared=False, dtype=torch.float64)
    trees = play(Notes(horizon=2, items=2), team, KaryTree(2))
    part = Numbered({(1, "ada"), (4, "ada"), (2, "ben")})
    updater, learners = updater_of(team, part)
    metrics = updater.update(trees, 0)
    advantages = part(credited(trees))
    for number, agent in enumerate(("ada", "ben")):
        model = tiny_model(seed=number, dtype=torch.float64)
        expected = reinforce(model, trees, agent, advantages)
        assert relative(expected, learners[agent].recorded) < 1e-5
    # two trees of 2 + 4 joint actions of two agents, three of them left out in each
    assert metrics["advantage/actions"] == 2 * (6 * 2 - 3)


@pytest.mark.parametrize(("idle", "other"), [("ada", "ben"), ("ben", "ada")])
def test_a_model_without_any_advantage_does_not_step(idle: str, other: str) -> None:
    team = cast(shared=False)
    trees = play(Notes(horizon=1), team)
    updater, learners = updater_of(team, Numbered({(1, idle)}))
    metrics = updater.update(trees, 0)
    assert learners[other].recorded is not None and learners[idle].recorded is None
    assert not any(key.startswith(f"{idle}/") for key in metrics)


# --- casts ---------------------------------------------------------------------------------------


def test_who_sat_in_a_seat_learns_from_what_was_said_there() -> None:
    team = cast(shared=False, dtype=torch.float64)
    task = Notes(horizon=2, items=2)
    trees, _ = grow(task, task.items("train"), team.players, Chain(), seed=0, cast=Swap())
    assert [dict(tree.cast) for tree in trees] == [{}, {"ada": "ben", "ben": "ada"}]
    updater, learners = updater_of(team, RawReturn())
    updater.update(trees, 0)
    by_tree = RawReturn()(credited(trees))
    for number, agent in enumerate(("ada", "ben")):
        other = "ben" if agent == "ada" else "ada"
        halves = [
            reinforce(tiny_model(seed=number, dtype=torch.float64), [tree], seat, [advantages])
            for tree, seat, advantages in zip(trees, (agent, other), by_tree, strict=True)
        ]
        mean = {name: (halves[0][name] + halves[1][name]) / 2 for name in halves[0]}
        assert relative(mean, learners[agent].recorded) < 1e-5


def test_what_a_program_says_never_enters_an_update() -> None:
    team = cast(shared=False, dtype=torch.float64)
    task = Notes(horizon=2, items=2)
    players = team.players | {"ben": Program(Says(text="the elder"))}
    trees, _ = grow(task, task.items("train"), players, Chain(), seed=0)
    assert all(node.actions["ben"].text == "the elder" for t in trees for node in t.nodes[1:])
    updater, learners = updater_of(team, RawReturn())
    del updater.actors.specs["ben"]  # type: ignore[attr-defined] # a program has none
    metrics = updater.update(trees, 0)
    assert learners["ben"].recorded is None
    assert not any(key.startswith("ben/") for key in metrics)
    advantages = RawReturn()(credited(trees))
    expected = reinforce(tiny_model(seed=0, dtype=torch.float64), trees, "ada", advantages)
    assert relative(expected, learners["ada"].recorded) < 1e-5


@pytest.fixture
def settings(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    register(monkeypatch, notes="tiny:Notes")
    return {
        "task": {"name": "notes", "horizon": 2, "items": 2},
        "algorithm": {"name": "mareinforce", "rollout": {"k": 2}},
        "models": {"*": {"path": save_model(tmp_path), "learning_rate": 1e-2}},
        "agents": {
            "ada": {"sampling": {"max_tokens": 4}},
            "ben": {"program": {"name": "says", "text": "oak"}},
        },
        "run": {"device": "cpu"},
    }


def test_a_config_seats_a_program_and_trains_the_others(settings: dict[str, Any]) -> None:
    parts = load_team(Config.model_validate(settings))
    assert set(parts.learners) == {NetworkKey("actor", "ada")}
    trees, _ = grow(
        parts.run.task,
        parts.run.task.items("train"),
        parts.players,
        parts.run.parts.rollout,
        seed=0,
    )
    assert {n.actions["ben"].text for t in trees for n in t.nodes[1:]} == {"oak"}
    updater = build_updater(parts)
    assert updater is not None
    before = {k: v.clone() for k, v in parts.learners[NetworkKey("actor", "ada")].weights().items()}
    metrics = updater.update(trees, 0)
    after = parts.learners[NetworkKey("actor", "ada")].weights()
    assert any(not torch.equal(after[key], before[key]) for key in before)
    assert not any(key.startswith("ben/") for key in metrics)
    again, _ = grow(parts.run.task, parts.run.task.items("train"), parts.players, Chain(), seed=1)
    versions = {agent: again[0].nodes[1].actions[agent].version for agent in ("ada", "ben")}
    assert versions == {"ada": 1, "ben": 0}


def test_a_model_that_does_not_train_says_nothing_of_how_far_the_others_have_moved() -> None:
    """Ada is at 0, m, ... before her steps and Ben, who has no advantage, nowhere: at three
    quarters of m a third epoch is too far. With Ben at 0 the mean would be m / 2."""

    def updated(**settings: Any) -> dict[str, float]:
        team = cast(shared=False)
        trees = play(Notes(items=1), team)
        idle = Numbered({(node.index, "ben") for node in trees[0].nodes})
        parts = Parts(rollout=Chain(), credit=SharedReward(), advantage=idle, loss=PolicyGradient())
        rate = OptimizerSettings(learning_rate=1e-2)
        actors = {
            a: local_learner(a, team.network(a), rate, token_budget=4096) for a in team.voices
        }
        return new_updater(parts, actors, **settings).update(trees, 0)

    far = 2 * updated(epochs=2)["ada/approx_kl"]
    assert far > 0
    assert updated(epochs=3, target_kl=0.75 * far)["optimizer_steps"] == 2
    assert updated(epochs=3, target_kl=1.25 * far)["optimizer_steps"] == 3
