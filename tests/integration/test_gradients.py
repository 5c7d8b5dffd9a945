"""Gradients: of what is trained, of nothing else, and however the minibatch is cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from credited import credited
from hand_gradients import reinforce
from local_learners import gradients, local_learner, relative
from tiny import Notes, branch_parts, cast, play, register, save_model, tiny_model
from updates import new_critics, new_updater, value_gradients, value_network

from colearn.algorithms.collm_cc import CoLLMCC
from colearn.algorithms.collm_dc import CoLLMDC
from colearn.algorithms.magrpo import MAGRPO
from colearn.config import Config, OptimizerSettings
from colearn.contract import Parts, Sampling
from colearn.contract.algorithm import ValueLoss
from colearn.contract.types import Action
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.q_value import QValue
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from colearn.training.learners.batch import evaluate
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater
from colearn.training.update.objective import ActorObjective

SAME = 1e-6
"""Relative gap of gradients in float64 (the logits and the value head are float32)."""
CPU = torch.device("cpu")
SETTINGS = OptimizerSettings(learning_rate=1e-3)


def learner_of(network, *, budget=4096, entropy=False):
    return local_learner("x", network, SETTINGS, token_budget=budget, entropy=entropy)


def parts_of(loss):
    """Parts of which only the loss matters."""
    return Parts(rollout=Chain(), credit=SharedReward(), advantage=GAE(), loss=loss)


def scored(row, rng):
    """A row with advantages and with log-probabilities of other policies close to its own."""
    noise = rng.normal(0.0, 0.05, (2, row.action_tokens))
    return replace(
        row,
        advantages=tuple(rng.normal(size=len(row.spans)).tolist()),
        old_logprobs=tuple((np.array(row.behaviour) + noise[0]).tolist()),
        ref_logprobs=tuple((np.array(row.behaviour) + noise[1]).tolist()),
    )


@pytest.fixture(scope="module")
def stage():
    """A float64 team on one model, and every agent's rows of chains and trees."""
    team = cast(dtype=torch.float64)
    rng = np.random.default_rng(0)
    trees = play(Notes(ends=True, items=3), team, KaryTree(2))
    trees += play(Notes(horizon=4), team)
    rows = [scored(row, rng) for tree in trees for a in tree.agents for row in team.rows(tree, a)]
    return team, trees, rows


def policy_gradient(network, rows, loss, budget):
    """Gradient of one policy loss over all rows, and the sizes of the micro-batches."""
    learner = learner_of(network, budget=budget, entropy=loss.needs_entropy)
    parts = parts_of(loss)
    objective = ActorObjective.of(parts.loss, parts.value_loss, rows)
    sizes = []

    def counted(outputs, batch):
        sizes.append(len(batch.rows))
        return objective(outputs, batch)

    metrics = learner.accumulate(rows, counted).metrics
    return gradients(learner), sizes, metrics


LOSSES = {
    "of actions": PolicyGradient(),
    "of tokens": PolicyGradient(ratio="token", reduction="token_mean", clip=0.1, clip_high=0.3),
    "all terms": PolicyGradient(ratio="token", clip=0.1, dual_clip=2.0, kl=0.1, entropy=0.05),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_the_policy_gradient_does_not_depend_on_the_micro_batches(stage, loss):
    team, _, rows = stage
    network = Network(team.bases["ada"])
    widest = max(len(row.tokens) for row in rows)
    whole, sizes, metrics = policy_gradient(network, rows, loss, widest * len(rows))
    assert sizes == [len(rows)]
    for budget, most in ((1, 1), (3 * widest, 3)):
        parts, sizes, others = policy_gradient(network, rows, loss, budget)
        assert max(sizes) >= most and min(sizes) < len(rows)
        assert relative(whole, parts) < SAME
        assert others == pytest.approx(metrics, rel=1e-5, abs=1e-6)


def test_a_packed_tree_has_the_gradient_of_its_branches(stage):
    team, trees, _ = stage
    network = Network(team.bases["ada"])

    def rows(budget):
        return [
            replace(row, advantages=tuple(float(span.node) for span in row.spans))
            for tree in trees
            for row in team.rows(tree, "ada", budget=budget)
            if row.spans
        ]

    packed, _, _ = policy_gradient(network, rows(None), PolicyGradient(), 4096)
    apart, _, _ = policy_gradient(network, rows(1), PolicyGradient(), 4096)
    assert relative(packed, apart) < SAME


# --- against plain transformers ------------------------------------------------------------------


def one_step_gradients(updater, trees, names):
    """Gradients that an update is about to step with."""
    by_learner = {}
    for name in names:
        learner = updater.actors.learners[name]

        def step(done, name=name, learner=learner):
            by_learner[name] = gradients(learner)
            return {"grad_norm": 0.0, "learning_rate": 0.0}

        learner.step = step
    updater.update(trees, 0)
    return by_learner


@pytest.mark.parametrize(
    ("kind", "shape"), [("qwen3", Chain()), ("llama", KaryTree(2)), ("gemma3", KaryTree(2))]
)
def test_a_policy_step_is_reinforce_written_by_hand(kind, shape):
    team = cast(kind=kind, shared=False, dtype=torch.float64, temperature=0.8)
    trees = play(Notes(ends=True), team, shape)
    said = [action for tree in trees for node in tree.nodes for action in node.actions.values()]
    assert {"end", "length"} <= {action.finish for action in said}, "end tokens are trained, too"
    learners = {a: learner_of(team.network(a), budget=300) for a in team.voices}
    parts = MAGRPO(rollout=KaryTree(2)).parts()
    if isinstance(shape, Chain):
        parts = replace(parts, advantage=RawReturn())
    voices = {a: AgentSpec(model=a, sampling=Sampling(temperature=0.8)) for a in team.voices}
    by_agent = one_step_gradients(new_updater(parts, learners, specs=voices), trees, team.voices)
    advantages = parts.advantage(credited(trees))
    for number, agent in enumerate(team.voices):
        model = tiny_model(kind, seed=number, dtype=torch.float64)
        by_hand = reinforce(model, trees, agent, advantages, temperature=0.8)
        assert relative(by_hand, by_agent[agent]) < 1e-5


def test_a_shared_model_gets_the_mean_over_both_agents_actions():
    team = cast(dtype=torch.float64)
    trees = play(Notes(), team, KaryTree(2))
    parts = MAGRPO(rollout=KaryTree(2)).parts()
    learners = {"both": learner_of(Network(team.bases["ada"]))}
    voices = {agent: AgentSpec(model="both") for agent in team.voices}
    gradient = one_step_gradients(new_updater(parts, learners, specs=voices), trees, ["both"])[
        "both"
    ]
    advantages = parts.advantage(credited(trees))
    hands = [
        reinforce(tiny_model(dtype=torch.float64), trees, agent, advantages)
        for agent in team.voices
    ]
    mean = {name: (hands[0][name] + hands[1][name]) / 2 for name in hands[0]}
    assert relative(mean, gradient) < 1e-5


# --- critics -------------------------------------------------------------------------------------


def critics_of(critic, networks, *, budget=4096):
    learners = {name: learner_of(network, budget=budget) for name, network in networks.items()}
    return new_critics(critic, learners)


VALUES = {
    "v": (Centralized(), GAE(lam=0.7), ValueLoss()),
    "q": (Centralized(value="q"), QValue(), ValueLoss()),
    "clip": (Centralized(), GAE(), ValueLoss(clip=0.05)),
}


@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES.keys())
def test_the_value_gradient_does_not_depend_on_the_micro_batches(stage, case):
    _, trees, _ = stage
    critic, advantage, settings = case
    network = value_network(5)
    by_budget = []
    for budget in (1, 2500, 1_000_000):
        critics = critics_of(critic, {"team": network}, budget=budget)
        old = [
            {a: [None if v is None else v + 0.1 for v in vs] for a, vs in by_agent.items()}
            for by_agent in critics.values(trees)
        ]
        rollout = old if settings != ValueLoss() else None
        value_gradients(critics, advantage, credited(trees), settings, rollout)
        by_budget.append(gradients(critics.learners["team"]))
    for one, other in pairwise(by_budget):
        assert relative(one, other) < SAME


@pytest.mark.parametrize(("value", "sequential"), [("v", False), ("q", True)])
def test_all_values_of_one_forward_are_those_of_separate_forwards(value, sequential):
    """The stream cut after each mark and unpacked, through transformers and the head alone."""
    team = cast()
    trees = play(Notes(ends=True, sequential=sequential), team, KaryTree(2))
    network = value_network(5, dtype=torch.float32)
    critics = critics_of(Centralized(value=value), {"team": network})
    read = 0
    for tree, rows, values in zip(
        trees, critics.rows(trees)["team"].values(), critics.values(trees), strict=True
    ):
        (row,) = rows
        series = next(iter(values.values()))
        for mark in row.marks:
            number = max(n for n, p in enumerate(row.pieces) if p.start <= mark.index < p.end)
            ids: list[int] = []
            while number >= 0:
                piece = row.pieces[number]
                ids = [*row.tokens[piece.start : piece.end], *ids]
                number = piece.parent
            with torch.no_grad():
                hidden = network.base.causal.model(input_ids=torch.tensor([ids])).last_hidden_state
                expected = network.head(hidden[0, -1:]).item()
            assert abs(series[mark.node] - expected) < 1e-5
            read += 1
        wanted = [not n.terminal if value == "v" else bool(n.actions) for n in tree.nodes]
        assert [v is not None for v in series] == wanted
    assert read > len(trees)


@pytest.mark.parametrize(
    ("algorithm", "readers", "epochs", "minibatch", "steps"),
    [(CoLLMCC(), ("team",), 1, 3, 4), (CoLLMDC(), ("ada", "ben"), 2, 6, 4)],
    ids=["central", "decentral"],
)
def test_a_critic_steps_once_for_each_joint_minibatch(algorithm, readers, epochs, minibatch, steps):
    team = cast(shared=False)
    trees = play(Notes(), team)  # four episodes of three joint transitions
    parts = algorithm.parts()
    critics = critics_of(parts.critic, {r: value_network(n) for n, r in enumerate(readers)})
    learners = {a: learner_of(team.network(a)) for a in team.voices}
    updater = new_updater(parts, learners, critic=critics, epochs=epochs, minibatch=minibatch)
    metrics = updater.update(trees, 0)
    assert metrics["optimizer_steps"] == steps
    assert {learner.steps for learner in critics.learners.values()} == {steps}
    assert {learner.steps for learner in learners.values()} == {steps}


# --- who shares what -----------------------------------------------------------------------------

SHARING = {
    "full": (("ada", "ben", "cleo"), {"ada": "one", "ben": "one", "cleo": "one"}),
    "partial": (("ada", "ben", "cleo"), {"ada": "one", "ben": "one", "cleo": "two"}),
    "none": (("ada", "ben"), {"ada": "one", "ben": "two"}),
}


@pytest.mark.parametrize(
    ("sharing", "lora"), [("partial", None), ("full", {"rank": 2}), ("none", {"rank": 2})]
)
def test_models_train_whoever_shares_them(tmp_path, monkeypatch, sharing, lora):
    register(monkeypatch, notes="tiny:Notes")
    agents, played = SHARING[sharing]
    paths = {
        "one": save_model(tmp_path / "one"),
        "two": save_model(tmp_path / "two", "llama", merges=True, seed=1),
    }
    config = Config.model_validate(
        {
            "task": {"name": "notes", "agents": len(agents)},
            "algorithm": {"name": "marloo", "rollout": {"k": 2}},
            "models": {
                name: {"path": paths[name], "learning_rate": 1e-2, "lora": lora}
                for name in set(played.values())
            },
            "agents": {a: {"model": m, "sampling": {"max_tokens": 4}} for a, m in played.items()},
            "run": {"device": "cpu"},
        }
    )
    parts = load_team(config)
    assert len(parts.learners) == len(set(played.values()))
    trees, _ = grow(
        parts.run.task,
        parts.run.task.items("train"),
        parts.players,
        parts.run.parts.rollout,
        seed=0,
    )
    before = {
        name: {key: value.clone() for key, value in learner.weights().items()}
        for name, learner in parts.learners.items()
    }
    metrics = build_updater(parts).update(trees, 0)
    assert all(np.isfinite(value) for value in metrics.values())
    for name, learner in parts.learners.items():
        moved = [k for k, v in learner.weights().items() if not torch.equal(v, before[name][k])]
        assert moved, name


def test_agents_with_different_tokenizers_read_and_write_their_own_ids(tmp_path):
    team = cast(shared=False)
    other = cast(shared=False, merges=True)
    team.voices["ben"], team.bases["ben"] = other.voices["ben"], other.bases["ben"]
    team.generators = {**team.generators, **other.generators}
    task = Notes(clues=(("the elder and", "the elder and"),))
    (tree,) = play(task, team)
    seen = tree.nodes[0].observations
    assert len(seen["ben"].tokens) < len(seen["ada"].tokens)
    for agent in ("ada", "ben"):
        (row,) = team.rows(tree, agent)
        (outputs,) = evaluate(team.network(agent), [row], token_budget=4096)
        gap = (outputs.logprobs - torch.tensor(row.behaviour)).abs().max()
        assert gap < 1e-4
        for _, part in branch_parts(tree, tree.nodes[-1].index, agent):
            if isinstance(part, Action):
                assert part.text == team.voices[agent].chat.decode(part.tokens)
