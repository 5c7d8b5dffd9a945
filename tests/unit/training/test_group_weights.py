"""What a group of actions weighs in a model's loss: Eq. 3 of MARSHAL (games and roles) and Eq. 6 of
MHGPO (roles of a question), against numbers by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from scripted_games import LONG, SHORT, cast, game
from trees import tree

from colearn.algorithms.marshal import MARSHAL
from colearn.contract import Advantage
from colearn.methods.advantage.heterogeneous import Heterogeneous
from colearn.methods.advantage.self_play import SumThenNormalize
from colearn.rollout.agents import AgentSpec
from colearn.training.update.actors import Actors
from colearn.training.update.advantages import equal_groups, with_advantages


def shared(tree, agent):
    """One model plays every seat of the team."""
    return "model" if tree.player(agent) in tree.agents else None


def apart(tree, agent):
    """A model for each agent."""
    return agent


@dataclass(frozen=True)
class Ones(Advantage):
    """An advantage of 1 for every action: what is left is the weight."""

    part: Advantage

    def weight_group(self, episode, agent):
        return self.part.weight_group(episode, agent)

    def __call__(self, episodes, values=None):
        return [
            tuple(dict.fromkeys(node.actions, 1.0) for node in episode.nodes)
            for episode in episodes
        ]


def weights(part, episodes, model_of=shared):
    """{(place, agent): the weight of each of its actions}."""
    ones = Ones(part)
    weighted = equal_groups(ones(episodes), ones, episodes, model_of)
    return {
        (place, agent): value
        for place, nodes in enumerate(weighted)
        for node in nodes
        for agent, value in node.items()
    }


def test_roles_that_share_a_model_weigh_alike():
    """a has 4 of 7 actions and b 3: 7 / (2 x 4) and 7 / (2 x 3)."""
    by_action = weights(SumThenNormalize(), [game(SHORT), game(LONG)])
    assert by_action == pytest.approx(
        {(0, "a"): 7 / 8, (0, "b"): 7 / 6, (1, "a"): 7 / 8, (1, "b"): 7 / 6}
    )


def test_the_loss_of_a_shared_model_is_eq_3():
    """(1/P) sum_p (1/G_p) sum_i (1/K_i) sum_k of A, with means 0.1 of a's returns and 0.4 of b's:
    a ((1.0 + 0.9) / 2 + (-0.9 - 1.0) / 2) / 2 = 0 and b (-1.3 + (0.7 + 0.6) / 2) / 2 = -0.325."""
    episodes = [game(SHORT), game(LONG)]
    part = SumThenNormalize()
    weighted = equal_groups(part(episodes), part, episodes, shared)
    actions = [value for nodes in weighted for node in nodes for value in node.values()]
    assert sum(actions) / len(actions) == pytest.approx(-0.325 / 2)


def test_games_of_one_run_weigh_alike_whatever_their_length():
    """Of 9 actions tic's a has 2, its b 1; kuhn's a 2 of 4, its b 2; mini's a one, its b one."""
    one = (("a", {"a": 1.0}), ("b", {"b": 1.0}))
    episodes = [game(SHORT, item="tic"), game(LONG, item="kuhn"), game(one, item="mini")]
    by_action = weights(SumThenNormalize(), episodes)
    sizes = {(0, "a"): 2, (0, "b"): 1, (1, "a"): 2, (1, "b"): 2, (2, "a"): 1, (2, "b"): 1}
    assert {key: weight * sizes[key] / 9 for key, weight in by_action.items()} == pytest.approx(
        dict.fromkeys(sizes, 1 / 6)
    )


def test_roles_with_models_of_their_own_weigh_as_before():
    by_action = weights(SumThenNormalize(), [game(SHORT), game(LONG)], apart)
    assert set(by_action.values()) == {1.0}


def test_a_rivals_actions_and_the_seats_of_the_team_are_counted_apart():
    """b's seat is taken by a program in the second game: of the model's 5 actions a has 4, b 1."""
    by_action = weights(SumThenNormalize(), [game(SHORT), cast(game(LONG), b="search")])
    assert by_action[0, "a"] == by_action[1, "a"] == 5 / 8
    assert by_action[0, "b"] == 5 / 2
    assert by_action[1, "b"] == 1.0, "it is not trained"


def test_every_turn_weighs_alike_where_asked():
    by_action = weights(SumThenNormalize(equal_trajectories=False), [game(SHORT), game(LONG)])
    assert set(by_action.values()) == {1.0}


def round_robin():
    """Two questions: the first forks at its first role, the second at its second, which leaves one
    action of the first role there."""
    early = tree(
        [(0, 0.0), (0, 0.0), (1, 1.0), (2, 0.0)],
        agents=("writer", "reader"),
        acting={0: ("writer",), 1: ("reader",), 2: ("reader",)},
    )
    late = tree(
        [(0, 0.0), (1, 1.0), (1, 0.0)],
        agents=("writer", "reader"),
        acting={0: ("writer",), 1: ("reader",)},
    )
    trees = [early, replace(late, episode=1)]
    return [one.credited(({},) * len(one.nodes)) for one in trees]


def test_round_robin_weighs_by_question_and_role():
    """Eq. 6: four groups of a question and a role, with 2, 2, 1 and 2 of 7 actions."""
    by_action = weights(Heterogeneous(), round_robin())
    assert by_action == pytest.approx(
        {
            (0, "writer"): 7 / 8,
            (0, "reader"): 7 / 8,
            (1, "writer"): 7 / 4,
            (1, "reader"): 7 / 8,
        }
    )
    assert set(weights(Heterogeneous(equal_roles=False), round_robin()).values()) == {1.0}


def test_the_rows_of_a_shared_model_carry_the_weights():
    """The mean over the seven rows' advantages is Eq. 3's of the two games."""
    episodes = [game(SHORT), game(LONG)]
    parts = MARSHAL().parts()
    actors = Actors(
        specs={agent: AgentSpec(model="model") for agent in ("a", "b")},
        learners={"model": None},
    )
    weighed = equal_groups(
        parts.advantage(episodes, None), parts.advantage, episodes, actors.model_of
    )
    rows = actors.rows(episodes, 4096, 0.0)
    by_tree = with_advantages(rows, [0, 1], weighed)["model"]
    advantages = [a for own in by_tree.values() for row in own for a in row.advantages]
    assert len(advantages) == 7
    assert sum(advantages) / 7 == pytest.approx(-0.325 / 2)
