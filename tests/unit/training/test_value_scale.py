"""Which returns a value head's scale follows, by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from credited import credited
from trees import tree

from colearn.methods.critic.centralized import Centralized
from colearn.methods.critic.decentralized import Decentralized
from colearn.training.update.actors import Actors
from colearn.training.update.value_scale import head_returns

TWO_TURNS = tree([(0, 1.0), (1, 2.0)])
"""Both agents act in two turns; the returns are 1 + 2 and 2."""


def heads_on(*agents: str) -> Actors:
    """Trained agents, each with a model and a value head of its own; its learner is its name."""
    specs: Any = {agent: SimpleNamespace(model=agent) for agent in agents}
    learners: Any = {agent: agent for agent in agents}
    return Actors(specs=specs, learners=learners, critic=Decentralized())


def test_an_agent_that_comes_after_a_rival_gives_its_head_its_returns() -> None:
    played = credited([replace(TWO_TURNS, cast={"alice": "past-0"})])
    heads = heads_on("alice", "bob")
    assert head_returns(heads, heads.learns, played, None) == [("bob", [3.0, 2.0])]


def test_an_agent_without_item_means_gives_its_whole_returns() -> None:
    means = {"alice": {0: 0.5, 1: 0.25}}
    heads = heads_on("alice", "bob")
    scaled = head_returns(heads, heads.learns, credited([TWO_TURNS]), [means])
    assert scaled == [("alice", [2.5, 1.75]), ("bob", [3.0, 2.0])]


def test_a_rival_before_an_agent_takes_none_of_its_returns_from_a_shared_value_model() -> None:
    played = credited([replace(TWO_TURNS, cast={"alice": "past-0"})])
    shared: Any = SimpleNamespace(
        critic=Centralized(), model_of=lambda tree, reader: "critic", learners={"critic": "V"}
    )
    scaled = head_returns(shared, heads_on("alice", "bob").learns, played, None)
    assert scaled == [("V", [3.0, 2.0])]
