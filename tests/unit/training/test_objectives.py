"""Objectives are values: they cross a process boundary, and what they do there is the same."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest
import torch

from colearn.contract import ValueLoss
from colearn.contract.rows import ActionTokens, Mark, Outputs, Piece, Row, RowBatch
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.methods.advantage.gae import GAE
from colearn.methods.critic.centralized import TEAM, Centralized
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.methods.values.critics import CriticObjective, without_states
from colearn.training.learners.batch import make_batch
from colearn.training.update.objective import ActorObjective

TEXT = "a text"


def tree() -> Tree[str]:
    """Two turns of one agent: h_0, an action of three tokens, h_1, one of two, the end."""
    seen, nodes = {"ada": Observation(TEXT, (5, 6))}, []
    for index, tokens in enumerate(((), (7, 8, 2), (9, 2))):
        nodes.append(
            Node(
                index=index,
                parent=index - 1 if index else None,
                path=(0,) * index,
                state="a state",
                observations=seen if index < 2 else {},
                global_info=TEXT,
                privileged_info=TEXT,
                actions={"ada": Action(TEXT, tokens)} if index else {},
                alternatives={"ada": (Action(TEXT, (4,)),)} if index else {},
                done=index == 2,
                metrics={TEXT: 1.0} if index == 2 else {},
            )
        )
    return Tree(item="an item", episode=4, agents=("ada",), nodes=tuple(nodes))


def credited(discount: float = 0.5) -> Tree[str]:
    return tree().credited(({}, {"ada": 1.0}, {"ada": 2.0}), discount=discount)


def central(**changes: object) -> CriticObjective:
    settings = {
        "settings": ValueLoss(),
        "total": 2,
        "critic": Centralized(),
        "advantage": GAE(),
        "episodes": {5: without_states(credited())},
    }
    return CriticObjective(**(settings | changes))  # type: ignore[arg-type]


def read(*marks: Mark, spans: tuple[ActionTokens, ...] = (), **fields: object) -> RowBatch:
    row = Row(
        tree=5,
        reader=TEAM,
        tokens=(1, 2, 3, 4),
        pieces=(Piece(0, 4, -1, 0, 0),),
        marks=marks,
        spans=spans,
        **fields,  # type: ignore[arg-type]
    )
    return make_batch([row], torch.device("cpu"))


def said(*values: float, logprobs: tuple[float, ...] = ()) -> Outputs:
    return Outputs(logprobs=torch.tensor(logprobs), entropy=None, values=torch.tensor(values))


def test_a_critics_targets_are_those_of_the_values_just_read() -> None:
    # V(h_0) = 3, V(h_1) = 4: the targets are 1 + 0.5 * 4 and 2, the errors 0 and 2
    loss, metrics = central()(said(3.0, 4.0), read(Mark(0, 1), Mark(1, 3)))
    assert loss.item() == (0.0**2 + 2.0**2) / 2
    assert metrics["target_mean"] == (3.0 + 2.0) / 2


def test_a_critics_objective_carries_no_state_of_the_task() -> None:
    """Where a learner is in another process, a state need not be picklable."""
    whole = credited()
    pickled = pickle.dumps(central())
    assert b"a state" in pickle.dumps(whole) and b"a state" not in pickled
    assert b"an item" in pickle.dumps(whole) and b"an item" not in pickled
    assert pickle.loads(pickled).episodes[5].nodes[1].actions == whole.nodes[1].actions


def test_rows_with_targets_need_no_episodes() -> None:
    batch = read(Mark(0, 1), Mark(1, 3), targets=(1.0, 1.0), old_values=(0.0, 0.0))
    loss, _ = central(episodes=None)(said(2.0, 4.0), batch)
    assert loss.item() == (1.0 + 9.0) / 2


def test_objectives_are_frozen_and_the_same_behind_a_pickle() -> None:
    batch = read(spans=(ActionTokens(1, 2, 4, 1),), behaviour=(-1.0, -2.0), advantages=(3.0,))
    actor = ActorObjective.of(PolicyGradient(), ValueLoss(), batch.rows)
    outputs = said(logprobs=(-1.0, -2.5))
    again = pickle.loads(pickle.dumps(actor))
    assert again == actor and (actor.samples, actor.tokens, actor.marks) == (1, 2, 0)
    assert again(outputs, batch)[1] == actor(outputs, batch)[1]
    with pytest.raises(FrozenInstanceError):
        actor.marks = 7  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        central().total = 7  # type: ignore[misc]
