"""GAE over tokens, by hand and against torchrl."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from credited import credited
from trees import chain, tree

from colearn.contract import TokenValues
from colearn.contract.types import Action, Tree
from colearn.methods.advantage.token_gae import TokenGAE
from colearn.methods.credit.mixed import Mixed


def worded(made: Tree[Any], lengths: dict[int, dict[str, int]]) -> Tree[Any]:
    """The tree with actions of so many tokens, by node and agent."""
    nodes = [
        replace(
            node,
            actions={a: Action("", (2,) * lengths[node.index][a]) for a in node.actions},
        )
        for node in made.nodes
    ]
    return replace(made, nodes=tuple(nodes))


def one_call() -> tuple[Any, TokenValues]:
    """Three tokens, reward 2, V = 0.5, 1.0, 1.5."""
    (episode,) = credited([worded(chain([2.0], agents=("ada",)), {1: {"ada": 3}})])
    return episode, TokenValues((0.5, None), ((), (1.0, 1.5)))


def test_at_one_and_one_every_token_gets_the_return_less_its_value():
    episode, values = one_call()
    ((_, after),) = TokenGAE()([episode], [{"ada": values}])
    assert after["ada"] == pytest.approx((1.5, 1.0, 0.5))
    (targets,) = TokenGAE().targets([episode], [{"ada": values}])
    assert targets["ada"].by_node == (2.0, None)
    assert targets["ada"].inside == ((), (2.0, 2.0))


def test_within_a_call_the_recursion_is_that_of_the_paper():
    """delta = 0.9*1 - 0.5, 0.9*1.5 - 1, 2 - 1.5; A_l = delta_l + 0.45 A_{l+1}."""
    episode, values = one_call()
    part = TokenGAE(gamma=0.9, lam=0.5)
    ((_, after),) = part([episode], [{"ada": values}])
    assert after["ada"] == pytest.approx((0.4 + 0.45 * 0.575, 0.35 + 0.45 * 0.5, 0.5))
    (targets,) = part.targets([episode], [{"ada": values}])
    assert targets["ada"].by_node[0] == pytest.approx(0.5 + 0.4 + 0.45 * 0.575)
    assert targets["ada"].inside[1] == pytest.approx((1.0 + 0.575, 1.5 + 0.5))


ACTING = {0: ("ada",), 1: ("ben",), 2: ("ada",)}


def two_calls(discount: float) -> tuple[Any, dict[str, TokenValues]]:
    """Ada, Ben, Ada: rewards 0, 0.3, 1 for the team; Ada speaks two tokens each time."""
    made = chain([0.0, 0.3, 1.0], agents=("ada", "ben"), acting=ACTING)
    spoken = worded(made, {0: {}, 1: {"ada": 2}, 2: {"ben": 1}, 3: {"ada": 2}})
    (episode,) = credited([spoken], discount)
    ada = TokenValues((0.2, None, 0.6, None), ((), (0.4,), (), (0.8,)))
    return episode, {"ada": ada, "ben": TokenValues((None, 0.1, None, None), ((), (), (), ()))}


def test_across_calls_the_next_token_is_the_first_of_the_agents_next_call():
    """Ada's last token before Ben: delta = 0.3 + 0.6 - 0.4, then half of what comes after."""
    episode, values = two_calls(discount=1.0)
    (advantages,) = TokenGAE(lam=0.5)([episode], [values])
    assert advantages[3]["ada"] == pytest.approx((0.2 + 0.5 * 0.2, 0.2))
    last = 0.5 + 0.5 * 0.3
    assert advantages[1]["ada"] == pytest.approx((0.2 + 0.5 * last, last))
    assert advantages[2]["ben"] == pytest.approx((0.3 + 1.0 - 0.1,))


def test_without_a_discount_every_call_is_an_episode_of_its_own():
    episode, values = two_calls(discount=0.0)
    (advantages,) = TokenGAE()([episode], [values])
    assert advantages[1]["ada"] == pytest.approx((-0.2, -0.4))
    assert advantages[2]["ben"] == pytest.approx((0.2,))
    assert advantages[3]["ada"] == pytest.approx((0.4, 0.2))


def test_branches_are_averaged_and_a_cut_one_is_worth_its_value():
    """The first answer led to two more of reward 1 and 3; the second was cut where V is 0.5."""
    made = tree([(0, 0.0), (0, 0.0), (1, 1.0), (1, 3.0)], agents=("ada",), cut=(2,))
    spoken = worded(made, {0: {}, **{n: {"ada": 1} for n in (1, 2, 3, 4)}})
    (episode,) = credited([spoken])
    values = TokenValues((1.0, 0.4, 0.5, None, None), ((),) * 5)
    (advantages,) = TokenGAE()([episode], [{"ada": values}])
    assert [advantages[n]["ada"] for n in (1, 2)] == [pytest.approx((1.0,)), pytest.approx((-0.5,))]
    (targets,) = TokenGAE().targets([episode], [{"ada": values}])
    assert targets["ada"].by_node == pytest.approx((1.25, 2.0, 0.5, None, None))


def test_a_delayed_reward_reaches_the_call_that_earned_it():
    made = chain([0.0, 0.0], agents=("ada", "ben"), acting={0: ("ada",), 1: ("ben",)})
    late = replace(made.nodes[2], earned={(0, "ada"): 2.0})
    made = replace(made, nodes=(*made.nodes[:2], late))
    spoken = worded(made, {0: {}, 1: {"ada": 2}, 2: {"ben": 1}})
    (episode,) = credited([spoken], 0.0, Mixed())
    values = {"ada": TokenValues((0.0, None, None), ((), (0.5,), ()))}
    (advantages,) = TokenGAE()([episode], [values])
    assert advantages[1]["ada"] == pytest.approx((2.0, 1.5))
    assert "ben" not in advantages[2], "who has no values gets no advantage"


def test_clip_and_normalisation_are_over_tokens():
    episode, values = one_call()
    ((_, after),) = TokenGAE(clip=1.2)([episode], [{"ada": values}])
    assert after["ada"] == pytest.approx((1.2, 1.0, 0.5))
    ((_, after),) = TokenGAE(normalize=True)([episode], [{"ada": values}])
    assert after["ada"] == pytest.approx((0.5 / (1 / 6) ** 0.5, 0.0, -0.5 / (1 / 6) ** 0.5), 1e-4)


def test_tokens_of_many_calls_are_those_of_torchrl():
    """One agent, five calls of one to four tokens: one row of time for torchrl."""
    functional = pytest.importorskip(
        "torchrl.objectives.value.functional", reason="it is the reference here"
    )
    rng = np.random.default_rng(0)
    lengths, rewards = [3, 1, 4, 2, 2], [float(r) for r in rng.normal(size=5)]
    made = chain(rewards, agents=("ada",))
    spoken = worded(made, {0: {}, **{n + 1: {"ada": k} for n, k in enumerate(lengths)}})
    (episode,) = credited([spoken], 0.9)
    flat = [[float(v) for v in rng.normal(size=k)] for k in lengths]
    values = TokenValues((*(own[0] for own in flat), None), ((), *(tuple(own[1:]) for own in flat)))
    value = torch.tensor([v for own in flat for v in own])[None, :, None]
    reward = torch.tensor(
        [r if last else 0.0 for r, k in zip(rewards, lengths, strict=True) for last in _last(k)]
    )[None, :, None]
    done = torch.zeros_like(value, dtype=torch.bool)
    done[0, -1, 0] = True
    after = torch.cat([value[:, 1:], torch.zeros(1, 1, 1)], dim=1)
    theirs, targets = functional.generalized_advantage_estimate(
        0.9, 0.8, value, after, reward, done, done
    )
    part = TokenGAE(gamma=0.9, lam=0.8)
    (advantages,) = part([episode], [{"ada": values}])
    ours = [a for node in advantages[1:] for a in node["ada"]]
    assert torch.allclose(torch.tensor(ours), theirs.flatten(), atol=1e-5)
    (aims,) = part.targets([episode], [{"ada": values}])
    own = [t for n in range(5) for t in (aims["ada"].by_node[n], *aims["ada"].inside[n + 1])]
    assert torch.allclose(torch.tensor(own), targets.flatten(), atol=1e-5)


def _last(length: int) -> list[bool]:
    return [k == length - 1 for k in range(length)]


# --- two lambdas, and one that follows the length -------------------------------------------------


def test_the_critic_s_targets_have_a_lambda_of_their_own():
    """Advantages are those of lambda 1/2, targets the whole return of 2."""
    episode, values = one_call()
    part = TokenGAE(lam=0.5, target_lam=1.0)
    told = [{"ada": values}]
    assert part([episode], told) == TokenGAE(lam=0.5)([episode], told)
    (targets,) = part.targets([episode], told)
    assert targets["ada"].by_node == (2.0, None) and targets["ada"].inside == ((), (2.0, 2.0))


def test_lambda_follows_the_length_of_an_action():
    """Three tokens, alpha 2/3: lambda = 1 - 1 / 2, so as with 0.5."""
    episode, values = one_call()
    told = [{"ada": values}]
    ((_, after),) = TokenGAE(length_lam=2 / 3)([episode], told)
    ((_, expected),) = TokenGAE(lam=0.5)([episode], told)
    assert after["ada"] == pytest.approx(expected["ada"])


def test_between_actions_of_an_agent_lambda_is_the_plain_one():
    """Ada's actions of two tokens: lambda = 1 - 1 / 2. Ben's in between has no length for her."""
    episode, values = two_calls(discount=1.0)
    (advantages,) = TokenGAE(lam=0.5, length_lam=1.0)([episode], [values])
    last = 0.5 + 0.5 * 0.3
    assert advantages[1]["ada"] == pytest.approx((0.2 + 0.5 * last, last))


def test_a_short_action_has_no_negative_lambda_and_targets_keep_their_own():
    episode, values = one_call()
    told = [{"ada": values}]
    part = TokenGAE(length_lam=0.05, target_lam=1.0)
    ((_, after),) = part([episode], told)
    assert after["ada"] == pytest.approx((0.5, 0.5, 0.5))  # the one-token TD errors
    assert part.targets([episode], told)[0]["ada"].by_node == (2.0, None)
