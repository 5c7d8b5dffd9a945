"""One batch in TRL's GRPO trainer, and as trees in this library's learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from credited import credited
from datasets import Dataset
from local_learners import local_learner
from tiny import byte_tokenizer, save_model
from torch import Tensor
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

from colearn.config import OptimizerSettings
from colearn.contract import PolicyLoss
from colearn.contract.algorithm import ValueLoss
from colearn.contract.rows import Row
from colearn.contract.types import Action, Node, Observation, Tree
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.models.base import Base
from colearn.models.network import Network
from colearn.training.learners.batch import evaluate
from colearn.training.learners.learner import NetworkLearner
from colearn.training.learners.packed_rows import actor_rows
from colearn.training.update.advantages import advantaged_row
from colearn.training.update.objective import ActorObjective

PROMPTS = ("tell ada", "an oak, please, and then another", "three birds")
SAMPLES = 4
"""K."""
TEMPERATURE = 0.8
BUDGET = 150
"""Tokens of a micro-batch: about two of the three trees."""
Gradients = dict[str, Tensor]


class Scores:
    """A reward with a value of its own for almost every text; remembers what it gave."""

    __name__ = "scores"

    def __init__(self) -> None:
        self.given: list[float] = []

    def __call__(self, completions: Sequence[str], **_: Any) -> list[float]:
        self.given = [0.1 * (sum(text.encode()) % 17) for text in completions]
        return self.given


def trainer(
    folder: Path, reward: Callable[..., Any], *, kind: str = "qwen3", **settings: Any
) -> GRPOTrainer:
    """TRL's own, on a tiny model saved to `folder`, on the CPU; it writes nothing."""
    save_model(folder, kind)
    given = {
        "output_dir": str(folder / "unused"),
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "per_device_train_batch_size": len(PROMPTS) * SAMPLES,
        "num_generations": SAMPLES,
        "max_completion_length": 8,
        "temperature": TEMPERATURE,
        "scale_rewards": "none",
        "use_bias_correction_kl": False,
    }
    made = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        reward_funcs=reward,
        args=GRPOConfig(**(given | settings)),
        train_dataset=Dataset.from_dict({"prompt": list(PROMPTS)}),
        processing_class=byte_tokenizer(),
    )
    made.model.eval()
    return made


def batch_of(side: GRPOTrainer) -> dict[str, Tensor]:
    """The inputs of TRL's loss: its own completions, scored by its own reward function."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        return side._generate_and_score_completions(
            [{"prompt": prompt} for prompt in PROMPTS for _ in range(SAMPLES)]
        )


def real(inputs: Mapping[str, Tensor], name: str, row: int) -> tuple[int, ...]:
    """A row of prompt or completion ids without its padding."""
    return tuple(inputs[f"{name}_ids"][row][inputs[f"{name}_mask"][row].bool()].tolist())


def trees_of(inputs: Mapping[str, Tensor], rewards: Sequence[float]) -> list[Tree[Any]]:
    """The same prompts, completions and rewards: a tree for each prompt, K leaves on each."""
    trees = []
    for first in range(0, len(rewards), SAMPLES):
        seen = Observation("", real(inputs, "prompt", first))
        nodes: list[Node[Any]] = [
            Node(index=0, parent=None, path=(), state=None, observations={"solo": seen})
        ]
        for k in range(SAMPLES):
            ids = real(inputs, "completion", first + k)
            nodes.append(
                Node(
                    index=k + 1,
                    parent=0,
                    path=(k,),
                    state=None,
                    observations={},
                    actions={"solo": Action("", ids, (0.0,) * len(ids))},
                    reward=rewards[first + k],
                    done=True,
                )
            )
        trees.append(Tree(item=None, episode=first, agents=("solo",), nodes=tuple(nodes)))
    return trees


def move(model: Any, *, seed: int, by: float = 0.02) -> None:
    """Away from the saved weights, in a direction that the seed fixes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=by)


@dataclass
class Sides:
    """Both sides with the same weights, moved away from those that wrote the completions."""

    trl: GRPOTrainer
    inputs: dict[str, Tensor]
    mine: NetworkLearner
    rows: list[Row]
    """One for each prompt."""

    @property
    def lengths(self) -> list[int]:
        """Tokens of each action."""
        return [span.end - span.start for row in self.rows for span in row.spans]

    def theirs(
        self,
        loss_type: str,
        *,
        level: str = "token",
        clip: tuple[float, float] = (1.0, 1e9),
        beta: float = 0.0,
        entropy: float = 0.0,
    ) -> tuple[float, Gradients]:
        """TRL's loss and gradients; the `clip` left out lets every ratio through."""
        self.trl.loss_type, self.trl.importance_sampling_level = loss_type, level
        self.trl.epsilon_low, self.trl.epsilon_high = clip
        self.trl.beta = beta
        self.trl.entropy_coef, self.trl._entropy_bonus_enabled = entropy, entropy > 0.0
        self.trl.model.zero_grad()
        loss = self.trl._compute_loss(self.trl.model, self.inputs)
        loss.backward()
        gradients = {f"model.{n}": p.grad.clone() for n, p in self.trl.model.named_parameters()}
        return loss.item(), gradients

    def ours(
        self, loss: PolicyLoss, rows: Sequence[Row] | None = None
    ) -> tuple[float, Gradients, dict[str, float]]:
        """The library's loss, gradients and metrics, summed over micro-batches."""
        rows = rows or self.rows
        objective = ActorObjective.of(loss, ValueLoss(), rows)
        self.mine.entropy = loss.needs_entropy

        def counted(outputs: Any, batch: Any) -> Any:
            value, metrics = objective(outputs, batch)
            return value, metrics | {"loss": value.item()}

        metrics = self.mine.accumulate(rows, counted).metrics
        gradients = {name: p.grad.clone() for name, p in self.mine.parameters.items()}
        self.mine.network.zero_grad()
        return metrics["loss"], gradients, metrics


def both_sides(folder: Path, *, kind: str = "qwen3", **settings: Any) -> Sides:
    """Old and reference log-probabilities and advantages are computed by each side for itself.

    TRL keeps old ones where it makes several steps for each batch (`num_iterations`).
    """
    reward = Scores()
    trl = trainer(folder, reward, kind=kind, num_iterations=2, beta=0.05, **settings)
    acting, reference = (
        Network(Base(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)))
        for _ in range(2)
    )
    for model in (trl.ref_model, reference.base.causal):
        move(model, seed=9)
    inputs = batch_of(trl)
    trees = trees_of(inputs, reward.given)
    read = [row for tree in trees for row in actor_rows(tree, "solo", temperature=TEMPERATURE)]
    learner = local_learner("solo", acting, OptimizerSettings(), token_budget=BUDGET)
    old, ref = learner.evaluate(read), evaluate(reference, read, token_budget=BUDGET)
    advantages = GroupMean()(credited(trees))
    rows = []
    for place, row in enumerate(read):
        row = replace(
            row,
            old_logprobs=tuple(old[place].logprobs.tolist()),
            ref_logprobs=tuple(ref[place].logprobs.tolist()),
        )
        rows.append(advantaged_row(row, advantages[place]))
    for model in (trl.model, acting.base.causal):
        move(model, seed=0)
    return Sides(trl, inputs, learner, rows)


def gap(one: Gradients, other: Gradients, factor: float = 1.0) -> float:
    """The largest difference between any entry of `one` and `factor` times that of `other`."""
    assert one.keys() == other.keys() and one
    return max(float((one[name] - factor * other[name]).abs().max()) for name in one)
