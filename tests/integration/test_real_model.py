"""A pretrained model on a task of the library: two agents and a critic on one frozen base.

Set COLEARN_REAL_MODEL to a folder with config, tokenizer and safetensors, for example the one that
`python benchmarks/gemma_model.py FOLDER` writes, and run `pytest -m real_model`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
import torch

from colearn.config import load_config
from colearn.contract import NetworkKey
from colearn.models.load import load_tokenizer
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain, KaryTree
from colearn.training.learners.packed_rows import actor_rows
from colearn.training.load_team import load_team
from colearn.training.update.build_updater import build_updater

FOLDER = os.environ.get("COLEARN_REAL_MODEL", "")

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(
        not FOLDER, reason="COLEARN_REAL_MODEL is not set: the folder of a pretrained model"
    ),
]

AGENTS = ("builder_1", "builder_2")
LORA = {"rank": 4, "alpha": 8}
EXAMPLE = "grid 3 3\n# . .\n# . .\n# # #\nyou blocks stone max 4\n0 0 stone\n2 0 stone\n\n"


@pytest.fixture(scope="module")
def team():
    """One team for all tests, which run in the order written: the last one trains it."""
    if not Path(FOLDER).is_dir():
        pytest.fail(f"COLEARN_REAL_MODEL={FOLDER}: no such folder")
    config = load_config(
        {
            "task": {
                "name": "str_build",
                "horizon": 2,
                "prompt": "compact",
                "font": "small",
                "max_commands": 8,
                "strings": ["C", "U"],
            },
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": FOLDER, "lora": LORA, "learning_rate": 1e-3}},
            # means by item explain equal rewards whole, and then no adapter would move
            "critic": {"path": FOLDER, "lora": LORA, "learning_rate": 1e-3, "baseline": "none"},
            "agents": {"*": {"chat": "plain", "system": EXAMPLE, "sampling": {"max_tokens": 12}}},
            "run": {"device": "cpu"},
        }
    )
    return load_team(config)


def play(team, shape):
    items = list(team.run.task.items("train"))
    trees, _ = grow(team.run.task, items, team.players, shape, seed=7)
    assert {node.turn for tree in trees for node in tree.nodes} == {0, 1, 2}
    return trees


def rows_of(trees, agent):
    return [row for n, tree in enumerate(trees) for row in actor_rows(tree, agent, number=n)]


def largest_gap(team, trees):
    """Over all actions of all turns: the generator's log-probabilities against the learner's."""
    largest = {}
    for agent in AGENTS:
        rows = rows_of(trees, agent)
        outputs = team.learners[NetworkKey("actor", agent)].evaluate(rows)
        gaps = []
        for row, part in zip(rows, outputs, strict=True):
            behaviour = torch.tensor(row.behaviour)
            assert len(behaviour) == row.action_tokens > 0
            gaps.append(float((part.logprobs - behaviour).abs().max()))
        largest[agent] = max(gaps)
    return largest


def digest(base):
    """Of the base's weights, one line for each tensor; adapters left out."""
    return {
        name: hashlib.blake2b(parameter.detach().numpy().tobytes()).hexdigest()
        for name, parameter in base.model.named_parameters()
        if "lora_" not in name
    }


def test_the_weights_are_in_memory_once(team):
    assert set(map(str, team.networks)) == {
        "actor-builder_1",
        "actor-builder_2",
        "critic-team",
    }
    assert len({id(network.base) for network in team.networks.values()}) == 1
    assert len(team.engines) == 1, "both agents speak in one batch"
    trained = [set(map(id, network.trained().values())) for network in team.networks.values()]
    assert (
        not trained[0] & trained[1] and not trained[0] & trained[2] and not trained[1] & trained[2]
    )


def test_the_history_keeps_the_model_s_own_start_token(team):
    tokenizer = load_tokenizer(FOLDER, field="path")
    if tokenizer.bos_token_id is None:
        pytest.skip("this tokenizer has no start token")
    opened = team.players["builder_1"].spec.chat_format.open("grid")
    assert opened.tokens[0] == tokenizer.bos_token_id
    assert tokenizer.bos_token_id not in opened.tokens[1:]


@pytest.mark.parametrize("shape", [Chain(), KaryTree(2)], ids=["chain", "tree"])
def test_generator_and_learner_agree_with_two_adapters_in_one_batch(team, shape):
    generator = torch.Generator().manual_seed(0)
    for network in team.networks.values():  # B = 0 would make all adapters alike
        for name, parameter in network.trained().items():
            if "lora_B" in name:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.data.copy_(0.02 * noise)
    trees = play(team, shape)
    gaps = largest_gap(team, trees)
    assert max(gaps.values()) < 1e-4, gaps
    # the same rows under the other agent's adapter: the adapters do differ, and routing matters
    rows = rows_of(trees, "builder_1")
    own = team.learners[NetworkKey("actor", "builder_1")].evaluate(rows)
    other = team.learners[NetworkKey("actor", "builder_2")].evaluate(rows)
    assert float((own[0].logprobs - other[0].logprobs).abs().max()) > 1e-2


def test_one_update_changes_the_adapters_and_the_value_head_alone(team):
    critic = team.networks[NetworkKey("critic", "team")]
    base = critic.base
    assert critic.head is not None
    torch.nn.init.constant_(
        critic.head.linear.weight, 1e-3
    )  # a head of zeros passes no gradient on
    frozen = digest(base)
    before = {
        name: {key: parameter.detach().clone() for key, parameter in network.trained().items()}
        for name, network in team.networks.items()
    }
    metrics = build_updater(team).update(play(team, Chain()), 0)

    assert digest(base) == frozen
    for agent in AGENTS:
        assert metrics[f"{agent}/ratio_mean"] == pytest.approx(1.0, abs=1e-4)
        assert metrics[f"{agent}/logprob_mismatch"] < 1e-4
    for name, network in team.networks.items():
        now = network.trained()
        assert all("lora_" in key or key.startswith("head.") for key in now)
        changed = {key for key, value in now.items() if not torch.equal(value, before[name][key])}
        assert any("lora_B" in key for key in changed), f"{name}: the adapter did not move"
        assert all(bool(torch.isfinite(value).all()) for value in now.values())
    assert not torch.equal(
        critic.trained()["head.linear.weight"],
        before[NetworkKey("critic", "team")]["head.linear.weight"],
    )
