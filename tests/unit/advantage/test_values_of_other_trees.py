"""Values belong to the episodes, and to the nodes, that they are given with."""

from __future__ import annotations

from typing import Any

import pytest
from credited import credited
from trees import chain

from colearn.contract import CounterfactualValues, TokenValues
from colearn.methods.advantage.counterfactual import CounterfactualBaseline
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.q_value import QValue
from colearn.methods.advantage.token_gae import TokenGAE

EPISODES = credited([chain([1.0, 2.0], agents=("ada",)), chain([3.0, 4.0], agents=("ada",))])
"""Three nodes each."""
OF_STATES = (1.0, 2.0, None)
OF_ACTIONS = (None, 1.0, 2.0)
COUNTERFACTUAL = CounterfactualValues(OF_ACTIONS, ((), (0.5,), (0.5,)))
OF_TOKENS = TokenValues(OF_STATES, ((), (), ()))


@pytest.mark.parametrize(
    ("advantage", "values"),
    [
        (GAE(), OF_STATES),
        (QValue(), OF_ACTIONS),
        (CounterfactualBaseline(), COUNTERFACTUAL),
        (TokenGAE(), OF_TOKENS),
    ],
    ids=["gae", "q", "counterfactual", "tokens"],
)
def test_values_of_fewer_episodes_than_there_are_are_an_error(advantage: Any, values: Any) -> None:
    both = [{"ada": values}] * 2
    assert len(advantage(EPISODES, both)) == len(advantage.targets(EPISODES, both)) == 2
    for read in (advantage, advantage.targets):
        with pytest.raises(ValueError, match="shorter"):
            read(EPISODES, both[:1])


@pytest.mark.parametrize(
    ("advantage", "values"),
    [
        (GAE(), (*OF_STATES, None)),
        (QValue(), (*OF_ACTIONS, None)),
        (CounterfactualBaseline(), CounterfactualValues((*OF_ACTIONS, None), ((),) * 4)),
    ],
    ids=["gae", "q", "counterfactual"],
)
def test_values_of_more_nodes_than_a_tree_has_have_no_targets(advantage: Any, values: Any) -> None:
    with pytest.raises(ValueError, match="shorter"):
        advantage.targets(EPISODES[:1], [{"ada": values}])
