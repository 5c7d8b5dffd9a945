"""Problems, methods and variants of benchmarks/optima.py, with exact reference values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Problem:
    """A problem and what a run on it may cost."""

    name: str
    horizon: int
    steps: int
    """Joint actions of a run."""
    actions: int
    """Joint actions per iteration, about."""
    scale: float
    """Of the rewards, so that values are about 1."""
    penalty: float | None
    """Of a rejected reply, in the problem's rewards: below the return of any sensible play. None:
    the task's own, the worst reward in every turn left."""
    file: str | None = None
    """A `.dpomdp` file beside this one, for a problem that is not shipped."""

    @property
    def task(self) -> dict[str, Any]:
        """The task's settings that choose it."""
        if self.file is None:
            return {"problem": self.name, "horizon": self.horizon}
        return {"file": str(HERE / "problems" / self.file), "horizon": self.horizon}


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("climbing", 1, 3_200, 64, 0.1, -30.0),
        Problem("penalty", 1, 3_200, 64, 0.1, -30.0),
        Problem("two_step", 2, 3_600, 72, 0.1, -10.0),
        Problem("lock", 6, 7_680, 256, 0.1, -10.0),
        Problem("vault", 6, 10_240, 256, 0.1, -10.0),
        Problem("dec_tiger", 3, 129_024, 768, 0.02, -100.0),
        Problem("lamp", 3, 25_600, 512, 0.1, -10.0, file="lamp.dpomdp"),
        Problem("luck", 2, 6_400, 64, 0.1, -40.0, file="luck.dpomdp"),
        Problem("sensors", 2, 3_600, 72, 0.1, -10.0, file="sensors.dpomdp"),
        Problem("meeting", 3, 6_400, 128, 0.1, -10.0, file="meeting.dpomdp"),
        Problem("broadcast", 4, 51_200, 512, 1.0, -1.0, file="broadcast.dpomdp"),
        Problem("recycling", 3, 25_600, 512, 1 / 8.88, None, file="recycling.dpomdp"),
        Problem("grid_small", 3, 25_600, 512, 1.0, -1.0, file="grid_small.dpomdp"),
        Problem("fire_fighting", 3, 25_600, 512, 1 / 6, None, file="fire_fighting.dpomdp"),
        Problem("box_pushing", 2, 25_600, 512, 1 / 110, None, file="box_pushing.dpomdp"),
    )
}
"""Nothing was tuned on those from sensors on. `luck` is for benchmarks of critics: one agent
observes luck, which the recipe's optimism does not fit."""
CLASSICS = ("broadcast", "recycling", "grid_small", "fire_fighting", "box_pushing")
"""Their settings follow from the file by one rule: joint actions by the number of turns, rewards in
units of their range, and where no reward is negative a rejected reply earns minus the largest."""

METHODS: dict[str, dict[str, Any]] = {
    "collm_cc": {"name": "collm_cc"},
    "collm_dc": {"name": "collm_dc"},
    "coma": {"name": "coma"},
    "magrpo": {"name": "magrpo", "rollout": {"name": "parallel", "k": 8}},
    "magrpo_tree": {"name": "magrpo", "rollout": {"name": "tree", "k": 2}},
}
"""One critic for the team, one for each agent; without a critic groups of eight chains, and trees
that fork in two at every turn."""

OPTIMISM, FADES = 0.98, 0.5
"""The expectile at the start, and the share of the budget over which it comes to the mean."""

HOT, COLD, COOLS = 0.7, 0.2, 0.5
"""The sampling temperature at the start of training, that of evaluation, and the share of the
budget after which it begins to fall from one to the other, to the end."""

RECIPE = {
    "algorithm.loss": {"ratio": "token", "clip": 0.2, "kl": 0.1, "anneal_fraction": 1.0},
    "algorithm.advantage.normalize": True,
    "train.epochs": 4,
    "models.*.learning_rate": 1e-3,
    "models.*.warmup_steps": 10,
    "models.*.schedule": "linear",
    "models.*.betas": (0.9, 0.99),
}
RECIPE_CRITIC = {
    "algorithm.advantage.lam": 0.95,
    "algorithm.value_loss": {"rescale": True, "frozen_targets": True},
    "critic.learning_rate": 3e-3,
    "critic.head_learning_rate": 1e-2,
    "critic.schedule": "linear",
    "critic.betas": (0.9, 0.99),
}
ONE_PASS = {
    "algorithm.loss": {"ratio": "sequence", "clip": None, "kl": 0.0, "anneal_fraction": None},
    "algorithm.advantage.normalize": False,
    "train.epochs": 1,
    "train.minibatch": None,
    "models.*.learning_rate": 3e-3,
    "models.*.warmup_steps": 30,
    "models.*.schedule": "constant",
    "models.*.betas": (0.9, 0.999),
}
"""One step on each batch, as in the papers, at the better of the rates 1e-3 and 3e-3."""
ONE_PASS_CRITIC = {
    "algorithm.advantage.lam": 0.0,
    "algorithm.value_loss": {"rescale": False, "frozen_targets": False},
    "critic.learning_rate": 1e-2,
    "critic.head_learning_rate": None,
    "critic.schedule": "constant",
    "critic.betas": (0.9, 0.999),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "one pass": ONE_PASS,
    "one epoch": {"train.epochs": 1},
    "two epochs": {"train.epochs": 2},
    "no clip": {"algorithm.loss.clip": None},
    "sequence ratio": {"algorithm.loss.ratio": "sequence"},
    "no KL": {"algorithm.loss.kl": 0.0},
    "KL to the end": {"algorithm.loss.anneal_fraction": None},
    "KL gone by half": {"algorithm.loss.anneal_fraction": 0.5},
    "no normalisation": {"algorithm.advantage.normalize": False},
    "TD(0)": {"algorithm.advantage.lam": 0.0},
    "Monte Carlo": {"algorithm.advantage.lam": 1.0},
    "no rescale": {"algorithm.value_loss.rescale": False},
    "values of the day": {"algorithm.value_loss.frozen_targets": False},
    "one critic rate": {"critic.head_learning_rate": None},
    "no warm-up": {"models.*.warmup_steps": 0},
    "constant rates": {"models.*.schedule": "constant", "critic.schedule": "constant"},
    "long memory in Adam": {"models.*.betas": (0.9, 0.999), "critic.betas": (0.9, 0.999)},
    "constant temperature": {"agents.*.sampling": {"temperature": HOT, "anneal": None}},
    "cooling from the start": {"agents.*.sampling.anneal": {"begin": 0.0}},
    "late cooling": {"agents.*.sampling.anneal": {"begin": 0.75}},
    "uniform start": {},
    "no optimism": {},
    "constant optimism": {},
    "groups of sixteen": {"algorithm.rollout.k": 16},
}
"""The recipe, the update of the papers, and the recipe without each of its parts."""
RENAMED = {"no hope": "no optimism", "lasting hope": "constant optimism"}
"""Variants in recorded runs, old to new."""
NOT_OPTIMISTIC = {"one pass", "no optimism"}
CRITIC_ONLY = {"TD(0)", "Monte Carlo", "no rescale", "values of the day", "one critic rate"}
GROUPS_ONLY = {"groups of sixteen"}


def references(problem: Problem) -> dict[str, float]:
    """The exact optimum and what less informed teams can reach at best."""
    from colearn.exact.exact_value import evaluate, uniform
    from colearn.exact.histories import JointHistories
    from colearn.exact.search import best_joint_policy
    from colearn.registry import task_class

    task: Any = task_class("dpomdp")(**problem.task)
    model = task.model
    histories = JointHistories(model, problem.horizon)
    kinds = {"optimum": "history", "memoryless": "memoryless", "open_loop": "open_loop"}
    values = {
        name: best_joint_policy(model, problem.horizon, information=kind).value
        for name, kind in kinds.items()
    }
    return {**values, "uniform": evaluate(histories, uniform(histories)).value}
