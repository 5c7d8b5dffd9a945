"""Exact evaluation of a small game: computes the policy's probabilities at every decision; the task
then measures the policy.

A player's private histories are written out as prompts. The player's network scores every valid
reply to each prompt, in one teacher-forced pass with shared prefixes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from colearn.contract import Decision, EnumeratedGame
from colearn.exact.model import Array
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec

from .exact import DECODINGS, Decoding, require_plain_sampling, temperatures
from .queried_histories import HistoryNode, QueriedHistories

REJECTED = "exact_rejected"


def exact_names(game: EnumeratedGame, agents: Sequence[str]) -> set[str]:
    """Returns the names of the metrics of `QueriedEvaluator`. To find these names, calls the game's
    `judge` with the uniform policy."""
    uniform = {
        agent: {d.key: (1 / len(d.replies),) * len(d.replies) for d in game.decisions(agent)}
        for agent in agents
    }
    judged = game.judge(uniform)
    return {REJECTED, *(_named(name, decoding) for name in judged for decoding in DECODINGS)}


class QueriedEvaluator:
    """Exact measures of the current weights on one enumerable game.

    A reply counts as valid only in its canonical tokenisation followed by the template's end token.
    The game judges the valid replies' probabilities, normalised to sum to 1. `exact_rejected` is
    the total probability of all other replies at a decision, maximised over the decisions;
    `exact_rejected` bounds the effect of the normalisation.

    Errors: ConfigError if the game is too large, or sampling truncates the distribution.
    """

    def __init__(
        self,
        game: EnumeratedGame,
        specs: Mapping[str, AgentSpec],
        networks: Mapping[str, Network],
        *,
        token_budget: int,
    ) -> None:
        require_plain_sampling(specs)
        self.game, self.token_budget = game, token_budget
        self.specs, self.networks = dict(specs), dict(networks)
        self._decisions = {agent: list(game.decisions(agent)) for agent in specs}
        self._asked = {
            agent: _ask(QueriedHistories(agent, specs[agent], networks[agent]), decisions)
            for agent, decisions in self._decisions.items()
        }

    def metrics(self) -> dict[str, float]:
        """Returns the task's measures of the policy with the sampling settings of each agent, and
        `exact_rejected`. Metrics whose names end in `_cold` measure the same weights at temperature
        `COLD`. Metrics whose names end in `_greedy` measure greedy decoding (the most likely valid
        reply)."""
        tables = {agent: self._probabilities(agent) for agent in self._decisions}
        metrics: dict[str, float] = {}
        for place, decoding in enumerate(DECODINGS):
            policy = {
                agent: {
                    decision.key: _normalised(table, place).tolist()
                    for decision, table in zip(decisions, tables[agent], strict=True)
                }
                for agent, decisions in self._decisions.items()
            }
            measured = self.game.judge(policy)
            metrics |= {_named(name, decoding): value for name, value in measured.items()}
        sums = [float(table[0].sum()) for agent_tables in tables.values() for table in agent_tables]
        return {**metrics, REJECTED: max(0.0, *(1.0 - total for total in sums))}

    def _probabilities(self, agent: str) -> list[Array]:
        """pi(reply | history) for each decision, shape [decodings, valid replies]."""
        histories = self._asked[agent]
        return histories.probabilities(temperatures(histories.spec), self.token_budget)


def _named(name: str, decoding: Decoding) -> str:
    return name if decoding == "sampled" else f"{name}_{decoding}"


def _normalised(table: Array, place: int) -> Array:
    """Returns the probabilities of the valid replies under one decoding, normalised to sum to 1. If
    greedy decoding gives an invalid reply, the valid reply with the highest sampling probability
    replaces it."""
    row = table[place]
    if DECODINGS[place] == "greedy" and not row.any():
        row = np.eye(len(row))[table[0].argmax()]
    normal: Array = row / row.sum()
    return normal


def _ask(histories: QueriedHistories, decisions: Sequence[Decision]) -> QueriedHistories:
    """Query an agent's valid replies at every decision."""
    for decision in decisions:
        place: HistoryNode | None = None
        reply = ""
        for text, following in (*decision.history, (decision.observation, "")):
            place = (
                histories.opened(text) if place is None else histories.observed(place, reply, text)
            )
            reply = following
        assert place is not None
        histories.ask(place, decision.replies)
    return histories
