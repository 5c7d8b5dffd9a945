"""Exact evaluation: computes the value of a team on a finite problem without sampling.

Every private history of the problem is written out as the agent's prompt. The agent's network
scores every legal reply to each prompt, in one teacher-forced pass over a tree with shared
prefixes. The resulting tables are a joint policy, whose value is computed exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from colearn.contract import DecPOMDP, FiniteProblem
from colearn.errors import ConfigError
from colearn.exact.exact_value import ExactEvaluation, evaluate
from colearn.exact.histories import JointHistories
from colearn.exact.model import Array
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec

from .queried_histories import HistoryNode, QueriedHistories

Tables = dict[str, tuple[Array, ...]]
"""Policy tables pi_i(a | h_i) by agent and turn."""


COLD = 0.2
"""Temperature of the additional `_cold` metrics."""

Decoding = Literal["sampled", "cold", "greedy"]
DECODINGS: tuple[Decoding, ...] = ("sampled", "cold", "greedy")
"""The three decodings: sampling at the temperature of each agent's settings, sampling at
temperature `COLD`, and greedy decoding."""


def temperatures(spec: AgentSpec) -> list[float]:
    """Returns an agent's temperatures in the order of `DECODINGS`."""
    return [spec.sampling.temperature, COLD, 0.0]


METRICS = ("exact_return", "exact_return_cold", "exact_return_greedy", "exact_rejected")
"""Metrics of `ExactEvaluator`."""


class ExactEvaluator:
    """Exact values of the current weights on one finite task.

    A reply counts as legal only in its canonical tokenisation followed by the template's end token;
    other tokenisations that the task would accept count as rejected. `exact_rejected` is the
    probability that an episode contains a rejected reply; this probability bounds the error.

    Errors: ConfigError if the task is not finite, or sampling truncates the distribution.
    """

    def __init__(
        self,
        task: DecPOMDP[Any, Any],
        specs: Mapping[str, AgentSpec],
        networks: Mapping[str, Network],
        *,
        token_budget: int,
    ) -> None:
        self.problem = require_finite(task)
        require_plain_sampling(specs)
        self.task, self.token_budget = task, token_budget
        self.specs, self.networks = dict(specs), dict(networks)
        self.histories = JointHistories(self.problem.model, task.horizon)
        self._asked = {agent: self._ask(agent) for agent in task.agents}

    def metrics(self) -> dict[str, float]:
        """Returns `exact_return`, the expected return J in the task's scaled rewards, with the
        sampling settings of each agent. Also returns `exact_return_cold` and `exact_return_greedy`,
        which are J of the same weights at temperature `COLD` and with greedy decoding, and
        `exact_rejected`."""
        policies = self._policies()
        values = {name: self._value(policy) for name, policy in policies.items()}
        policy, sampled = policies["sampled"], values["sampled"]
        last = self.histories.turns[-1]
        accepted = sampled.joint_probabilities[-1]
        for number, agent in enumerate(self.task.agents):
            accepted = accepted * policy[agent][-1].sum(axis=1)[last.private[number]]
        scale = self.problem.reward_scale
        measured = (
            sampled.value * scale,
            values["cold"].value * scale,
            values["greedy"].value * scale,
            max(0.0, 1.0 - float(accepted.sum())),
        )
        return dict(zip(METRICS, measured, strict=True))

    def evaluate(self, decoding: Decoding = "sampled") -> tuple[Tables, ExactEvaluation]:
        """Returns the joint policy as tables, and the policy's exact evaluation in the unscaled
        rewards of the Dec-POMDP model."""
        policy = self._policies()[decoding]
        return policy, self._value(policy)

    def _value(self, policy: Tables) -> ExactEvaluation:
        turns = range(self.task.horizon)
        rejected = [self.problem.rejection_reward(t) / self.problem.reward_scale for t in turns]
        return evaluate(self.histories, policy, rejected=rejected)

    def _ask(self, agent: str) -> QueriedHistories:
        """Enumerate an agent's private histories, turn by turn, and query the probabilities of the
        legal replies at each history."""
        histories = QueriedHistories(agent, self.specs[agent], self.networks[agent])
        words, shown = self.problem.action_words(agent), self.problem.shown
        at: dict[tuple[int, ...], HistoryNode] = {(): histories.opened(shown(agent, 0, None))}
        for turn, privates in enumerate(self.histories.private(agent)):
            if turn:
                at = {
                    (*before, action, observation): histories.observed(
                        at[tuple(before)],
                        words[action],
                        shown(agent, turn, observation),
                    )
                    for *before, action, observation in privates
                }
            for private in privates:
                histories.ask(at[private], words)
        return histories

    def _policies(self) -> dict[Decoding, Tables]:
        """Tables pi(a | h) over private histories by turn, for each decoding and agent."""
        policies: dict[Decoding, Tables] = {name: {} for name in DECODINGS}
        for number, agent in enumerate(self.task.agents):
            histories = self._asked[agent]
            hot = temperatures(histories.spec)
            rows = iter(histories.probabilities(hot, self.token_budget))
            by_turn = [
                np.stack(list(itertools.islice(rows, turn.counts[number])))
                for turn in self.histories.turns
            ]
            for place, name in enumerate(DECODINGS):
                policies[name][agent] = tuple(table[:, place] for table in by_turn)
        return policies


def require_finite(task: DecPOMDP[Any, Any]) -> FiniteProblem:
    """The task's finite problem. Errors: ConfigError for a task that exact evaluation cannot
    enumerate."""
    problem = task.finite_problem()
    if problem is None:
        raise ConfigError(
            "evaluation.exact: needs a finite task such as dpomdp or one small game of "
            "open_spiel, played without a wrapper; set it to false"
        )
    return problem


def require_plain_sampling(specs: Mapping[str, AgentSpec]) -> None:
    """Check sampling. Errors: ConfigError if an agent does not sample from the model's untruncated
    distribution."""
    for agent, spec in specs.items():
        sampling = spec.sampling
        if sampling.temperature == 0.0 or sampling.top_p < 1.0 or sampling.top_k or sampling.stop:
            raise ConfigError(
                f"evaluation.exact: agents.{agent}.sampling must be the plain distribution; "
                "leave out top_p, top_k and stop, and set a temperature above 0"
            )
