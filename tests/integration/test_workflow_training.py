"""A workflow in training: fresh contexts exactly, and any map from roles to models by one key."""

from __future__ import annotations

import math

import pytest
import torch
from tiny import save_model

from colearn.config import Config, CriticSettings
from colearn.contract.rows import Mark, Piece, Row
from colearn.errors import ConfigError
from colearn.programs.workflow import Workflow
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Parallel
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater


class Letters(Workflow[str]):
    """Three roles in a row, each shown what the one before said; the reward moves with every
    letter of theirs."""

    agents = ("rewriter", "reranker", "answerer")
    horizon = 3
    measures = ("letters",)

    def items(self, split):
        return ["ash", "birch"]

    async def run(self, team, item):
        said = item
        for role in self.agents:
            said = await team.ask(role, f"{role} {said}")
            team.reward(0.01 * (sum(said.encode()) % 7))


MAPS = {
    "full": {"*": {"model": "one"}},
    "partial": {"rewriter": {"model": "one"}, "*": {"model": "two"}},
    "none": {"*": {}},
}
LEARNERS = {
    "full": {"actor-one"},
    "partial": {"actor-one", "actor-two"},
    "none": {"actor-rewriter", "actor-reranker", "actor-answerer"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"))


def config_of(folder: str, sharing: str, algorithm: str = "mhgpo") -> Config:
    """Everything but `agents` and what it names is the same."""
    names = {"full": ["one"], "partial": ["one", "two"], "none": ["*"]}[sharing]
    agents = {
        role: {"sampling": {"max_tokens": 4}, **settings}
        for role, settings in MAPS[sharing].items()
    }
    return Config.model_validate(
        {
            "task": {"name": f"{__name__}:Letters"},
            "algorithm": {"name": algorithm},
            "models": {name: {"path": folder, "learning_rate": 1e-2} for name in names},
            "agents": agents,
            "critic": {"path": folder, "learning_rate": 1e-2} if "mappo" in algorithm else None,
            "train": {"episodes": 2, "token_budget": 4000},
            "run": {"device": "cpu"},
        }
    )


def trained(config: Config):
    """The team after one iteration on two items, what was logged, and who moved."""
    parts = load_team(config)
    before = {
        name: {key: value.clone() for key, value in learner.weights().items()}
        for name, learner in parts.learners.items()
    }
    trees, _ = grow(
        parts.run.task,
        parts.run.task.items("train")[:2],
        parts.players,
        parts.run.parts.rollout,
        seed=0,
        credit=parts.run.parts.credit,
    )
    metrics = build_updater(parts).update(trees, 0)
    moved = {
        str(name)
        for name, learner in parts.learners.items()
        if any(not torch.equal(v, before[name][key]) for key, v in learner.weights().items())
    }
    return parts, trees, metrics, moved


@pytest.fixture(scope="module")
def shared(folder):
    """All roles share one model, trained for an iteration."""
    return trained(config_of(folder, "full"))


@pytest.mark.parametrize("sharing", ["partial", "none"])
def test_who_shares_a_model_is_one_key(folder, sharing):
    _, _, metrics, moved = trained(config_of(folder, sharing))
    assert moved == LEARNERS[sharing]
    assert all(math.isfinite(value) for value in metrics.values())


def test_a_shared_model_sees_each_call_in_a_context_of_its_own(shared):
    _, trees, _, moved = shared
    assert moved == LEARNERS["full"]
    for tree in trees:
        for node in tree.nodes:
            for role, seen in node.observations.items():
                assert seen.fresh
                assert tree.history(node.index, role).tokens == seen.tokens


def test_old_and_sampled_log_probabilities_agree_in_fresh_contexts(shared):
    """What the learner sees of a call is what the generator sampled it from."""
    _, _, metrics, _ = shared
    assert metrics["one/logprob_mismatch"] < 1e-4
    assert metrics["one/ratio_mean"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("algorithm", ["mappo", "mappo_call"])
def test_mappo_trains_critics_beside_the_roles(folder, algorithm):
    _, _, metrics, moved = trained(config_of(folder, "full", algorithm))
    assert any(name.startswith("critic") for name in moved)
    assert "actor-one" in moved
    assert all(math.isfinite(value) for value in metrics.values())


def test_token_values_are_those_of_every_prefix_read_alone(folder):
    """All contexts of a role stand in one row; V before a token sees its own prompt and no more."""
    parts = load_team(config_of(folder, "full", "mappo"))
    for learner in parts.learners.values():
        if learner.name.startswith("critic"):
            torch.manual_seed(0)
            torch.nn.init.normal_(learner.network.head.linear.weight)
    trees, _ = grow(parts.run.task, ["ash"], parts.players, Parallel(2), seed=0)
    (tree,), critic = trees, build_updater(parts).critic
    (values,) = critic.values(trees)
    read = 0
    for node in tree.nodes[1:]:
        for role, action in node.actions.items():
            prompt = tree.history(node.parent, role).tokens
            learner = critic.learners[role]
            for k in range(len(action.tokens)):
                ids = (*prompt, *action.tokens[:k])
                piece = Piece(0, len(ids), -1, 0, 0)
                row = Row(tokens=ids, pieces=(piece,), marks=(Mark(0, len(ids) - 1),))
                (alone,) = learner.evaluate([row])
                own = values[role]
                here = own.inside[node.index][k - 1] if k else own[node.parent]
                assert here == pytest.approx(alone.values.item(), abs=1e-4)
                read += 1
    assert read > 12


def test_a_critic_of_tokens_needs_the_words_of_its_roles(folder, tmp_path):
    other = save_model(tmp_path, merges=True)
    config = config_of(folder, "full", "mappo").model_copy()
    critic = config.critic.model_copy(update={"path": other})
    with pytest.raises(ConfigError, match=r"^critic\.path: .*models\.one"):
        build_updater(load_team(config.model_copy(update={"critic": critic})))
    shared = CriticSettings(share="actor")
    with pytest.raises(ConfigError, match=r"^critic\.share: "):
        load_team(config.model_copy(update={"critic": shared}))


def test_a_critic_for_each_model_is_one_key(folder):
    """UnityMAS-O's: the readers map to value models as the roles do to models."""
    config = config_of(folder, "partial", "mappo")
    readers = {"rewriter": "one", "*": "two"}
    critic = config.critic.model_copy(update={"readers": readers})
    _, _, metrics, moved = trained(config.model_copy(update={"critic": critic}))
    assert moved == {"actor-one", "actor-two", "critic-one", "critic-two"}
    assert all(math.isfinite(value) for value in metrics.values())
