"""Exact measures of a game: the policy is asked at every decision, and the task judges it.

A player's private histories are written out as it would see them; its own network scores every
valid reply at each, shared prefixes once, in one teacher-forced pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from colearn.agents import Voice
from colearn.contract.decisions import Decision, QueriedTask
from colearn.models.network import Network
from colearn.tabular.model import Array

from .asked import AskedAgent, Place
from .exact import DECODINGS, require_plain_sampling, temperatures


class QueriedEvaluator:
    """Measures of the current weights on one game that can be written out.

    A reply counts as valid in its usual tokens with the template's end token behind them. The judge
    is given the valid replies' probabilities made to sum to 1; `exact_rejected`, the largest
    probability of anything else at any decision, says how much that changes.

    Errors: ConfigError where the game is too large, or sampling cuts the distribution.
    """

    def __init__(
        self,
        task: QueriedTask,
        voices: Mapping[str, Voice],
        networks: Mapping[str, Network],
        *,
        token_budget: int,
    ) -> None:
        require_plain_sampling(voices)
        self.task, self.token_budget = task, token_budget
        self.voices, self.networks = dict(voices), dict(networks)
        self._decisions = {agent: list(task.decisions(agent)) for agent in task.agents}
        self._asked = {
            agent: _ask(AskedAgent(agent, voices[agent], networks[agent]), found)
            for agent, found in self._decisions.items()
        }

    def metrics(self) -> dict[str, float]:
        """What the task's judge says of the policy under each agent's own sampling, and
        `exact_rejected`; with `_cold` and `_greedy` behind the name, of the same weights sampled
        at temperature `COLD` and decoded greedily (the likeliest valid reply)."""
        tables = {agent: self._probabilities(agent) for agent in self._decisions}
        found: dict[str, float] = {}
        for place, decoding in enumerate(DECODINGS):
            behind = "" if decoding == "sampled" else f"_{decoding}"
            policy = {
                agent: {
                    decision.key: _normalised(table, place).tolist()
                    for decision, table in zip(decisions, tables[agent], strict=True)
                }
                for agent, decisions in self._decisions.items()
            }
            found |= {f"{name}{behind}": value for name, value in self.task.judge(policy).items()}
        sums = [float(table[0].sum()) for own in tables.values() for table in own]
        return {**found, "exact_rejected": max(0.0, *(1.0 - total for total in sums))}

    def _probabilities(self, agent: str) -> list[Array]:
        """pi(reply | history) by decision, shape [decodings, valid replies]."""
        asked = self._asked[agent]
        return asked.probabilities(temperatures(asked.voice), self.token_budget)


def _normalised(table: Array, place: int) -> Array:
    """A decoding's probabilities of the valid replies, made to sum to 1. Greedy decoding may end
    in a reply that is not valid: then it is the valid reply likeliest when sampled."""
    row = table[place]
    if DECODINGS[place] == "greedy" and not row.any():
        row = np.eye(len(row))[table[0].argmax()]
    normal: Array = row / row.sum()
    return normal


def _ask(asked: AskedAgent, decisions: Sequence[Decision]) -> AskedAgent:
    """The agent, asked for its valid replies at every decision."""
    for decision in decisions:
        place: Place | None = None
        reply = ""
        for text, following in (*decision.history, (decision.observation, "")):
            place = asked.opened(text) if place is None else asked.observed(place, reply, text)
            reply = following
        assert place is not None
        asked.ask(place, decision.replies)
    return asked
