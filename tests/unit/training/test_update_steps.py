"""Which model takes a step when, on which values, by hand: learners of one number, no networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from one_number import OneNumber
from trees import chain
from updates import new_critics, new_updater

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.magrpo import MAGRPO
from colearn.contract.algorithm import ValueLoss
from colearn.contract.types import Tree
from colearn.methods.advantage.gae import GAE
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.methods.values.given import GivenCritics
from colearn.methods.values.item_means import ItemMeans
from colearn.rollout.agents import AgentSpec
from colearn.training.learners.minibatch import UpdateSchedule
from colearn.training.update.updater import Updater

PLAIN: dict[str, Any] = {"advantage": GAE(), "loss": PolicyGradient(), "value_loss": ValueLoss()}
FROZEN = PLAIN | {"value_loss": ValueLoss(frozen_targets=True)}


def episodes(*returns: float) -> list[Tree[Any]]:
    """Episodes of one joint action, each of an item of its own."""
    return [replace(chain([reward]), item=str(n)) for n, reward in enumerate(returns)]


def team_of(
    algorithm: Any, events: list[str], *, kl: Sequence[float] = (0.0, 0.0), **settings: Any
) -> Updater:
    """Alice and Bob, and one value model if the algorithm has a critic."""
    parts = algorithm.parts()
    actors: Any = {
        name: OneNumber(name, events, kl=moved)
        for name, moved in zip(("alice", "bob"), kl, strict=True)
    }
    critic = None
    if parts.critic is not None:
        learners: Any = {"team": OneNumber("critic", events, number=1.0)}
        critic = new_critics(parts.critic, learners)
    return new_updater(parts, actors, critic=critic, **settings)


def steps(events: Sequence[str]) -> list[str]:
    return [event.split()[0] for event in events if event.endswith(" steps")]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("minibatch", [None, 1])
def test_the_share_of_a_residual_is_fitted_on_values_before_any_step_on_their_returns(
    frozen: bool, minibatch: int | None
) -> None:
    """The network's residual f is its number, which starts at 1 and grows by 1 with each step.

    One minibatch: f = 1 for both episodes, and both agents have the team's value: sum f^2 = 4 of
    4 values. Minibatches of one episode and values that follow the critic: f is 1 and then 2, and
    sum f^2 = 10.
    """
    means = ItemMeans()
    algorithm = CoLLMCC(**(FROZEN if frozen else PLAIN))
    updater = team_of(
        algorithm, [], epochs=3, minibatch=minibatch, item_baseline=True, item_means=means
    )
    critic: Any = updater.critic
    updater.update(episodes(0.0, 4.0), 0)
    assert critic.learners["team"].steps == (3 if minibatch is None else 6)
    later = 1.0 if frozen or minibatch is None else 2.0  # f of the episode that comes second
    assert means.state["team\x1f0\x1f\x1fsquare"] == (2 * (1.0 + later**2), 4.0)


def test_the_critic_line_judges_the_values_before_any_step_on_their_returns() -> None:
    """G = 0 and 4, values of 1: errors of -1 and 3, whose mean square is 5."""
    updater = team_of(CoLLMCC(**PLAIN), [], epochs=4)
    updater.update(episodes(0.0, 4.0), 0)
    line = updater.critic_line
    assert line is not None
    assert [turn.error_square for turn in line.turns] == [5.0]


@pytest.mark.parametrize("alone", [0, 1, 3])
def test_actors_wait_for_the_iterations_of_the_critic_alone(alone: int) -> None:
    events: list[str] = []
    updater = team_of(CoLLMCC(**PLAIN), events, critic_alone=alone)
    by_iteration = []
    for iteration in range(4):
        events.clear()
        updater.update(episodes(0.0, 4.0), iteration)
        by_iteration.append(steps(events))
    expected = [["critic"]] * alone + [["critic", "alice", "bob"]] * (4 - alone)
    assert by_iteration == expected


def test_a_critic_with_a_schedule_has_taken_all_its_steps_before_an_actor_takes_one() -> None:
    events: list[str] = []
    updater = team_of(CoLLMCC(**FROZEN), events, epochs=2, critic_schedule=UpdateSchedule(3, None))
    updater.update(episodes(0.0, 4.0), 0)
    assert steps(events) == ["critic"] * 3 + ["alice", "bob"] * 2


@pytest.mark.parametrize(("epochs", "read"), [(1, []), (2, ["a", "b"])])
def test_old_log_probabilities_are_read_for_models_that_take_several_steps(
    epochs: int, read: list[str]
) -> None:
    """The ratio of a model's only step is 1 without them."""
    events: list[str] = []
    updater = team_of(
        MAGRPO(loss=PolicyGradient(ratio="token", clip=0.2)),
        events,
        epochs=epochs,
    )
    tree = chain([1.0])
    updater.update([replace(tree, item="0"), replace(chain([0.0]), item="0")], 0)
    readers = [event[0] for event in events if event.endswith(" reads")]
    assert readers == [name[0] for name in read]


def test_a_frozen_critic_is_centred_on_the_first_returns_alone_and_trained_after_its_share() -> (
    None
):
    """G = 3 and 5 against values of 1: shifted by 3. The scale of its returns is 1 +- 1."""
    events: list[str] = []
    manifest: Any = SimpleNamespace(centre=1.0, deviation=1.0)
    given = GivenCritics({"team": manifest}, frozen=0.5)
    updater = team_of(CoLLMCC(**PLAIN), events, given=given)
    told = []
    for iteration, done in enumerate((0.0, 0.25, 0.5, 0.75)):
        events.clear()
        updater.update(episodes(3.0, 5.0), iteration, done)
        told.append("critic" in steps(events))
    critic: Any = updater.critic
    assert critic.learners["team"].shifts == [3.0]
    assert told == [False, False, True, True]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_reference_becomes_the_policy_after_every_so_many_updates(every: int) -> None:
    events: list[str] = []
    reference: Any = SimpleNamespace(
        copy_weights=lambda: events.append("reference copies"),
        evaluate=lambda rows: OneNumber("reference", events).evaluate(rows),
    )
    loss = PolicyGradient(kl=0.5, reference_update_every=every)
    updater = team_of(CoLLMCC(**PLAIN | {"loss": loss}), events)
    updater.references = {"alice": reference}
    copied = []
    for iteration in range(6):
        events.clear()
        updater.update(episodes(0.0, 4.0), iteration)
        copied.append("reference copies" in events)
        if copied[-1]:  # once every step has been taken
            assert events[-1] == "reference copies"
    assert copied == [(iteration + 1) % every == 0 for iteration in range(6)]


@pytest.mark.parametrize(("kl", "epochs"), [((0.3, 0.1), 3), ((0.3, 0.2), 1), ((0.1, 0.3), 3)])
def test_epochs_end_by_the_mean_divergence_of_the_models(kl: Any, epochs: int) -> None:
    """The limit is 0.2, which a mean of exactly 0.2 does not exceed."""
    updater = team_of(CoLLMCC(**FROZEN), [], kl=kl, epochs=3, target_kl=0.2 + 1e-9)
    updater.update(episodes(0.0, 4.0), 0)
    assert updater.actors.learners["alice"].steps == epochs


def test_rows_have_the_temperature_at_which_their_trees_were_sampled() -> None:
    """A temperature falls from 1 to 0 over the budget; trees may be older than the update."""
    team = team_of(CoLLMCC(**PLAIN), [])
    spec: Any = SimpleNamespace(model="alice", window=None, temperature_at=lambda done: 1.0 - done)
    specs = {"alice": spec, "bob": AgentSpec(model="bob")}
    updater = replace(team, actors=replace(team.actors, specs=specs))
    learner: Any = updater.actors.learners["alice"]
    updater.update(episodes(0.0, 4.0), 0, 0.5, sampled_at=0.25)
    assert {row.temperature for row in learner.rows} == {0.75}
    updater.update(episodes(0.0, 4.0), 0, 0.5)
    assert {row.temperature for row in learner.rows} == {0.5}
