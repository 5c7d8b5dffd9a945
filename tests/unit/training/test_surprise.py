"""A critic's surprise at the nodes of a tree, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trees import chain, tree

from colearn.contract import Parts
from colearn.contract.rows import Row
from colearn.methods.advantage.gae import GAE
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.methods.values.critics import Critics
from colearn.methods.values.item_means import ItemMeans
from colearn.rollout.forked_chain import ForkedChain
from colearn.training.update.surprise import Surprise, surprises
from tests.helpers.credited import credited


def test_surprise_is_the_size_of_the_td_error_of_the_joint_action() -> None:
    """gamma = 0.5: 1 + 0.5 * 4 - 2 = 1; 0 + 0.5 * 1 - 4 = -3.5; 3 + 0 - 1 = 2."""
    episodes = credited([chain([1.0, 0.0, 3.0], agents=("ada",))], discount=0.5)
    assert surprises(episodes, [{"ada": (2.0, 4.0, 1.0, None)}]) == [
        {(): 1.0, (0,): 3.5, (0, 0): 2.0}
    ]


def test_of_several_agents_the_most_surprised_counts() -> None:
    """ada: 1 - 2 = -1; ben: 1 - 0.5 = 0.5."""
    episodes = credited([chain([1.0], agents=("ada", "ben"))])
    assert surprises(episodes, [{"ada": (2.0, None), "ben": (0.5, None)}]) == [{(): 1.0}]
    assert surprises(episodes, [{"ben": (0.5, None)}]) == [{(): 0.5}]


def test_of_several_joint_actions_the_most_surprising_counts() -> None:
    """5 - 2 = 3 and 1 - 2 = -1."""
    episodes = credited([tree([(0, 5.0), (0, 1.0)], agents=("ada",))])
    assert surprises(episodes, [{"ada": (2.0, None, None)}]) == [{(): 3.0}]


def test_an_unscored_joint_action_has_no_surprise() -> None:
    unscored: Any = None
    episodes = credited([chain([1.0, unscored], agents=("ada",))])
    assert surprises(episodes, [{"ada": (2.0, 4.0, None)}]) == [{(): 3.0}]


class Residual:
    """A network that adds a residual of 100 to every baseline."""

    def evaluate(self, rows: Sequence[Row]) -> list[Any]:
        return [
            SimpleNamespace(
                values=torch.tensor([100.0] * len(row.marks))
                + torch.tensor(row.baselines or [0.0] * len(row.marks))
            )
            for row in rows
        ]


def surprise(item_means: ItemMeans | None) -> Surprise:
    parts = Parts(
        rollout=ForkedChain(),
        credit=SharedReward(),
        advantage=GAE(),
        loss=PolicyGradient(),
        critic=Centralized(),
    )
    learners: Any = {"team": Residual()}
    critics = Critics(critic=Centralized(), learners=learners, tokenize=str.encode, max_length=4096)
    return Surprise(parts=parts, critics=critics, item_means=item_means)


def test_a_network_alone_is_read_as_it_is() -> None:
    """3 + 100 - 100 = 3; 1 - 100 = -99."""
    assert surprise(None)([chain([3.0, 1.0])]) == [{(): 3.0, (0,): 99.0}]


def test_item_means_of_earlier_iterations_are_part_of_the_values() -> None:
    """Returns 4 and 6 at turn 0, 1 and 3 at turn 1: means 5 and 2. A network that has predicted
    nothing yet has no share. 3 + 2 - 5 = 0; 1 - 2 = -1."""
    means, earlier = ItemMeans(), [chain([3.0, 1.0]), chain([3.0, 3.0])]
    means.offsets(Centralized(), credited(earlier))
    (found,) = surprise(means)([chain([3.0, 1.0])])
    assert found == {(): pytest.approx(0.0), (0,): pytest.approx(1.0)}
