"""The counterfactual critic and its baseline, by hand-computed numbers and by enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from trees import chain
from updates import new_critics

from colearn.contract import CounterfactualValues
from colearn.contract.packing import with_marks
from colearn.contract.types import Action
from colearn.errors import ConfigError
from colearn.methods.advantage.counterfactual import CounterfactualBaseline
from colearn.methods.critic.counterfactual import Counterfactual
from colearn.registry import algorithm_class
from colearn.rollout.shapes import Chain, CounterfactualChain
from colearn.training.update.metrics import advantage_metrics

AGENTS = ("ada", "ben")


def said(text):
    return Action(text, (1,), (-1.0,))


def episode(rewards, discount=1.0):
    tree = chain(rewards, agents=AGENTS)
    paid = tuple(dict.fromkeys(AGENTS, node.reward) for node in tree.nodes)
    return tree.credited(paid, discount=discount)


def two_turns():
    """Ada says x, then v; Ben says y, then w."""
    tree = chain([1.0, 1.0], agents=AGENTS)
    root, first, second = tree.nodes
    first = replace(first, actions={"ada": said("x"), "ben": said("y")})
    second = replace(second, actions={"ada": said("v"), "ben": said("w")})
    return replace(tree, nodes=(root, first, second))


def values(executed, alternatives):
    """One agent's Q by node (None at the root), and of its alternatives."""
    return CounterfactualValues((None, *executed), ((), *alternatives))


def test_a_value_model_is_trained_on_executed_actions_and_read_at_their_alternatives_too():
    tree = two_turns()
    root, first, second = tree.nodes
    first = replace(first, alternatives={"ada": (said("p"), said("q"))})
    critics = new_critics(Counterfactual(), {"team": None})
    of_tree = [replace(tree, nodes=(root, first, second))]
    ((trained,),) = critics.rows(of_tree)["team"].values()
    ((read,),) = critics.rows(of_tree, training=False)["team"].values()
    executed = [(1, "ada", None), (1, "ben", None), (2, "ada", None), (2, "ben", None)]
    assert [(mark.node, mark.agent, mark.inside) for mark in trained.marks] == executed
    assert len(read.marks) == len(executed) + 2


def test_the_baseline_is_the_mean_over_the_answers_that_were_not_executed():
    q = {
        "ada": values([5.0, 1.0], [(2.0, 4.0), (1.0, 1.0)]),
        "ben": values([5.0, 1.0], [(0.0, 0.5), (2.0, 7.0)]),
    }
    (rows,) = CounterfactualBaseline()([episode([3.0, 2.0])], [q])
    # returns 5 and 2; means 3 and 1 for ada, 0.25 and 4.5 for ben
    assert rows == ({}, {"ada": 2.0, "ben": 4.75}, {"ada": 1.0, "ben": -2.5})


def test_a_trace_below_one_bootstraps_from_the_next_executed_action():
    q = {
        "ada": values([9.0, 4.0], [(0.0,), (0.0,)]),
        "ben": values([9.0, 6.0], [(0.0,), (0.0,)]),
    }
    rows = CounterfactualBaseline(lam=0.5)([episode([3.0, 2.0], discount=0.5)], [q])[0]
    # G_1 = 2; Q of the next action is the mean of 4 and 6; G_0 = 3 + 0.5 (0.5 * 5 + 0.5 * 2)
    assert rows[2] == {"ada": 2.0, "ben": 2.0}
    assert rows[1] == {"ada": 4.75, "ben": 4.75}


def test_lambda_weighs_the_later_return_and_one_minus_lambda_the_next_value():
    """The first return is 3 + 0.25 * 2 + 0.75 * 8, with Q = 8 of the second action."""
    q = {"ada": values([9.0, 8.0], [(1.0,), (1.0,)])}
    method = CounterfactualBaseline(lam=0.25)
    (targets,) = method.targets([episode([3.0, 2.0])], [q])
    assert targets == {"ada": (None, 9.5, 2.0)}
    assert [node["ada"] for node in method([episode([3.0, 2.0])], [q])[0][1:]] == [8.5, 1.0]


def test_the_targets_are_the_returns_of_executed_actions():
    q = {"ada": values([9.0, 4.0], [(7.0,), (7.0,)]), "ben": values([9.0, 6.0], [(), ()])}
    (targets,) = CounterfactualBaseline().targets([episode([3.0, 2.0])], [q])
    assert targets == {"ada": (None, 5.0, 2.0), "ben": (None, 5.0, 2.0)}


def test_an_agent_without_alternatives_is_not_trained():
    q = {"ada": values([5.0], [(1.0,)]), "ben": values([5.0], [()])}
    assert CounterfactualBaseline()([episode([3.0])], [q])[0][1] == {"ada": 2.0}


def test_a_share_of_q_takes_the_place_of_the_return_of_the_executed_action():
    q = {"ada": values([3.0, 1.0], [(2.0, 4.0), (1.0, 1.0)])}
    rows = {
        share: [n["ada"] for n in CounterfactualBaseline(critic_share=share)(chains, [q])[0][1:]]
        for chains in [[episode([3.0, 2.0])]]
        for share in (0.25, 1.0)
    }
    # returns 5 and 2, baselines 3 and 1; at 1 nothing is left of the returns (COMA's Eq. 4)
    assert rows == {0.25: [1.5, 0.75], 1.0: [0.0, 0.0]}


def test_an_action_that_is_not_scored_is_not_trained_whatever_the_share_of_q():
    q = {"ada": values([3.0, 1.0], [(2.0, 4.0), (1.0, 1.0)])}
    (rows,) = CounterfactualBaseline(critic_share=1.0)([episode([3.0, math.nan])], [q])
    assert rows[1:] == ({}, {})


def test_the_share_of_q_changes_no_target():
    q = {"ada": values([9.0, 4.0], [(7.0,), (7.0,)])}
    (targets,) = CounterfactualBaseline(critic_share=1.0).targets([episode([3.0, 2.0])], [q])
    assert targets == {"ada": (None, 5.0, 2.0)}


def test_the_gradient_is_exact_whatever_the_critic_says():
    """Two agents, two actions each, K = 1: the expectation over executed actions and alternatives
    of advantage times score is the gradient of the expected reward."""
    pi = {"ada": (0.3, 0.7), "ben": (0.8, 0.2)}
    reward = {(0, 0): 1.0, (0, 1): -2.0, (1, 0): 4.0, (1, 1): 0.5}
    wrong = {(0, 0): -3.0, (0, 1): 10.0, (1, 0): 2.0, (1, 1): 7.0}
    estimate = dict.fromkeys(AGENTS, 0.0)
    for a, b, other_a, other_b in itertools.product((0, 1), repeat=4):
        chance = pi["ada"][a] * pi["ben"][b] * pi["ada"][other_a] * pi["ben"][other_b]
        q = {
            "ada": values([wrong[a, b]], [(wrong[other_a, b],)]),
            "ben": values([wrong[a, b]], [(wrong[a, other_b],)]),
        }
        row = CounterfactualBaseline()([episode([reward[a, b]])], [q])[0][1]
        for agent, action in (("ada", a), ("ben", b)):
            score = 1.0 - pi[agent][1] if action == 1 else -pi[agent][1]  # d log pi / d logit of 1
            estimate[agent] += chance * row[agent] * score
    # d J / d logit of action 1 = p (1 - p) (E[r | 1] - E[r | 0])
    ada = 0.21 * ((0.8 * 4.0 + 0.2 * 0.5) - (0.8 * 1.0 + 0.2 * -2.0))
    ben = 0.16 * ((0.3 * -2.0 + 0.7 * 0.5) - (0.3 * 1.0 + 0.7 * 4.0))
    assert math.isclose(estimate["ada"], ada) and math.isclose(estimate["ben"], ben)


def answered(alternatives):
    """One turn: ada says x and ben says y, with these alternatives."""
    tree = chain([1.0], agents=AGENTS)
    root, leaf = tree.nodes
    shown = {a: replace(seen, text=f"to {a}") for a, seen in root.observations.items()}
    leaf = replace(leaf, actions={"ada": said("x"), "ben": said("y")}, alternatives=alternatives)
    return replace(tree, nodes=(replace(root, observations=shown), leaf))


def all_readings(row):
    """What each mark reads, as text: its piece and all pieces above it."""
    texts = []
    for mark in row.marks:
        number = next(n for n, p in enumerate(row.pieces) if p.start <= mark.index < p.end)
        text = ""
        while number >= 0:
            piece = row.pieces[number]
            text = bytes(row.tokens[piece.start : piece.end]).decode() + text
            number = piece.parent
        texts.append(text)
    return texts


def readings(row):
    """The same, by agent and alternative."""
    keys = [(mark.agent, mark.inside) for mark in row.marks]
    return dict(zip(keys, all_readings(row), strict=True))


def read(method, alternatives, **settings):
    make = getattr(Counterfactual(**settings), method)
    tree = answered({a: tuple(map(said, words)) for a, words in alternatives.items()})
    return make(tree, "team", lambda text: text.encode(), limit=1000)


def test_each_answer_is_read_last_after_what_the_others_said():
    row = read("row", {"ada": "pq", "ben": "r"})
    seen = "\n[ada 0]\nto ada\n[ben 0]\nto ben"
    assert readings(row) == {
        ("ada", None): seen + "\n[ben 0]\ny\n[ada 0]\nx",
        ("ada", 0): seen + "\n[ben 0]\ny\n[ada 0]\np",
        ("ada", 1): seen + "\n[ben 0]\ny\n[ada 0]\nq",
        ("ben", None): seen + "\n[ada 0]\nx\n[ben 0]\ny",
        ("ben", 0): seen + "\n[ada 0]\nx\n[ben 0]\nr",
    }


def test_in_pairs_every_answer_follows_what_its_agent_saw():
    row = read("row", {"ada": "p", "ben": ""}, paired=True)
    ada, ben = "\n[ada 0]\nto ada\n[ada 0]\n", "\n[ben 0]\nto ben\n[ben 0]\n"
    assert readings(row) == {
        ("ada", None): ben + "y" + ada + "x",
        ("ada", 0): ben + "y" + ada + "p",
        ("ben", None): ada + "x" + ben + "y",
    }


def test_in_pairs_what_all_agents_saw_is_still_read_once_and_first():
    tree = answered({})
    root, leaf = tree.nodes
    shown = {a: replace(seen, text="to all") for a, seen in root.observations.items()}
    root = replace(root, observations=shown, privileged_info="secret")
    tree = replace(tree, nodes=(root, leaf))
    row = Counterfactual(paired=True).row(tree, "team", lambda text: text.encode(), limit=1000)
    before = "\n[all 0]\nto all\n[hidden 0]\nsecret"
    assert readings(row)["ada", None] == before + "\n[ben 0]\ny\n[ada 0]\nx"


def test_in_pairs_the_second_turn_is_read_after_all_of_the_first():
    tree = chain([1.0, 1.0], agents=AGENTS)
    root, first, second = tree.nodes
    root, first = (
        replace(
            node,
            observations={
                a: replace(seen, text=f"{a} at {node.index}")
                for a, seen in node.observations.items()
            },
        )
        for node in (root, first)
    )
    first = replace(first, actions={"ada": said("x"), "ben": said("y")})
    second = replace(second, actions={"ada": said("v"), "ben": said("w")})
    tree = replace(tree, nodes=(root, first, second))
    critic = Counterfactual(paired=True)
    row = critic.row(tree, "team", lambda text: text.encode(), limit=1000)
    said_before = "\n[ada 0]\nada at 0\n[ada 0]\nx\n[ben 0]\nben at 0\n[ben 0]\ny"
    now = "\n[ben 1]\nben at 1\n[ben 1]\nw\n[ada 1]\nada at 1\n[ada 1]\nv"
    assert said_before + now in all_readings(row)


def test_later_answers_are_read_after_the_joint_actions_before_them():
    """Two turns: every reading of the second has what both said in the first."""
    row = Counterfactual().row(two_turns(), "team", lambda text: text.encode(), limit=1000)
    later = [text for text in all_readings(row) if text.endswith(("\nv", "\nw"))]
    assert len(later) == 2
    for text in later:
        assert "[ada 0]\nx" in text and "[ben 0]\ny" in text


def test_readings_of_one_agent_share_all_of_the_row_but_the_answer():
    few, many = (len(read("row", {"ada": words}).tokens) for words in ("p", "pq"))
    assert many - few == len("\n[ada 0]\nq")


def test_the_critic_is_trained_on_executed_actions_alone():
    row = read("training_row", {"ada": "pq", "ben": "r"})
    assert [(mark.agent, mark.inside) for mark in row.marks] == [("ada", None), ("ben", None)]


def test_a_row_of_some_marks_reads_what_they_read_before():
    """The second turn of ben alone: it keeps the first turn, and nothing that ada's would read."""
    row = Counterfactual().row(two_turns(), "team", lambda text: text.encode(), limit=1000)
    row = replace(row, targets=(1.0, 2.0, 3.0, 4.0))
    of_ben = with_marks(row, [1, 3])
    assert all_readings(of_ben) == [all_readings(row)[1], all_readings(row)[3]]
    assert of_ben.targets == (2.0, 4.0)
    assert len(of_ben.tokens) == len(all_readings(row)[3])
    assert [piece.first_position for piece in of_ben.pieces] == [p.start for p in of_ben.pieces]


def test_numbers_at_the_marks_become_values_by_agent():
    tree = answered({"ada": (said("p"), said("q")), "ben": ()})
    critic = Counterfactual()
    row = critic.row(tree, "team", lambda text: text.encode(), limit=1000)
    values = critic.values(tree, "team", row, [1.0, 2.0, 3.0, 4.0])
    assert values == {
        "ada": CounterfactualValues((None, 1.0), ((), (2.0, 3.0))),
        "ben": CounterfactualValues((None, 4.0), ((), ())),
    }


@pytest.mark.parametrize(
    "change, named",
    [
        ({"rollout": Chain()}, "rollout: COMA"),
        ({"value_loss": {"frozen_targets": False}}, "value_loss.frozen_targets"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, named):
    algorithm = algorithm_class("coma")()
    if "value_loss" in change:
        change = {"value_loss": replace(algorithm.value_loss, **change["value_loss"])}
    with pytest.raises(ConfigError, match=named):
        replace(algorithm, **change).checked_parts()


def test_a_chain_with_alternatives_executes_the_first_answer_of_each_agent():
    assert CounterfactualChain(k=3).joint_actions(None, {"ada": 4, "ben": 4}) == [
        {"ada": 0, "ben": 0}
    ]


def test_explained_variance_of_action_values_is_that_of_their_own_edges():
    """Returns 4 and 1 of the edges, Q 3 and 2: residuals 1 and -1 of a spread of 2.25."""
    metrics = advantage_metrics(
        [({}, {"ada": 0.0}, {"ada": 0.0})],
        [episode([3.0, 1.0])],
        [{"ada": (None, 3.0, 2.0)}],
        of_state=False,
    )
    assert metrics["critic/explained_variance"] == pytest.approx(1 - 1 / 2.25)


def test_the_worth_of_actions_is_what_q_explains_beyond_its_baseline():
    """Returns 4 and 1: Q misses them by 1 and -1, the baselines 2 and 4 by 2 and -3."""
    metrics = advantage_metrics(
        [({}, {"ada": 0.0}, {"ada": 0.0})],
        [episode([3.0, 1.0])],
        [{"ada": values([3.0, 2.0], [(1.0, 3.0), (4.0,)])}],
        of_state=False,
    )
    assert metrics["critic/action_worth"] == pytest.approx(1 - 1.0 / 6.25)


def test_a_q_that_is_the_same_for_every_action_has_no_worth_of_actions():
    """It explains all of the difference between two histories."""
    metrics = advantage_metrics(
        [({}, {"ada": 0.0}), ({}, {"ada": 0.0})],
        [episode([9.0]), episode([1.5])],
        [{"ada": values([8.0], [(8.0,)])}, {"ada": values([1.0], [(1.0,)])}],
        of_state=False,
    )
    assert metrics["critic/explained_variance"] > 0.99
    assert metrics["critic/action_worth"] == pytest.approx(0.0)


def test_returns_that_differ_by_rounding_only_have_no_explained_variance():
    """0.1 + 0.2 is not 0.3: a team at its optimum earns both in one batch."""
    metrics = advantage_metrics(
        [({}, {}, {"ada": 0.0}), ({}, {"ada": 0.0})],
        [episode([0.1, 0.2]), episode([0.3])],
        [{"ada": (0.5, None, None)}, {"ada": (0.4, None)}],
    )
    assert "critic/explained_variance" not in metrics
    assert metrics["critic/value_mean"] == pytest.approx(0.45)
