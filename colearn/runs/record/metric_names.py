"""Defines the unit, direction and meaning of every metric in `metrics.jsonl`.

Tasks add further metrics (`colearn.tasks.metrics`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    unit: the unit of its values, such as `reward`, `share` (0 to 1), `nats per token`, `seconds`.
    better: the direction of improvement; None if neither direction is better by itself.
    """

    meaning: str
    unit: str
    better: Literal["higher", "lower"] | None = None


def agent_name(name: str, agent: str) -> str:
    """Return the name under which one agent's value of a metric is logged. The name is used if the
    agents' values differ."""
    return f"{name}/{agent}"


def of_agent(metrics: Mapping[str, float | None], name: str, agent: str) -> float | None:
    """Return an agent's value of a metric. If no value is logged for the agent, all agents have the
    same value, so the team's value is returned. None if the team has no value either."""
    return metrics.get(agent_name(name, agent), metrics.get(name))


EVALUATION = {
    "return": Metric(
        "Mean undiscounted reward of an episode: the team's, or the players' mean payoff.",
        "reward",
        "higher",
    ),
    "objective": Metric(
        "Mean credited return: the quantity that the algorithm maximises.",
        "credited reward",
        "higher",
    ),
    "unscored": Metric(
        "Episodes whose reward is None; they are in no mean. Absent if all are scored.",
        "episodes",
    ),
    "turns": Metric("Mean turns of an episode.", "turns"),
    "cut_answers": Metric("Answers cut at their token limit.", "share", "lower"),
    "overflow": Metric(
        "Episodes ended early because a history left no room for an answer in its model.",
        "share",
        "lower",
    ),
    "tokens_per_turn": Metric("Mean tokens of one answer.", "tokens"),
    "response_seconds": Metric(
        "Mean time of an episode's answers: the slowest agent of each turn, summed.",
        "seconds",
        "lower",
    ),
    "pass@k": Metric(
        "Probability that one of k episodes passes, by the unbiased estimate from an item's scored "
        "episodes (`evaluation.pass_at`). An item without a scored episode is left out; the metric "
        "is left out if an item has fewer than k scored episodes.",
        "share",
        "higher",
    ),
    "exact_return": Metric(
        "Exact value of the joint policy under each agent's own sampling (`evaluation.exact`).",
        "reward",
        "higher",
    ),
    "exact_return_cold": Metric(
        "Exact value of the same weights at temperature 0.2.", "reward", "higher"
    ),
    "exact_return_greedy": Metric(
        "Exact value of the same weights with greedy decoding.", "reward", "higher"
    ),
    "exact_rejected": Metric(
        "Probability that an episode contains an illegal reply.", "share", "lower"
    ),
    "nash_conv": Metric(
        "Sum over players of the gain of a best response (small games).", "payoff", "lower"
    ),
    "exploitability": Metric("`nash_conv` divided by the players.", "payoff", "lower"),
    "value_PLAYER": Metric("Exact value of a game to a player.", "payoff", "higher"),
}
"""Metrics of an evaluation; their names have the prefix `evaluation/` in trackers."""

UPDATE = {
    "return": Metric("Mean return of the training episodes.", "reward", "higher"),
    "objective": Metric(
        "Mean credited return of the training episodes.", "credited reward", "higher"
    ),
    "failed": Metric("Training episodes whose program failed (`gateway`).", "share", "lower"),
    "unasked": Metric(
        "Training episodes whose program asked no agent (`gateway`): they train nothing.",
        "share",
        "lower",
    ),
    "unscored": Metric(
        "Training episodes whose reward is None: not trained and in no baseline. Absent if all are "
        "scored.",
        "episodes",
    ),
    "overflow": Metric(
        "Training episodes ended early because a history left no room for an answer.",
        "share",
        "lower",
    ),
    "tokens_per_action": Metric("Mean tokens of one answer.", "tokens"),
    "seconds/rollout": Metric("Wall-clock time of the rollouts.", "seconds", "lower"),
    "seconds/update": Metric("Wall-clock time of the update.", "seconds", "lower"),
    "seconds/generate/generator": Metric("Time in which the generator sampled.", "seconds"),
    "seconds/generate/generator/MODEL": Metric(
        "The same, by the first agent of each of several generators.", "seconds"
    ),
    "seconds/transfer/generator": Metric("Time in which it received weights.", "seconds"),
    "seconds/transfer/generator/MODEL": Metric("The same, by generator.", "seconds"),
    "seconds/update/MODEL": Metric("Time in which the model's learner worked.", "seconds"),
    "seconds/update/critic/MODEL": Metric("Time in which a critic's learner worked.", "seconds"),
    "seconds/wait/generator": Metric("Time in which the generator waited.", "seconds", "lower"),
    "seconds/wait/generator/MODEL": Metric("The same, by generator.", "seconds", "lower"),
    "seconds/wait/MODEL": Metric("Time in which the model's learner waited.", "seconds", "lower"),
    "seconds/wait/critic/MODEL": Metric("The same, for a critic.", "seconds", "lower"),
    "seconds/idle": Metric(
        "Time in which nobody worked: task steps, rewards and bookkeeping.", "seconds", "lower"
    ),
    "seconds/overlap": Metric(
        "Time in which two or more generators or models worked.", "seconds", "higher"
    ),
    "parity_gap/generator": Metric(
        "Largest difference between the log-probabilities of vLLM and of the trained model, on "
        "samples from a fixed prompt after the last transfer of weights.",
        "nats per token",
        "lower",
    ),
    "parity_gap/generator/MODEL": Metric("The same, by generator.", "nats per token", "lower"),
    "staleness": Metric("Updates between the sampling and the trained weights.", "updates"),
    "advantage/actions": Metric("Actions with an advantage.", "actions"),
    "advantage/mean": Metric("Mean advantage.", "credited reward"),
    "advantage/std": Metric("Standard deviation of the advantages.", "credited reward"),
    "advantage/zero": Metric(
        "Advantages that are 0: actions of groups whose returns are equal train nothing.",
        "share",
    ),
    "best_return": Metric("Highest return of a training episode.", "reward", "higher"),
    "cut_answers": Metric("Answers cut at their token limit.", "share", "lower"),
    "invalid_episodes": Metric(
        "Training episodes that end with a rejected action, by the task's metrics `invalid`, "
        "`illegal`, `malformed` or `legal`; absent for other tasks.",
        "share",
        "lower",
    ),
    "collapse": Metric(
        "Updates for which a collapse has lasted: one answer to all prompts, no gradient, groups "
        "whose returns are equal, only cut answers or only invalid actions; 0 without a collapse.",
        "updates",
        "lower",
    ),
    "AGENT/similarity": Metric(
        "Mean word F1 of two of an agent's answers that a heterogeneous group compares.", "share"
    ),
    "AGENT/same_prompt": Metric("Pairs of such answers to one and the same prompt.", "share"),
}
"""Metrics of an update that do not belong to a single model."""

ACTOR = {
    "MODEL/policy_loss": Metric("Policy loss per joint transition.", "loss"),
    "MODEL/ratio_mean": Metric("Mean importance ratio; 1 on fresh data.", "ratio"),
    "MODEL/clip_fraction": Metric("Terms that the clip changes.", "share"),
    "MODEL/mask_fraction": Metric("Terms whose ratio lies outside of `loss.mask`.", "share"),
    "MODEL/importance_capped": Metric(
        "Terms whose importance weight reaches `loss.importance_cap`.", "share"
    ),
    "MODEL/kl": Metric("KL(policy || reference), estimated by k3.", "nats per token"),
    "MODEL/teacher_kl": Metric(
        "KL(policy || teacher), estimated from the sampled tokens.", "nats per token", "lower"
    ),
    "MODEL/entropy": Metric("Entropy of the policy.", "nats per token"),
    "MODEL/approx_kl": Metric(
        "KL(policy at rollout || current policy), estimated by k3.", "nats per token"
    ),
    "MODEL/nll": Metric("Negative log-likelihood of the sampled tokens.", "nats per token"),
    "MODEL/logprob_mismatch": Metric(
        "Mean absolute difference between the generator's log-probabilities and the learner's.",
        "nats per token",
        "lower",
    ),
    "MODEL/grad_norm": Metric("Norm of the gradient before clipping.", "norm"),
    "MODEL/grad_signal": Metric(
        "Share of the squared gradient that repeats from step to step, by AdamW's moments: "
        "|E g|^2 / E |g|^2. The noise is sqrt(1 / share - 1) times the gradient. From the tenth "
        "step on, with the local learner.",
        "share",
    ),
    "MODEL/learning_rate": Metric("Learning rate of the step.", "rate"),
    "MODEL/top_answer": Metric(
        "Share of an agent's most frequent answer, of the model's agent with the largest; absent "
        "if all prompts of an update are equal.",
        "share",
    ),
}
"""Metrics of one trained model."""

CRITIC = {
    "critic/explained_variance": Metric(
        "Share of the variance of returns in the update that the critic explains, all turns "
        "together; `critic.jsonl` and the report have it by turn, beside what can be explained.",
        "share",
        "higher",
    ),
    "critic/action_worth": Metric(
        "Of a counterfactual critic: share of the returns' variance around its baseline that Q of "
        "the agent's own action explains. At 0 it knows nothing of what an action is worth, "
        "whatever its explained variance.",
        "share",
        "higher",
    ),
    "critic/value_loss": Metric("Value loss per value target.", "squared reward", "lower"),
    "critic/value_error": Metric("Mean squared error of the values.", "squared reward", "lower"),
    "critic/value_mean": Metric("Mean value.", "credited reward"),
    "critic/target_mean": Metric("Mean value target.", "credited reward"),
    "critic/target_square": Metric("Mean squared value target.", "squared reward"),
    "critic/MODEL/grad_norm": Metric("Norm of the critic's gradient before clipping.", "norm"),
    "critic/MODEL/grad_signal": Metric("As `MODEL/grad_signal`, of the critic.", "share"),
    "critic/MODEL/learning_rate": Metric("Learning rate of the critic's step.", "rate"),
}
"""Metrics of the critics. With `critic.share: actor`, the metrics of the value loss are named
`MODEL/...` instead of `critic/...`."""

RUN_METRICS: Mapping[str, Mapping[str, Metric]] = {
    "Evaluation": EVALUATION,
    "Update": UPDATE,
    "Trained models": ACTOR,
    "Critics": CRITIC,
}
"""All metrics, grouped by section. In names of metrics, MODEL, AGENT, PLAYER and k are placeholders
for names and numbers of the run."""
