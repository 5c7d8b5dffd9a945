"""The first iterations may train the critic alone."""

from __future__ import annotations

import pytest
from tiny import Notes, cast, play
from updates import updater_of

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.config import CriticSettings

TWO = {"epochs": 2, "minibatch": 6, "critic_alone": 2}


def weights(learners):
    return {
        name: {key: value.detach().clone() for key, value in learner.parameters.items()}
        for name, learner in learners.items()
    }


def moved(learners, before):
    """The names of the learners of which some weight differs."""
    return {
        name
        for name, learner in learners.items()
        if any(not value.equal(before[name][key]) for key, value in learner.parameters.items())
    }


def test_only_the_critic_moves_until_its_iterations_are_over():
    team = cast(shared=False)
    trees = play(Notes(items=4), team)
    updater = updater_of(CoLLMCC(), team, **TWO)
    by_iteration = []
    for iteration in range(3):
        actors = weights(updater.actors.learners)
        critics = weights(updater.critic.learners)
        metrics = updater.update(trees, iteration)
        told = {name for name in team.voices if f"{name}/grad_norm" in metrics}
        assert told == moved(updater.actors.learners, actors)
        assert moved(updater.critic.learners, critics) == {"team"}
        assert metrics["optimizer_steps"] == 4  # two epochs of two minibatches
        by_iteration.append(told)
    assert by_iteration == [set(), set(), set(team.voices)]


def test_the_critic_learns_in_them_as_it_does_beside_its_actors():
    team = cast(shared=False)
    trees = play(Notes(items=4), team)
    after = []
    for critic_alone in (0, 1):
        updater = updater_of(CoLLMCC(), cast(shared=False), critic_alone=critic_alone)
        updater.update(trees, 0)
        after.append(weights(updater.critic.learners))
    one, other = after
    assert all(value.equal(other["team"][key]) for key, value in one["team"].items())


def test_a_value_head_on_the_actors_has_no_iterations_of_its_own():
    with pytest.raises(ValueError, match="warmup_iterations needs a critic of its own; set path"):
        CriticSettings(share="actor", warmup_iterations=2)
