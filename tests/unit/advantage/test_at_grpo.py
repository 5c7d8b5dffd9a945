"""AT-GRPO's greedy tree and its groups: what is compared, what goes on, what it costs."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import Notes, cast

from colearn.config import build_algorithm, load_config
from colearn.contract import Round
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.methods.advantage.agent_turn_groups import AgentQuestion, AgentTurn
from colearn.methods.credit.mixed import Mixed
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.greedy_tree import GreedyTree
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Parallel

TEAM = cast(max_tokens=3)


def node(index, parent, path, sees, says=None, prompt=(1,)):
    return Node(
        index=index,
        parent=parent,
        path=path,
        state=None,
        observations={agent: Observation("", prompt) for agent in sees},
        actions={agent: Action("", (2,), (-1.0,)) for agent in says or ()},
    )


def two_turns(prompts):
    """Ada's three candidates at the root; the middle one goes on to Ben's three."""
    nodes = [
        node(0, None, (), ["ada"]),
        *(node(k + 1, 0, (k,), ["ben"], ["ada"], prompts[k]) for k in range(3)),
        *(node(k + 4, 2, (1, k), [], ["ben"]) for k in range(3)),
    ]
    return Tree(item="", episode=0, agents=("ada", "ben"), nodes=tuple(nodes))


def credited(tree, ada, ben):
    rewards = ({}, *({"ada": r, "ben": 9.0} for r in ada), *({"ben": r, "ada": 9.0} for r in ben))
    return tree.credited(rewards)


def test_an_action_that_its_edge_pays_nothing_counts_as_zero():
    episode = credited(two_turns([(5,), (6,), (7,)]), [1.0, 2.0, 3.0], [0.0, 0.0, 1.0])
    unpaid = replace(episode, rewards=({}, {}, *episode.rewards[2:]))
    (advantages,) = AgentTurn(normalize_std=False)([unpaid])
    assert [row["ada"] for row in advantages[1:4]] == pytest.approx([-5 / 3, 1 / 3, 4 / 3])


def test_an_advantage_is_the_reward_standardised_among_the_candidates_of_one_action():
    episode = credited(two_turns([(5,), (6,), (7,)]), [1.0, 2.0, 3.0], [0.0, 0.0, 1.0])
    (advantages,) = AgentTurn()([episode])
    spread = (2 / 3) ** 0.5
    expected = {"ada": [-1 / spread, 0, 1 / spread], "ben": [-1 / 2**0.5, -1 / 2**0.5, 2**0.5]}
    assert [row["ada"] for row in advantages[1:4]] == pytest.approx(expected["ada"], abs=1e-5)
    assert [row["ben"] for row in advantages[4:]] == pytest.approx(expected["ben"], abs=1e-5)
    assert [set(row) for row in advantages] == [set(), *[{"ada"}] * 3, *[{"ben"}] * 3]


def test_a_millionth_is_added_to_the_deviation():
    """Rewards of 0, 0 and 3 millionths: mean 1, deviation the root of 2, so -1 / (2^0.5 + 1)."""
    episode = credited(two_turns([(5,), (6,), (7,)]), [0.0, 0.0, 3e-6], [0.0, 0.0, 1.0])
    (advantages,) = AgentTurn()([episode])
    expected = [-(2**0.5 - 1), -(2**0.5 - 1), 2 * (2**0.5 - 1)]
    assert [row["ada"] for row in advantages[1:4]] == pytest.approx(expected)


def test_the_deviation_is_an_option():
    episode = credited(two_turns([(5,), (6,), (7,)]), [1.0, 2.0, 3.0], [0.0, 0.0, 1.0])
    (advantages,) = AgentTurn(normalize_std=False)([episode])
    assert [row["ada"] for row in advantages[1:4]] == [-1, 0, 1]
    (advantages,) = AgentTurn(normalize_std=False, clip=0.5)([episode])
    assert [row["ada"] for row in advantages[1:4]] == [-0.5, 0, 0.5]


def test_candidates_that_earn_alike_are_worth_nothing():
    episode = credited(two_turns([(5,), (6,), (7,)]), [0.7] * 3, [0.0] * 3)
    (advantages,) = AgentTurn()([episode])
    assert [row["ada"] for row in advantages[1:4]] == pytest.approx([0, 0, 0], abs=1e-9)


def chains(prompts):
    """Three chains of two turns in which Ada alone acts."""
    nodes = [
        node(0, None, (), ["ada"]),
        *(node(k + 1, 0, (k,), ["ada"], ["ada"], prompts[k]) for k in range(3)),
        *(node(k + 4, k + 1, (k, 0), [], ["ada"]) for k in range(3)),
    ]
    return Tree(item="", episode=0, agents=("ada",), nodes=tuple(nodes))


def test_an_action_from_a_prompt_of_its_own_has_its_reward_for_an_advantage():
    rewards = ({}, *({"ada": r} for r in (1.0, 2.0, 3.0, 5.0, 7.0, 9.0)))
    alone = chains([(5,), (6,), (7,)]).credited(rewards)
    (advantages,) = AgentTurn(normalize_std=False)([alone])
    assert [row["ada"] for row in advantages[1:]] == [-1, 0, 1, 5, 7, 9]
    met = chains([(5,), (5,), (7,)]).credited(rewards)
    (advantages,) = AgentTurn(normalize_std=False)([met])
    assert [row["ada"] for row in advantages[1:]] == [-1, 0, 1, -1, 1, 9]


def test_question_groups_pool_the_turns_of_an_agent_and_no_other_question():
    rewards = ({}, *({"ada": r} for r in (1.0, 2.0, 3.0, 5.0, 7.0, 12.0)))
    tree = chains([(5,), (6,), (7,)])
    other = Tree(item="", episode=1, agents=("ada",), nodes=tree.nodes)
    one, two = (t.credited(rewards) for t in (tree, other))
    advantages = AgentQuestion(normalize_std=False)([one, two])
    assert [[row["ada"] for row in rows[1:]] for rows in advantages] == [[-4, -3, -2, 0, 2, 7]] * 2


def scored(agent, *credits):
    """An executed round of the agent's candidates."""
    return Round([{agent: number} for number in range(len(credits))], agent, credits)


def continued(*tried, seed=0):
    at = node(0, None, (), ("ada", "ben"))
    (kept,) = GreedyTree(3).continues(at, tried, np.random.default_rng(seed))
    return kept


def test_the_best_candidate_of_whoever_acts_goes_on():
    credits = [{"ada": 0.1, "ben": 9}, {"ada": 0.3, "ben": 0}, {"ada": 0.2, "ben": 5}]
    assert continued(scored("ada", *credits)) == 1
    assert continued(scored("ben", *credits)) == 0
    # children are counted over all rounds
    assert continued(scored("ada", *credits), scored("ben", *credits)) == 3


def test_ties_are_broken_by_the_rng_alike_for_all_that_are_best():
    tied = scored("ada", {"ada": 1.0}, {"ada": 0.0}, {"ada": 1.0})
    kept = [continued(tied, seed=k) for k in range(400)]
    assert np.bincount(kept, minlength=3)[1] == 0
    assert 150 < kept.count(0) < 250
    assert [continued(tied, seed=k) for k in range(400)] == kept


@settings(max_examples=12, deadline=None)
@given(
    k=st.integers(2, 4),
    turns=st.integers(1, 4),
    sequential=st.booleans(),
    ends=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_candidates_of_a_group_share_exactly_one_prompt(k, turns, sequential, ends, seed):
    task = Notes(horizon=turns, items=2, sequential=sequential, ends=ends)
    trees, _ = grow(task, task.items("train"), TEAM.players, GreedyTree(k), seed=seed)
    for tree in trees:
        groups = defaultdict(list)
        for child_ in tree.nodes[1:]:
            for agent in filter(child_.samples, child_.actions):
                prompt = tree.history(child_.parent, agent).tokens
                groups[tree.episode, agent, child_.turn].append(prompt)
        assert {len(prompts) for prompts in groups.values()} == {k}
        assert {len(set(prompts)) for prompts in groups.values()} == {1}


@pytest.mark.parametrize("sequential", [True, False])
@pytest.mark.parametrize("k", [2, 4])
def test_an_episode_costs_N_T_K_calls_and_no_more(k, sequential):
    agents, turns = 2, 3
    horizon = agents * turns if sequential else turns
    task = Notes(horizon=horizon, items=3, sequential=sequential)
    _, counts = grow(task, task.items("train"), TEAM.players, GreedyTree(k), seed=0)
    assert counts.generations == 3 * agents * turns * k
    _, chained = grow(task, task.items("train"), TEAM.players, Parallel(k), seed=0)
    assert chained.generations == counts.generations


def test_the_action_that_goes_on_has_the_best_mixed_reward():
    task = Notes(horizon=4, items=3, sequential=True)
    trees, _ = grow(
        task, task.items("train"), TEAM.players, GreedyTree(3), seed=1, credit=Mixed(alpha=1.0)
    )
    decided = 0
    for tree in trees:
        for parent in tree.nodes:
            group = tree.children(parent.index)
            gone_on = [node for node in group if tree.children(node.index)]
            for best in gone_on:
                assert not best.cut
                assert best.reward == max(node.reward for node in group)
                decided += len({node.reward for node in group}) > 1
    assert decided > 3


def build(**algorithm):
    config = {
        "task": {"name": "plan_path"},
        "models": {"*": {"path": "embedded"}},
        "algorithm": {"name": "at_grpo", **algorithm},
    }
    return build_algorithm(load_config(config)).checked_parts()


def test_the_papers_settings_are_the_defaults():
    parts = build()
    assert parts.rollout == GreedyTree(4)
    assert parts.credit == Mixed(alpha=1.0)
    assert parts.advantage == AgentTurn(normalize_std=True, clip=None)
    assert parts.loss.clip == 0.2 and parts.loss.kl == parts.loss.entropy == 0.0


def test_its_baselines_are_other_parts():
    question = build(
        rollout={"name": "parallel"},
        advantage={"name": "question"},
        credit={"name": "invocation", "trajectory": 1.0},
    )
    assert question.rollout == Parallel(4) and question.advantage == AgentQuestion()
    assert build(rollout={"name": "parallel"}).advantage == AgentTurn()
    assert build(credit={"name": "team"}).credit == SharedReward()
