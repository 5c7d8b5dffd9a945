"""Advantages and critic targets against torchrl, on sampled episodes read by a real critic.

torchrl sees all episodes as one row of time: of different lengths, `done` in the middle, some of
them cut while not `terminated`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from credited import credited
from local_learners import local_learner
from tiny import Notes, cast, play
from torch import Tensor
from updates import new_critics, value_network

from colearn.config import OptimizerSettings
from colearn.methods.advantage.gae import GAE
from colearn.methods.critic.centralized import Centralized

tensordict = pytest.importorskip("tensordict", reason="torchrl is the reference here")
postprocs = pytest.importorskip("torchrl.data.postprocs", reason="it is the reference here")
functional = pytest.importorskip("torchrl.objectives.value.functional", reason="and so is this")

CLOSE = 1e-5
GAMMA = 0.9


@dataclass
class Episodes:
    """Trees and values as this library has them, and the same as torchrl's [1, T, 1] tensors."""

    trees: list
    values: list
    value: Tensor
    next_value: Tensor
    reward: Tensor
    done: Tensor
    terminated: Tensor

    @property
    def after(self) -> dict[str, Tensor]:
        return {
            "next_state_value": self.next_value,
            "reward": self.reward,
            "done": self.done,
            "terminated": self.terminated,
        }

    def ours(self, part) -> tuple[Tensor, Tensor]:
        """[1, T, 1] advantages and critic targets of one agent."""
        episodes = credited(self.trees, GAMMA)
        advantages = part(episodes, self.values)
        targets = part.targets(episodes, self.values)
        return (
            row([node["ada"] for tree in advantages for node in tree[1:]]),
            row([t for tree in targets for t in tree["ada"][:-1]]),
        )


def row(numbers, dtype=torch.float32):
    return torch.tensor(numbers, dtype=dtype)[None, :, None]


def critic():
    network = value_network(5, dtype=torch.float32)
    learner = local_learner("team", network, OptimizerSettings(), token_budget=4096)
    return new_critics(Centralized(), {"team": learner})


@pytest.fixture(scope="module")
def episodes():
    team = cast()
    trees = play(Notes(ends=True, horizon=6), team) + play(Notes(horizon=6), team)
    trees += play(Notes(horizon=4), team, seed=1)
    # every third episode is cut before its last turn
    trees = [
        replace(tree, nodes=tree.nodes[:-1]) if number % 3 == 0 and len(tree.nodes) > 2 else tree
        for number, tree in enumerate(trees)
    ]
    values = critic().values(trees)
    before, after, reward, done, terminated = [], [], [], [], []
    for tree, by_agent in zip(trees, values, strict=True):
        for node in tree.nodes[1:]:
            before.append(by_agent["ada"][node.parent])
            # what stands after the end must not be read
            after.append(55.0 if node.terminal else by_agent["ada"][node.index])
            reward.append(node.reward)
            done.append(node is tree.nodes[-1])
            terminated.append(node.terminal)
    flags = [row(flag, torch.bool) for flag in (done, terminated)]
    return Episodes(trees, values, row(before), row(after), row(reward), *flags)


def gap(one, other):
    assert one.shape == other.shape
    return float((one - other).abs().max())


def test_these_episodes_differ_in_length_and_in_how_they_end(episodes):
    assert len({len(tree.nodes) for tree in episodes.trees}) > 3
    assert episodes.done[0, :-1].any()
    assert (episodes.done & ~episodes.terminated).any()
    assert episodes.terminated.any()
    assert float(episodes.value.std()) > 0.3


@pytest.mark.parametrize("lam", [0.8, 1.0])
def test_gae_is_that_of_torchrl(episodes, lam):
    expected = functional.generalized_advantage_estimate(
        GAMMA, lam, state_value=episodes.value, **episodes.after
    )
    ours = episodes.ours(GAE(lam=lam))
    assert gap(ours[0], expected[0]) < CLOSE
    assert gap(ours[1], expected[1]) < CLOSE


def test_the_td_error_and_its_target_are_td0_of_torchrl(episodes):
    advantages, targets = episodes.ours(GAE())
    expected = functional.td0_advantage_estimate(
        GAMMA, state_value=episodes.value, **episodes.after
    )
    assert gap(advantages, expected) < CLOSE
    assert gap(targets, functional.td0_return_estimate(GAMMA, **episodes.after)) < CLOSE


@pytest.mark.parametrize("n", [2, 3])
def test_the_n_step_target_is_that_of_torchrls_multi_step(episodes, n):
    """torchrl sums n rewards and names the observation after them; V there is looked up."""
    frames = tensordict.TensorDict(
        {
            "next": {
                "reward": episodes.reward[..., 0],
                "done": episodes.done[..., 0],
                "terminated": episodes.terminated[..., 0],
                "value": episodes.next_value * ~episodes.terminated,
            }
        },
        batch_size=episodes.done.shape[:2],
    )
    result = postprocs.MultiStep(gamma=GAMMA, n_steps=n)(frames)
    future = result["gamma"][..., None] * result["next", "value"]
    expected = result["next", "reward"][..., None] + future
    advantages, targets = episodes.ours(GAE(lam=1.0, steps=n))
    assert gap(targets, expected) < CLOSE
    assert gap(advantages, expected - episodes.value) < CLOSE
