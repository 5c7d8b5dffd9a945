"""Small steps in bfloat16 against plain transformers and AdamW.

The learner computes in bfloat16 on float32 weights, and moves them. Weights kept in bfloat16
round most steps away: a step of 5e-6 counts only where it exceeds half a unit in the last place,
that is for weights below 2^-9, and those are 7.8 % of a normal distribution with a deviation of
0.02. All runs begin from the same weights, which bfloat16 holds exactly.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from credited import credited
from local_learners import local_learner
from tiny import Notes, branch_parts, cast, play, tiny_model
from transformers import AutoModelForCausalLM

from colearn.config import OptimizerSettings
from colearn.contract.algorithm import ValueLoss
from colearn.contract.types import Action
from colearn.methods.advantage.raw_return import RawReturn
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.models.load import load_base
from colearn.models.network import Network
from colearn.training.update.objective import ActorObjective

RATE = 5e-6
SPREAD = 0.02
"""Standard deviation of the weights, as transformers initialises most models."""
STEPS = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bfloat16") / "model"
    tiny_model(std=SPREAD, end_scale=1.0, dtype=torch.bfloat16).save_pretrained(path)
    return str(path)


def changes(parameters, step):
    """How far each weight has moved from where it began."""
    start = {name: p.detach().double().clone() for name, p in parameters.items()}
    for _ in range(STEPS):
        step()
    return {name: p.detach().double() - start[name] for name, p in parameters.items()}


def by_learner(trees, rows, folder, compute):
    """Through the library, loaded as a config's trained model with `dtype` is."""
    base = load_base(
        folder, compute=compute, trained=True, device=torch.device("cpu"), field="models.x.path"
    )
    network = Network(base)
    settings = OptimizerSettings(learning_rate=RATE)
    learner = local_learner("ada", network, settings, token_budget=4096)
    rows = [
        replace(row, advantages=tuple(advantages_by_node[span.node]["ada"] for span in row.spans))
        for row, advantages_by_node in zip(rows, RawReturn()(credited(trees)), strict=True)
    ]
    objective = ActorObjective.of(PolicyGradient(), ValueLoss(), rows)

    def step():
        learner.accumulate(rows, objective)
        learner.step(0.0)

    return changes(learner.parameters, step)


def by_transformers(trees, folder, stored):
    """Through transformers and torch alone, all weights and all computing in one type."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=stored).eval()
    parameters = {f"model.{name}": p for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(parameters.values(), lr=RATE, weight_decay=0.0)
    advantages = RawReturn()(credited(trees))

    def step():
        loss, count = 0.0, 0
        for tree, advantages_by_node in zip(trees, advantages, strict=True):
            parts = list(branch_parts(tree, tree.nodes[-1].index, "ada"))
            ids = [token for _, part in parts for token in part.tokens]
            scores = model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
            cursor = 0
            for node, part in parts:
                if isinstance(part, Action):
                    places = torch.arange(cursor, cursor + len(part.tokens))
                    logprob = scores[places - 1, torch.tensor(part.tokens)].sum()
                    loss, count = loss - advantages_by_node[node]["ada"] * logprob, count + 1
                cursor += len(part.tokens)
        optimizer.zero_grad()
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        optimizer.step()

    return changes(parameters, step)


@pytest.fixture(scope="module")
def runs(folder):
    team = cast(agents=("ada",))
    trees = play(Notes(agents=1), team)
    rows = [row for tree in trees for row in team.rows(tree, "ada")]
    return {
        "truth": by_transformers(trees, folder, torch.float32),
        "plain": by_transformers(trees, folder, torch.bfloat16),
        "float32": by_learner(trees, rows, folder, "float32"),
        "bfloat16": by_learner(trees, rows, folder, "bfloat16"),
    }


def flat(change):
    return torch.cat([change[name].flatten() for name in sorted(change)])


def share_moved(runs, name):
    """Of the weights that the float32 run moves: no other has a gradient (words never read)."""
    reached = flat(runs["truth"]) != 0
    assert reached.double().mean() > 0.5
    return float((flat(runs[name])[reached] != 0).double().mean())


def distance(runs, name):
    """Norm of the difference to the float32 run's change, over the norm of that."""
    truth = flat(runs["truth"])
    return float((flat(runs[name]) - truth).norm() / truth.norm())


def test_in_float32_the_learner_moves_its_weights_as_transformers_and_adamw_do(runs):
    assert distance(runs, "float32") < 1e-4


def test_a_learner_that_computes_in_bfloat16_moves_all_of_its_weights(runs):
    assert share_moved(runs, "bfloat16") > 0.99


def test_a_learner_that_computes_in_bfloat16_moves_nearly_as_in_float32(runs):
    assert distance(runs, "bfloat16") < 0.1


def test_weights_in_bfloat16_hardly_move(runs):
    assert share_moved(runs, "plain") < 0.15
    assert distance(runs, "plain") > 0.9
