"""Tree growth: requests per agent, casts, and the order of growth."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny import Notes, Scene, byte_tokenizer

from colearn.contract import (
    BatchEngine,
    Round,
    TokenAnswer,
    TokenRequest,
    View,
)
from colearn.contract.types import Action, Observation, Outcome, Tree
from colearn.errors import ConfigError, TaskError
from colearn.methods.credit.mixed import Mixed
from colearn.methods.credit.payoff import Payoff
from colearn.methods.credit.shared_reward import SharedReward
from colearn.rollout.agents import AgentSpec, ChatFormat, Program
from colearn.rollout.agents.cast.seats import Swap
from colearn.rollout.forks import ForkOn
from colearn.rollout.grow import grow
from colearn.rollout.growth import Growth
from colearn.rollout.shapes import Aligned, Chain, CounterfactualChain, KaryTree, Parallel
from colearn.tasks.wrappers import Pipeline
from tests.helpers.scripted_voice import language_players


class Seeded(BatchEngine):
    """Says whose voice it is, and a number drawn with the seed."""

    def generate(self, requests: Sequence[TokenRequest]) -> Any:
        return [[self._say(request, seed) for seed in request.seeds] for request in requests]

    def sync(self) -> None: ...

    def _say(self, request: TokenRequest, seed: int) -> Any:
        text = f"{request.agent} {seed % 1000}"
        action = Action(text, tuple(text.encode()))
        return TokenAnswer(action, request.history.act(action.tokens))


def players_of(task: Notes) -> dict[str, Any]:
    voice = AgentSpec(chat=ChatFormat(byte_tokenizer()))
    return dict(language_players(Seeded(), dict.fromkeys(task.agents, voice)))


def grown(task: Any, shape: Any = None, players: Any = None, **settings: Any) -> Any:
    who = players or players_of(task)
    return grow(task, task.items("train"), who, shape or Chain(), seed=3, **settings)


def said(tree: Tree[Any]) -> list[dict[str, str]]:
    return [{agent: a.text for agent, a in node.actions.items()} for node in tree.nodes]


# --- shapes --------------------------------------------------------------------------------------


def test_a_tree_without_end_is_an_error_that_names_k(monkeypatch):
    """Two agents, K=3: 6 actions at turn 1, 18 more at turn 2, 54 more at turn 3: 78."""
    monkeypatch.setattr("colearn.rollout.shapes.MOST_ACTIONS", 77)
    told = r"^algorithm\.rollout\.k: one tree of KaryTree has more than 77 actions by turn 3; lower"
    with pytest.raises(ConfigError, match=told):
        grown(Notes(horizon=3, items=1), KaryTree(3))
    monkeypatch.setattr("colearn.rollout.shapes.MOST_ACTIONS", 78)
    (tree,), _ = grown(Notes(horizon=3, items=1), KaryTree(3))
    assert len(tree.nodes) == 1 + 3 + 9 + 27


def test_a_fork_branches_at_one_action_of_one_agent_and_nowhere_else():
    task = Notes(horizon=4, items=1)
    (tree,), counts = grown(task, ForkOn(3, agent="ada", occasion=2))
    # turns 0 and 1: one action each; turn 2: three of ada's, one of ben's; turn 3: three chains
    assert counts.generations == 2 + 2 + (3 + 1) + 3 * 2
    assert counts.joint_actions == 1 + 1 + 3 + 3 == len(tree.nodes) - 1
    assert [len(below) for below in tree.below()] == [1, 1, 3, 1, 1, 1, 0, 0, 0]
    fork = tree.children(2)
    assert [node.turn for node in fork] == [3, 3, 3]
    assert len({node.actions["ada"].text for node in fork}) == 3
    assert len({node.actions["ben"].text for node in fork}) == 1


def test_a_fork_counts_the_agents_own_actions_where_agents_take_turns():
    task = Notes(horizon=4, items=1, sequential=True)  # ada, ben, ada, ben
    (tree,), counts = grown(task, ForkOn(2, agent="ben", occasion=1))
    assert [len(below) for below in tree.below()] == [1, 1, 1, 2, 0, 0]
    assert counts.generations == counts.joint_actions == 5


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_alternatives_are_further_draws_beside_the_actions_of_a_plain_chain(order):
    """Three of each agent's four draws at a history are kept; none costs a step."""
    task = Notes(horizon=2, items=1)
    (plain,), _ = grown(task)
    (tree,), counts = grown(task, CounterfactualChain(k=3), order=order)
    assert said(tree) == said(plain)
    assert (counts.generations, counts.joint_actions) == (2 * 2 * 4, 2)
    for node in tree.nodes[1:]:
        draws = {a.text for a in (*node.alternatives["ada"], node.actions["ada"])}
        assert len(node.alternatives["ada"]) == len(node.alternatives["ben"]) == 3
        assert len(draws) == 4 and all(text.startswith("ada ") for text in draws)
    assert not any(node.alternatives for node in plain.nodes)


class Best(Aligned):
    """Three joint actions, of which the best child by ada's credit goes on."""

    def samples(self, at: Any) -> Mapping[str, int]:
        return dict.fromkeys(at.acting, 3)

    def continues(self, at: Any, tried: Sequence[Round], rng: np.random.Generator) -> Sequence[int]:
        (first,) = tried
        return [max(range(3), key=lambda k: first.credits[k]["ada"])]


class Paid(Notes):
    """Pays the team 1, and ada the number that she said, at once."""

    pays = frozenset({"team", "local"})

    def step(self, state: Scene, actions: Mapping[str, str], rng: np.random.Generator) -> Any:
        after = super().step(state, actions, rng)
        number = float(actions["ada"].split()[-1]) if "ada" in actions else 0.0
        return Outcome(
            state=after.state, reward=1.0, done=after.done, local_rewards={"ada": number}
        )


def test_a_shape_chooses_children_by_credit():
    (tree,), _ = grown(Paid(horizon=2, items=1), Best(), credit=Mixed(alpha=0.5))
    first = tree.children(0)
    numbers = [float(node.actions["ada"].text.split()[-1]) for node in first]
    assert len(set(numbers)) == 3
    (expanded,) = {node.parent for node in tree.nodes if node.turn == 2}
    assert expanded == first[int(np.argmax(numbers))].index
    (by_team,), _ = grown(Paid(horizon=2, items=1), Best(), credit=SharedReward())
    # all children pay the team alike: the first of them goes on
    assert {node.parent for node in by_team.nodes if node.turn == 2} == {by_team.nodes[1].index}


class FailsOnce(Notes):
    """Its first measurement fails, as one that sets an alarm does outside the main thread."""

    failed = False

    def metrics(self, state: Scene) -> Mapping[str, float]:
        if not self.failed:
            self.failed = True
            raise ValueError("signal only works in main thread")
        return {}


def test_a_call_that_fails_and_is_repeated_adds_each_child_once():
    """The child before the one that failed was in the tree twice."""
    task = FailsOnce(items=1)
    growth = Growth(
        task,
        task.items("train")[0],
        KaryTree(2),
        SharedReward(),
        players_of(task),
        {agent: agent for agent in task.agents},
        seed=3,
        episode=0,
    )
    growth.prepare()
    (at,) = growth.start()
    root, _ = at
    children = [
        (replace(root, parent=0, path=(number,), observations={}, done=number == 1), {})
        for number in range(2)
    ]
    with pytest.raises(TaskError, match="main thread"):
        growth.settle(at, children)
    (live,) = growth.settle(at, children)
    assert [(node.index, node.path) for node in growth.nodes] == [(0, ()), (1, (0,)), (2, (1,))]
    assert live[0] is growth.nodes[1]


class Twice(KaryTree):
    """Two trees for every item."""

    def trees(self, item: Any, agents: Sequence[str], rng: np.random.Generator) -> Sequence[Any]:
        return (Chain(), KaryTree(2))


@pytest.mark.parametrize("shape", [Chain(), Parallel(2), CounterfactualChain(k=2)])
def test_trees_pickle_since_ranks_exchange_them(shape):
    trees, _ = grown(Notes(horizon=2), shape)
    assert pickle.loads(pickle.dumps(trees)) == trees


def test_several_trees_of_an_item_are_members_with_draws_of_their_own():
    trees, _ = grown(Notes(horizon=1, items=2), Twice(1))
    assert [(tree.episode, tree.member) for tree in trees] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [len(tree.nodes) for tree in trees] == [2, 3, 2, 3]
    assert said(trees[0])[1] != said(trees[1])[1]
    alone, _ = grown(Notes(horizon=1, items=2), Chain())
    assert said(trees[0]) == said(alone[0]), "the first draws as if it were the only one"


def test_a_node_holds_what_critics_may_read_and_an_ending_what_the_task_measures():
    (tree,), _ = grown(Notes(horizon=2, items=1))
    assert [node.global_info for node in tree.nodes] == ["turn 0", "turn 1", "turn 2"]
    letters = sum(len(text) for node in said(tree) for text in node.values())
    assert [node.metrics for node in tree.nodes] == [{}, {}, {"letters": float(letters)}]


# --- order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "task"),
    [
        (Chain(), Notes(horizon=3)),
        (KaryTree(2), Notes(horizon=3, ends=True)),
        (ForkOn(3, agent="ben", occasion=1), Notes(horizon=4, sequential=True)),
        (Best(), Paid(horizon=3)),
        (Twice(1), Notes(horizon=2)),
    ],
    ids=["chain", "tree", "fork", "best", "members"],
)
def test_trees_that_go_on_by_themselves_are_those_of_lockstep(shape, task):
    together, one = grown(task, shape, credit=Mixed())
    alone, other = grown(task, shape, credit=Mixed(), order="free")
    assert alone == together
    counted = (one.generations, one.joint_actions, one.tokens)
    assert (other.generations, other.joint_actions, other.tokens) == counted


# --- who sits where ------------------------------------------------------------------------------


def test_agents_swap_seats_from_episode_to_episode():
    task = Notes(horizon=1, agents=3, items=4)
    trees, _ = grown(task, cast=Swap())
    # the player of seat k sits in seat k + e
    seated = [[node.actions[a].text.split()[0] for a in task.agents] for node in last_of(trees)]
    assert seated == [
        ["ada", "ben", "cleo"],
        ["cleo", "ada", "ben"],
        ["ben", "cleo", "ada"],
        ["ada", "ben", "cleo"],
    ]
    assert [tree.player("ada") for tree in trees] == ["ada", "cleo", "ben", "ada"]
    assert [tree.cast for tree in trees][::3] == [{}, {}]


def last_of(trees: Sequence[Tree[Any]]) -> list[Any]:
    return [tree.nodes[-1] for tree in trees]


class Echo:
    """Says who asks, what is shown, and a number from the view's own generator."""

    def act(self, view: View) -> str:
        return f"{view.seat} {view.text} {len(view.state.said)} {view.rng.integers(1000)}"


def test_a_program_speaks_for_a_seat_without_tokens_and_repeats():
    task = Notes(horizon=2, items=1)
    players = players_of(task) | {"ben": Program(Echo())}
    (tree,), counts = grown(task, Parallel(2), players)
    first = tree.nodes[1].actions["ben"]
    clue = task.items("train")[0][1]
    assert first.text.rsplit(" ", 1)[0] == f"ben {clue} 0"
    assert (first.tokens, first.logprobs) == ((), ())
    assert first.text != tree.nodes[2].actions["ben"].text, "each draw has a seed of its own"
    (again,), _ = grown(task, Parallel(2), players)
    assert said(again) == said(tree)
    spoken = sum(len(n.actions["ada"].tokens) for n in tree.nodes[1:])
    assert (counts.generations, counts.tokens) == (8, spoken)


def test_a_players_version_goes_with_what_it_said():
    task = Notes(horizon=1, items=1)
    players = players_of(task)
    players["ada"] = replace(players["ada"], learner=SimpleNamespace(steps=7))
    (tree,), _ = grown(task, players=players)
    assert {a: action.version for a, action in tree.nodes[1].actions.items()} == {
        "ada": 7,
        "ben": 0,
    }


# --- contexts ------------------------------------------------------------------------------------


class Forgetful(Notes):
    """Ada's second prompt opens a new context."""

    def observe(self, state: Scene, agent: str) -> Any:
        text = super().observe(state, agent)
        if agent == "ada" and len(state.said) == 1:
            return Observation(text, fresh=True, made_from=((0, "ben"),))
        return text


def test_a_fresh_prompt_opens_a_history_of_its_own():
    (tree,), _ = grown(Forgetful(horizon=3, items=1))
    ada, ben = (tree.history(2, agent) for agent in ("ada", "ben"))
    assert len(ben.parts) == 5
    # o_1 a_1 o_2: what came before the fresh prompt is gone
    assert [part.text for part in ada.parts] == [
        tree.nodes[1].observations["ada"].text,
        tree.nodes[2].actions["ada"].text,
        tree.nodes[2].observations["ada"].text,
    ]
    chat = ChatFormat(byte_tokenizer())
    opened = tree.nodes[1].observations["ada"]
    assert opened.tokens == chat.open(opened.text).tokens
    assert (opened.fresh, opened.made_from) == (True, ((0, "ben"),))


def test_a_plain_prompt_goes_on_from_what_its_agent_said_last():
    (tree,), _ = grown(Notes(horizon=2, items=1))
    chat, node = ChatFormat(byte_tokenizer()), tree.nodes[1]
    seen = node.observations["ben"]
    assert seen.tokens == chat.continuation(seen.text, node.actions["ben"]).tokens
    assert seen.tokens != chat.open(seen.text).tokens


class Noting(Seeded):
    """Notes who asked with an empty history."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def generate(self, requests: Sequence[TokenRequest]) -> Any:
        self.opened += [request.agent for request in requests if request.continues is None]
        return super().generate(requests)


def test_a_fresh_prompt_is_read_without_what_the_generator_held():
    generator, voice = Noting(), AgentSpec(chat=ChatFormat(byte_tokenizer()))
    players = language_players(generator, dict.fromkeys(("ada", "ben"), voice))
    grown(Forgetful(horizon=3, items=1), players=players)
    assert generator.opened == ["ada", "ben", "ada"]


# --- local rewards through a pipeline ------------------------------------------------------------


class Praised(Notes):
    """Each agent earns the length of its note; at turn 1 ada also 100 for her first note."""

    pays = frozenset({"team", "local"})

    def step(self, state: Scene, actions: Mapping[str, str], rng: np.random.Generator) -> Any:
        after = super().step(state, actions, rng)
        return Outcome(
            state=after.state,
            reward=1.0,
            local_rewards={agent: float(len(text)) for agent, text in actions.items()},
            earned={(0, "ada"): 100.0} if len(after.state.said) == 2 else {},
        )


def test_a_pipeline_moves_local_rewards_to_the_micro_turns_of_their_actions():
    task = Pipeline(Praised(horizon=2, items=1))
    assert task.pays == {"team", "local"}
    (tree,), _ = grown(task)
    assert [tuple(node.actions) for node in tree.nodes[1:]] == [("ada",), ("ben",)] * 2
    assert [node.reward for node in tree.nodes[1:]] == [0.0, 1.0, 0.0, 1.0]
    lengths = [float(len(next(iter(n.actions.values())).text)) for n in tree.nodes[1:]]
    # each note's length at its own micro-turn, and the 100 at ada's first
    assert Payoff()(tree) == (
        {},
        {"ada": lengths[0] + 100.0, "ben": 0.0},
        {"ada": 0.0, "ben": lengths[1]},
        {"ada": lengths[2], "ben": 0.0},
        {"ada": 0.0, "ben": lengths[3]},
    )


def test_an_episode_begins_with_what_its_program_has_prepared() -> None:
    class Program(Notes):
        def prepare(self, item: Any) -> Any:
            return ("oak", "ash")

    (tree,), _ = grown(Program(items=1, horizon=1))
    assert tree.nodes[0].observations["ada"].text == "oak"


def test_a_program_that_cannot_be_prepared_is_an_error_of_prepare() -> None:
    class Program(Notes):
        def prepare(self, item: Any) -> Any:
            raise OSError("no port")

    with pytest.raises(TaskError, match=r"^task\.prepare: raised OSError: no port"):
        grown(Program(items=1))


def test_nobody_acts_after_a_step_that_is_done() -> None:
    class Short(Notes):
        def step(self, *arguments: Any) -> Outcome[Scene]:
            return replace(super().step(*arguments), done=True)

    (tree,), counts = grown(Short(items=1, horizon=3))
    assert counts.joint_actions == 1
    assert tree.nodes[-1].terminal


def test_a_task_that_reads_actions_is_told_who_sampled_them_after_how_many_tokens() -> None:
    class Reads(Notes):
        reads_actions = True

        def step(self, state: Scene, actions: Any, rng: np.random.Generator) -> Outcome[Scene]:
            received.append(actions)
            return super().step(state, {a: one.text for a, one in actions.items()}, rng)

    received: list[Any] = []
    task = Reads(items=1, horizon=1)
    players = players_of(task)
    (tree,), _ = grown(task, players=players)
    (actions,), root = received, tree.nodes[0]
    for agent in task.agents:
        assert actions[agent].player is players[agent]
        assert tuple(actions[agent].context) == root.observations[agent].tokens != ()


def test_an_episode_that_ends_because_a_history_is_too_long_is_abandoned_at_its_last_state() -> (
    None
):
    class Program(Notes):
        def abandon(self, state: Any) -> None:
            abandoned.append(state)

    abandoned: list[Any] = []
    task = Program(items=1)
    cast = {agent: agent for agent in task.agents}
    (item,) = task.items("train")
    growth = Growth(task, item, Chain(), SharedReward(), players_of(task), cast, seed=3, episode=0)
    ((root, _),) = growth.start()
    growth.end_overlong("ben")
    assert abandoned == [root.state]
    (last,) = growth.nodes
    assert (last.overlong, last.observations, last.metrics) == ("ben", {}, {"letters": 0.0})
