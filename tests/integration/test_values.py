"""Which values an update reads and learns, by hand: from a head on the actor, at rollout, in each
minibatch, of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from local_learners import Recorder, local_learner, relative
from tiny import Cast, Notes, cast, play, tiny_model
from updates import (
    head_of,
    new_critics,
    new_updater,
    passes_of,
    value_gradients,
    value_network,
)

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.collm_dc import CoLLMDC
from colearn.algorithms.coma import COMA
from colearn.config import OptimizerSettings
from colearn.contract import ValueLoss
from colearn.contract.types import Tree
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.token_gae import TokenGAE
from colearn.methods.critic.counterfactual import Counterfactual
from colearn.methods.critic.tokenwise import Tokenwise
from colearn.methods.values import critics as value_models
from colearn.methods.values.critics import Critics
from colearn.methods.values.item_means import ItemMeans
from colearn.models.network import Network
from colearn.training.learners.learner import NetworkLearner
from colearn.training.update import objective
from colearn.training.update.updater import Updater

Kind = Callable[[str, Network, OptimizerSettings], NetworkLearner]
PLAIN: dict[str, Any] = {"advantage": GAE(), "value_loss": ValueLoss()}
EARLIER = {"product": 1.0, "square": 2.0}
"""Sums of earlier iterations by which a residual has the share c = 0.5."""


def learner_of(name: str, network: Network, kind: Kind = Recorder) -> NetworkLearner:
    return kind(name, network, OptimizerSettings(learning_rate=1e-2))


def updater_of(algorithm: Any, team: Cast, *, share: bool, **settings: Any) -> Updater:
    """Critics on the actors (`share`), or one model for every reader."""
    parts = algorithm.parts()
    agents = tuple(team.voices)
    kind = settings.pop("kind", Recorder)
    networks = {
        agent: Network(team.bases[agent], head=head_of(number) if share else None)
        for number, agent in enumerate(agents)
    }
    critics = None
    if not share:
        critics = critics_of(parts.critic, agents, kind)
    actors = {agent: learner_of(agent, network) for agent, network in networks.items()}
    return new_updater(parts, actors, critic=critics, shared_head=share, **settings)


def critics_of(critic: Any, agents: Sequence[str], kind: Kind = Recorder) -> Critics:
    learners = {
        reader: learner_of(reader, value_network(20 + number, dtype=torch.float32), kind)
        for number, reader in enumerate(critic.readers(tuple(agents)))
    }
    return new_critics(critic, learners)


Stage = tuple[Cast, list[Tree[Any]]]


@pytest.fixture(scope="module")
def stage() -> Stage:
    """A team with a model each, which no test here moves, and four episodes of three turns."""
    team = cast(shared=False)
    return team, play(Notes(items=4), team)


def advantages_of(updater: Updater, agent: str, trees: Sequence[Tree[Any]]) -> list[dict[int, Any]]:
    """What an agent's rows hold in each step, by the episode."""
    passes = passes_of(updater.actors.learners[agent])
    updater.update(trees, 0)
    return [{row.tree: row.advantages for row in one.rows} for one in passes]


# --- a head on the actor -------------------------------------------------------------------------


def states(model: Any, tree: Tree[Any], agent: str) -> list[torch.Tensor]:
    """The last hidden state of the agent's history before each of its actions of a chain."""
    inner = [node for node in tree.nodes if not node.terminal]
    return [
        model.model(
            input_ids=torch.tensor([list(tree.history(node.index, agent).tokens)])
        ).last_hidden_state[0, -1]
        for node in inner
    ]


def td_errors(tree: Tree[Any], values: Sequence[float]) -> list[float]:
    ahead = [*values[1:], 0.0]
    rewards = [node.reward for node in tree.nodes[1:]]
    return [r + after - v for r, after, v in zip(rewards, ahead, values, strict=True)]


def test_a_head_on_the_actor_is_trained_beside_the_policy_on_its_own_histories() -> None:
    """-(1/S) sum of A log pi and (1/S) sum of (r + V(h') - V(h))^2 by hand, through one model."""
    team = cast(shared=False, dtype=torch.float64)
    trees = play(Notes(horizon=2, items=2), team)
    updater = updater_of(CoLLMDC(**PLAIN), team, share=True)
    metrics = updater.update(trees, 0)
    for number, agent in enumerate(team.voices):
        model, head = tiny_model(seed=number, dtype=torch.float64), head_of(number)
        policy, squares, count = torch.zeros(()), torch.zeros(()), 0
        for tree in trees:
            values = [head(state[None])[0] for state in states(model, tree, agent)]
            errors = td_errors(tree, [value.item() for value in values])
            for turn, (value, error) in enumerate(zip(values, errors, strict=True)):
                history = list(tree.history(turn, agent).tokens)
                action = tree.nodes[turn + 1].actions[agent].tokens
                scores = model(input_ids=torch.tensor([[*history, *action]])).logits[0]
                chosen = scores.log_softmax(-1)[len(history) - 1 : -1]
                policy = policy - error * chosen.gather(1, torch.tensor(action)[:, None]).sum()
                squares = squares + (value.item() + error - value) ** 2
                count += 1
        ((policy + squares) / count).backward()
        by_hand = {f"model.{n}": p.grad for n, p in model.named_parameters()}
        by_hand |= {f"head.{n}": p.grad for n, p in head.named_parameters()}
        gradient = updater.actors.learners[agent].recorded  # type: ignore[attr-defined]
        assert relative(by_hand, gradient) < 1e-5
        assert metrics[f"{agent}/value_loss"] == pytest.approx(squares.item() / count, rel=1e-5)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_minibatch_has_the_advantages_of_its_own_episodes(stage: Stage, frozen: bool) -> None:
    team, trees = stage
    settings = PLAIN | {"value_loss": ValueLoss(frozen_targets=frozen)}
    updater = updater_of(CoLLMDC(**settings), team, share=True, minibatch=6)
    model, head = team.bases["ben"].causal, head_of(1)
    by_epoch = advantages_of(updater, "ben", trees)
    assert [len(step) for step in by_epoch] == [2, 2]
    by_episode = by_epoch[0] | by_epoch[1]
    assert by_episode.keys() == {0, 1, 2, 3}
    for number, tree in enumerate(trees):
        with torch.no_grad():
            values = [head(state[None]).item() for state in states(model, tree, "ben")]
        assert by_episode[number] == pytest.approx(td_errors(tree, values), abs=1e-5)


@pytest.mark.parametrize("frozen", [False, True])
def test_with_item_means_every_epoch_has_values_with_the_share_of_earlier_iterations(
    stage: Stage, frozen: bool
) -> None:
    """A value is m + c f with c = 0.5, whatever this iteration's values say about c."""
    team, trees = stage
    sums = [f"team\x1f{turn}\x1f\x1f" for turn in range(3)]
    state = {key + name: (size, 1.0) for key in sums for name, size in EARLIER.items()}
    settings = PLAIN | {"value_loss": ValueLoss(frozen_targets=frozen)}
    means = ItemMeans(state)
    updater = updater_of(
        CoLLMCC(**settings), team, share=False, epochs=2, item_baseline=True, item_means=means
    )
    critics = updater.critic
    assert critics is not None
    episodes = updater.parts.credited(trees)
    usual = ItemMeans().offsets(critics.critic, episodes)
    rows = critics.rows(trees, baselines=usual)
    read = critics.read(trees, rows, range(len(trees)))
    first, second = advantages_of(updater, "ben", trees)
    assert first == second
    for number, tree in enumerate(trees):
        mean_and_read = zip(usual[number]["ben"].values(), read[number]["ben"][:3], strict=True)
        values = [mean + 0.5 * (value - mean) for mean, value in mean_and_read]
        assert first[number] == pytest.approx(td_errors(tree, values), abs=1e-5)
    # the eight values of each turn were compared once: 4 episodes, 2 agents
    assert {means.state[key + "square"][1] for key in sums} == {0.75 + 8.0}


def test_values_that_rows_of_their_own_are_read_for_have_the_item_means_too(stage: Stage) -> None:
    """Q = m + c f with c = 0.5, and a network that predicts f = 0 everywhere: each value is m."""
    team, _ = stage
    parts = COMA().parts()
    trees = play(Notes(items=4), team, parts.rollout)
    sums = [f"team\x1f{turn}\x1f\x1f" for turn in range(3)]
    state = {key + name: (size, 1.0) for key in sums for name, size in EARLIER.items()}
    network = value_network(20, size=0.0, dtype=torch.float32)
    critics = new_critics(Counterfactual(), {"team": learner_of("team", network)})
    actors = {agent: learner_of(agent, team.network(agent)) for agent in team.voices}
    updater = new_updater(
        parts, actors, critic=critics, item_baseline=True, item_means=ItemMeans(state)
    )
    by_tree = ItemMeans().offsets(Counterfactual(), parts.credited(trees))
    usual = [mean for one in by_tree for of_turns in one.values() for mean in of_turns.values()]
    metrics = updater.update(trees, 0)
    assert len(usual) == 4 * 2 * 3
    assert metrics["critic/value_mean"] == pytest.approx(sum(usual) / len(usual))


# --- at rollout ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "reads"),
    [(ValueLoss(), 0), (ValueLoss(clip=0.2), 1), (ValueLoss(frozen_targets=True), 1)],
    ids=["plain", "clip", "frozen"],
)
def test_values_at_rollout_are_read_where_something_asks_for_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, settings: ValueLoss, reads: int
) -> None:
    team, trees = stage
    updater = updater_of(CoLLMCC(**PLAIN | {"value_loss": settings}), team, share=False)
    assert updater.critic is not None
    learner, calls = updater.critic.learners["team"], []
    real = learner.evaluate
    monkeypatch.setattr(learner, "evaluate", lambda rows: calls.append(rows) or real(rows))
    updater.update(trees[:1], 0)
    assert len(calls) == reads


def test_a_clipped_value_is_held_to_that_of_its_own_state_at_rollout(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the critic moves, in every minibatch of every epoch."""
    team, trees = stage
    settings = PLAIN | {"value_loss": ValueLoss(clip=0.2)}
    updater = updater_of(
        CoLLMCC(**settings), team, share=False, epochs=2, minibatch=6, kind=local_learner
    )
    assert updater.critic is not None
    before = [[v for v in one["ada"] if v is not None] for one in updater.critic.values(trees)]
    real, calls = value_models.value_loss, []

    def noted(values: Any, targets: Any, olds: Any, *rest: Any) -> Any:
        calls.append((values.tolist(), olds.tolist()))
        return real(values, targets, olds, *rest)

    monkeypatch.setattr(value_models, "value_loss", noted)
    updater.update(trees, 0)
    first, _, third, _ = calls
    assert first[0] == pytest.approx(first[1], abs=1e-5), "nothing has moved yet"
    assert third[0] != pytest.approx(third[1], abs=1e-2)
    for epoch in (calls[:2], calls[2:]):
        held = [olds[cut : cut + 3] for _, olds in epoch for cut in (0, 3)]
        assert sorted(held) == [pytest.approx(own, abs=1e-5) for own in sorted(before)]


def test_a_clipped_value_of_a_head_on_the_actor_is_held_to_that_of_its_own_state(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first step nothing has moved, so each value equals the one at rollout."""
    team, trees = stage
    updater = updater_of(CoLLMDC(**PLAIN | {"value_loss": ValueLoss(clip=0.2)}), team, share=True)
    real, calls = objective.value_loss, []

    def noted(values: Any, targets: Any, olds: Any, *rest: Any) -> Any:
        calls.append((values.tolist(), olds.tolist()))
        return real(values, targets, olds, *rest)

    monkeypatch.setattr(objective, "value_loss", noted)
    updater.update(trees, 0)
    assert len(calls) == len(team.voices)
    for values, olds in calls:
        assert olds == pytest.approx(values, abs=1e-5)
        assert max(values) - min(values) > 1e-2


def test_a_critic_reads_the_trees_that_it_is_given_and_no_earlier_ones(stage: Stage) -> None:
    """As many, but others."""
    team, trees = stage
    critics = critics_of(CoLLMCC().critic, tuple(team.voices))
    episodes = CoLLMCC(**PLAIN).parts().credited(trees)
    assert critics.values(trees[:1]) != critics.values(trees[1:2])
    for number in (0, 1, 1, 0):
        (values,), _ = value_gradients(critics, GAE(), [episodes[number]])
        (alone,) = critics.values([trees[number]])
        assert values["ada"][:3] == pytest.approx(alone["ada"][:3], abs=1e-5)


@pytest.mark.parametrize("share", [False, True], ids=["own model", "on the actor"])
def test_each_head_starts_at_the_returns_of_its_own_agent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, share: bool
) -> None:
    team, trees = stage
    own = {"ada": 1.0, "ben": 10.0}
    monkeypatch.setattr(
        Tree,
        "returns_of",
        lambda self, agent: (own[agent] * (1 + self.episode),) * len(self.nodes),
    )
    updater = updater_of(
        CoLLMDC(**PLAIN | {"value_loss": ValueLoss(rescale=True)}), team, share=share
    )
    updater.update(trees[:2], 0)
    learners = updater.actors.learners if updater.critic is None else updater.critic.learners
    # the means of 1 and 2, and of 10 and 20
    for agent, centre in (("ada", 1.5), ("ben", 15.0)):
        head = learners[agent].network.head  # type: ignore[attr-defined]
        assert head.scale[0].item() == pytest.approx(centre)


# --- an agent that never acts ---------------------------------------------------------------------


def ada_alone(team: Cast) -> list[Tree[Any]]:
    """Two episodes that end before it would have been ben's turn."""
    return play(Notes(items=2, horizon=1, sequential=True), team)


@pytest.mark.parametrize("share", [False, True], ids=["own model", "on the actor"])
def test_an_agent_that_never_acts_in_an_iteration_makes_no_step(share: bool) -> None:
    """A role that no episode needed has no token to read, nor an old log-probability."""
    team = cast(shared=False)
    updater = updater_of(CoLLMDC(**PLAIN), team, share=share, epochs=2)
    updater.update(ada_alone(team), 0)
    stepped = {
        name: learner.recorded is not None for name, learner in updater.actors.learners.items()
    }  # type: ignore[attr-defined]
    assert stepped == {"ada": True, "ben": False}


def test_the_head_of_an_agent_that_never_acts_keeps_its_scale() -> None:
    team = cast(shared=False)
    algorithm = CoLLMDC(**PLAIN | {"value_loss": ValueLoss(rescale=True)})
    updater = updater_of(algorithm, team, share=False)
    updater.update(ada_alone(team), 0)
    assert updater.critic is not None
    heads = {name: one.network.head for name, one in updater.critic.learners.items()}  # type: ignore[attr-defined]
    assert heads["ada"].scale[2].item() == 1.0, "told once"
    assert heads["ben"].scale.tolist() == [0.0, 1.0, 0.0]


def test_where_nobody_who_is_trained_acts_there_are_no_values_to_report() -> None:
    team = cast(shared=False)
    trees = ada_alone(team)  # ada is played by a program, say
    updater = updater_of(CoLLMDC(**PLAIN), team, share=True)
    del updater.actors.learners["ada"]  # type: ignore[attr-defined]
    assert "critic/value_mean" not in updater.update(trees, 0)


# --- a rival in an agent's seat -------------------------------------------------------------------


def test_a_critic_learns_nothing_from_a_rival_in_its_agents_seat() -> None:
    """Its value is that of how the agent plays on; the rival's games are as if they were not."""
    team = cast(shared=False)
    own, other = play(Notes(items=2, horizon=2), team)
    rival = replace(other, cast={"ben": "rival"})
    gradients = []
    for trees in ([own, rival], [own]):
        updater = updater_of(CoLLMDC(**PLAIN), team, share=False)
        updater.update(trees, 0)
        assert updater.critic is not None
        gradients.append(updater.critic.learners["ben"].recorded)  # type: ignore[attr-defined]
    assert relative(*gradients) < 1e-5


def test_a_rivals_actions_have_no_advantage_to_normalise_by() -> None:
    """Of eight actions in two games the rival's two have none."""
    team = cast(shared=False)
    own, other = play(Notes(items=2, horizon=2), team)
    algorithm = CoLLMDC(**PLAIN | {"advantage": GAE(normalize=True)})
    updater = updater_of(algorithm, team, share=False)
    metrics = updater.update([own, replace(other, cast={"ben": "rival"})], 0)
    assert metrics["advantage/actions"] == 8 - 2


# --- of tokens -----------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True], ids=["current", "frozen and clipped"])
def test_a_critic_of_tokens_learns_the_target_of_every_token(stage: Stage, frozen: bool) -> None:
    team, trees = stage[0], stage[1][:2]
    advantage, settings = (
        TokenGAE(lam=0.5),
        ValueLoss(frozen_targets=frozen, clip=0.1 if frozen else None),
    )
    critics = critics_of(Tokenwise(), tuple(team.voices))
    episodes = CoLLMCC(**PLAIN).parts().credited(trees)
    read = critics.values(trees)
    targets = advantage.targets(episodes, read)
    rollout = read if frozen else None
    values, metrics = value_gradients(critics, advantage, episodes, settings, rollout)
    means, errors = [], []
    for agent in team.voices:
        pairs = [
            (value, target)
            for one, aims in zip(read, targets, strict=True)
            for value, target in zip(flat(one[agent]), flat(aims[agent]), strict=True)
        ]
        assert len(pairs) > 12
        means.append(sum(target for _, target in pairs) / len(pairs))
        errors.append(sum((value - target) ** 2 for value, target in pairs) / len(pairs))
    assert metrics["target_mean"] == pytest.approx(sum(means) / 2, rel=1e-4)
    assert metrics["value_loss"] == pytest.approx(sum(errors) / 2, rel=1e-4)
    for one, other in zip(values, read, strict=True):
        for agent in team.voices:
            assert flat(one[agent]) == pytest.approx(flat(other[agent]), abs=1e-5)


def flat(values: Any) -> list[float]:
    """Of every state with a value, and of every token after the first of an action."""
    return [v for v in values.by_node if v is not None] + [v for own in values.inside for v in own]
