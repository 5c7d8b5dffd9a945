"""Objectives are values: they cross a process boundary, and what they do there is the same."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest
import torch

from colearn.advantage.gae import GAE
from colearn.advantage.token_gae import TokenGAE
from colearn.contract import ValueLoss
from colearn.contract.rows import Mark, Outputs, Piece, Row, RowBatch, Span
from colearn.critic.centralized import TEAM, Centralized
from colearn.critic.tokenwise import Tokenwise
from colearn.experiment.update.critic_objective import CriticObjective, bare
from colearn.experiment.update.objective import ActorObjective
from colearn.learn.batch import make_batch
from colearn.loss.policy_gradient import PolicyGradient
from colearn.types import Action, Credited, Node, Observation, Tree

SECRET = "a text that stays at home"


def tree() -> Tree[str]:
    """Two turns of one agent: h_0, an action of three tokens, h_1, one of two, the end."""
    seen, nodes = {"ada": Observation(SECRET, (5, 6))}, []
    for index, tokens in enumerate(((), (7, 8, 2), (9, 2))):
        nodes.append(
            Node(
                index=index,
                parent=index - 1 if index else None,
                path=(0,) * index,
                state=SECRET,
                observations=seen if index < 2 else {},
                global_info=SECRET,
                privileged_info=SECRET,
                actions={"ada": Action(SECRET, tokens)} if index else {},
                alternatives={"ada": (Action(SECRET, (4,)),)} if index else {},
                done=index == 2,
                metrics={SECRET: 1.0} if index == 2 else {},
            )
        )
    return Tree(item=SECRET, episode=4, agents=("ada",), nodes=tuple(nodes))


def credited(discount: float = 0.5) -> Credited[str]:
    return Credited(tree=tree(), rewards=({}, {"ada": 1.0}, {"ada": 2.0}), discount=discount)


def central(**changes: object) -> CriticObjective:
    episode = credited()
    settings = {
        "critic": Centralized(),
        "advantage": GAE(),
        "settings": ValueLoss(),
        "readers": (TEAM,),
        "episodes": (Credited(tree=bare(tree()), rewards=episode.rewards, discount=0.5),),
        "old": None,
        "total": 2,
    }
    return CriticObjective(**(settings | changes))  # type: ignore[arg-type]


def read(*marks: Mark, spans: tuple[Span, ...] = (), **fields: object) -> RowBatch:
    row = Row(
        tokens=(1, 2, 3, 4),
        pieces=(Piece(0, 4, -1, 0, 0),),
        marks=marks,
        spans=spans,
        **fields,  # type: ignore[arg-type]
    )
    return make_batch([row], 0, torch.device("cpu"))


def said(*values: float, logprobs: tuple[float, ...] = ()) -> Outputs:
    return Outputs(logprobs=torch.tensor(logprobs), entropy=None, values=torch.tensor(values))


def test_a_critics_targets_are_those_of_the_values_just_read() -> None:
    # V(h_0) = 3, V(h_1) = 4: the targets are 1 + 0.5 * 4 and 2, the errors 0 and 2
    loss, metrics = central()(said(3.0, 4.0), read(Mark(0, 1), Mark(1, 3)))
    assert loss.item() == (0.0**2 + 2.0**2) / 2
    assert metrics["target_mean"] == (3.0 + 2.0) / 2


def test_a_critics_objective_carries_no_text_and_no_ids() -> None:
    assert SECRET.encode() in pickle.dumps(tree())
    assert SECRET.encode() not in pickle.dumps(central())
    (episode,) = central().episodes
    assert [dict(node.actions) for node in episode.tree.nodes[1:]] == [
        {"ada": Action("", (0, 0, 0))},
        {"ada": Action("", (0, 0))},
    ]


def test_targets_of_tokens_need_no_ids() -> None:
    batch = read(Mark(0, 1), Mark(1, 1, inside=0), Mark(1, 2, inside=1), Mark(1, 3))
    by_token = {"critic": Tokenwise(), "advantage": TokenGAE(), "readers": ("ada",), "total": 4}
    outputs = said(1.0, 2.0, 3.0, 4.0)
    shape, whole = central(**by_token), central(**by_token, episodes=(credited(),))
    assert shape(outputs, batch)[1] == whole(outputs, batch)[1]


def test_rows_with_targets_need_no_episodes() -> None:
    batch = read(Mark(0, 1), Mark(1, 3), targets=(1.0, 1.0), old_values=(0.0, 0.0))
    loss, _ = central(episodes=())(said(2.0, 4.0), batch)
    assert loss.item() == (1.0 + 9.0) / 2


def test_objectives_are_frozen_and_the_same_behind_a_pickle() -> None:
    batch = read(spans=(Span(1, 2, 4, 1),), behaviour=(-1.0, -2.0), advantages=(3.0,))
    actor = ActorObjective.of(PolicyGradient(), ValueLoss(), [[*batch.rows]])
    outputs = said(logprobs=(-1.0, -2.5))
    again = pickle.loads(pickle.dumps(actor))
    assert again == actor and (actor.samples, actor.tokens, actor.marks) == (1, 2, 0)
    assert again(outputs, batch)[1] == actor(outputs, batch)[1]
    with pytest.raises(FrozenInstanceError):
        actor.marks = 7  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        central().total = 7  # type: ignore[misc]
